"""Joining a project by the link of an invitation, with an account or by making one."""

from __future__ import annotations

from django.contrib.auth import login
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from sessions_app.models import Invitation
from sessions_app.services.projects import accept, find_invitation

_BACKEND = "django.contrib.auth.backends.ModelBackend"
_GONE = "projects/invitation_gone.html"


@sensitive_post_parameters("password1", "password2")
@never_cache
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    found = find_invitation(token)
    if found is None:
        return render(request, _GONE, status=404)
    if request.user.is_authenticated:
        return _join(request, found, request.user)
    form: UserCreationForm[User] = UserCreationForm(request.POST or None)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "projects/invitation.html", {"invitation": found, "form": form}, status=status)
    user = form.save()
    login(request, user, backend=_BACKEND)
    return _join(request, found, user)


def _join(request: HttpRequest, found: Invitation, user: User) -> HttpResponse:
    """Opening the link joins nothing: a page that somebody else sends must not do it."""
    if request.method == "GET":
        return render(request, "projects/invitation.html", {"invitation": found})
    if not accept(found, user):
        return render(request, _GONE, status=404)
    return redirect("project", found.project.slug)
