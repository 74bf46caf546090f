"""Who may open a page: the view gets the project itself, or the door stays closed in words."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.queries.access import NoSuchProject, RoleName, RoleNeeded, project_for
from sessions_app.web.htmx import HtmxHttpRequest

View = Callable[..., HttpResponseBase]


def signed_in(view: View) -> View:
    """Others go to the sign-in page and come back here; a live part is told 401 and the page says so."""

    @wraps(view)
    def inner(request: HtmxHttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.user.is_authenticated:
            return view(request, *args, **kwargs)
        return ask_to_sign_in(request)

    return inner


def project_page(at_least: RoleName = "viewer") -> Callable[[View], View]:
    """For views under `/p/<project>/`: `view(request, project, …)` with the Project that the user may see."""

    def decorate(view: View) -> View:
        @signed_in
        @wraps(view)
        def inner(request: HttpRequest, project: str, *args: Any, **kwargs: Any) -> HttpResponseBase:
            from sessions_app.web.errors.views import gone, not_found, role_needed

            try:
                found = project_for(request.user, project, at_least)
            except NoSuchProject:
                return not_found(request)
            except RoleNeeded as needed:
                return role_needed(request, needed)
            try:
                return view(request, found, *args, **kwargs)
            except StoredBytesMissing as missing:
                return gone(request, missing)

        return inner

    return decorate


def ask_to_sign_in(request: HtmxHttpRequest) -> HttpResponse:
    if request.htmx:
        return HttpResponse(status=401)
    here = request.get_full_path() if request.method == "GET" else reverse("home")
    return redirect(f"{settings.LOGIN_URL}?{urlencode({'next': here})}")


def user_of(request: HttpRequest) -> User:
    """Whoever is signed in, on a page that only those see."""
    assert isinstance(request.user, User)
    return request.user
