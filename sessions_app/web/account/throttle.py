"""Who tries too many passwords has to wait (django-axes; the numbers are in the settings)."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from sessions_app.web.account.views import safe_next


def address_of(request: HttpRequest) -> str:
    """That of the connection: headers are whatever the sender wrote."""
    return str(request.META.get("REMOTE_ADDR", ""))


def locked_out(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
    seconds = int(settings.AXES_COOLOFF_TIME.total_seconds())
    form = AuthenticationForm(request, initial={"username": request.POST.get("username", "")[:150]})
    facts = {"form": form, "locked_minutes": seconds // 60, "next": safe_next(request)}
    response = render(request, "account/sign_in.html", facts, status=429)
    response["Retry-After"] = str(seconds)
    return response
