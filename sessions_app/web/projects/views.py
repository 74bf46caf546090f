"""A project's own page: its name, who belongs to it, and the keys that open it."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from sessions_app.models import ApiKey, Invitation, Membership, Project
from sessions_app.models.projects import KeyScope, Role
from sessions_app.queries.access import has_role
from sessions_app.queries.projects import listed_keys, members_of, only_administrator, open_invitations
from sessions_app.services import projects
from sessions_app.services.keys import AlreadyReplaced, revoke_key, rotate_key
from sessions_app.services.projects import LastAdministrator
from sessions_app.web.access import project_page, signed_in
from sessions_app.web.errors.views import forbidden


class NameForm(forms.Form):
    name = forms.CharField(max_length=120, strip=True)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices, initial=Role.MEMBER)


@never_cache
@require_http_methods(["GET", "POST"])
@signed_in
def new_project(request: HttpRequest) -> HttpResponse:
    """For administrators of the server."""
    if not request.user.is_superuser:
        return forbidden(request)
    form = NameForm(request.POST or None)
    if not form.is_valid():
        status = 422 if form.is_bound else 200
        return render(request, "projects/new.html", {"form": form}, status=status)
    project = projects.create_project(form.cleaned_data["name"], request.user)
    return redirect("setup", project.slug)


@never_cache
@require_GET
@project_page()
def settings(request: HttpRequest, project: Project) -> HttpResponse:
    return _page(request, project)


def _page(request: HttpRequest, project: Project, status: int = 200, **more: Any) -> HttpResponse:
    facts = {
        "project": project,
        "section": "settings",
        "settings_page": "general",
        "members": members_of(project),
        "only_admin": only_administrator(project),
        "invitations": open_invitations(project),
        "keys": listed_keys(project),
        "roles": Role.choices,
        "is_admin": has_role(request.user, project, "admin"),
        "may_make_keys": has_role(request.user, project, "member"),
        "name": project.name,
    }
    return render(request, "projects/settings.html", facts | more, status=status)


@require_POST
@project_page("admin")
def rename(request: HttpRequest, project: Project) -> HttpResponse:
    form = NameForm(request.POST)
    if not form.is_valid():
        return _page(request, project, 422, name=request.POST.get("name", ""), name_errors=form.errors["name"])
    projects.rename_project(project, form.cleaned_data["name"])
    messages.info(request, "Renamed. URLs stay the same.")
    return redirect("project_settings", project.slug)


# --- members -----------------------------------------------------------------------------------


@require_POST
@project_page("admin")
def change_role(request: HttpRequest, project: Project, member: int) -> HttpResponse:
    membership, form = _member(project, member), RoleForm(request.POST)
    if not form.is_valid():
        return _page(request, project, 422, problem="There is no such role.")
    try:
        projects.set_role(membership, form.cleaned_data["role"])
    except LastAdministrator as last:
        return _page(request, project, 409, problem=str(last))
    messages.info(request, f"{membership.user.get_username()} is now {membership.get_role_display()}.")
    return redirect("project_settings", project.slug)


@require_POST
@project_page("admin")
def remove(request: HttpRequest, project: Project, member: int) -> HttpResponse:
    membership = _member(project, member)
    try:
        projects.remove_member(membership)
    except LastAdministrator as last:
        return _page(request, project, 409, problem=str(last))
    messages.info(request, f"{membership.user.get_username()} was removed from the project.")
    return redirect("project_settings", project.slug)


def _member(project: Project, key: int) -> Membership:
    return get_object_or_404(Membership.objects.select_related("user"), project=project, pk=key)


@never_cache
@require_POST
@project_page("admin")
def invite(request: HttpRequest, project: Project) -> HttpResponse:
    """The answer is the page itself: the link is shown in it once, and kept nowhere."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _page(request, project, 422, problem="There is no such role.")
    assert request.user.is_authenticated
    made, token = projects.invite(project, form.cleaned_data["role"], request.user)
    address = request.build_absolute_uri(reverse("invitation", args=[token]))
    return _page(request, project, invited=made, address=address)


@require_POST
@project_page("admin")
def take_back(request: HttpRequest, project: Project, invitation: int) -> HttpResponse:
    get_object_or_404(Invitation, project=project, pk=invitation).delete()
    messages.info(request, "Invitation revoked: the link no longer works.")
    return redirect("project_settings", project.slug)


# --- keys --------------------------------------------------------------------------------------


@never_cache
@require_POST
@project_page("member")
def rotate(request: HttpRequest, project: Project, key: int) -> HttpResponse:
    """The answer is the page itself: the new key is shown in it once, and kept nowhere."""
    assert request.user.is_authenticated
    found = _key(project, key)
    if not _may_touch(request, found):
        return _page(request, project, 403, problem=_FOR_ADMINISTRATORS)
    try:
        made, text = rotate_key(found, user=request.user)
    except AlreadyReplaced as refused:
        return _page(request, project, 409, problem=str(refused))
    found.refresh_from_db()
    return _page(request, project, made=made, key=text, replaced=found)


@require_POST
@project_page("member")
def revoke(request: HttpRequest, project: Project, key: int) -> HttpResponse:
    found = _key(project, key)
    if not _may_touch(request, found):
        return _page(request, project, 403, problem=_FOR_ADMINISTRATORS)
    revoke_key(found)
    messages.info(request, f"The key {found.name} is revoked.")
    return redirect("project_settings", project.slug)


_FOR_ADMINISTRATORS = "Only administrators can change a key that manages the project."


def _may_touch(request: HttpRequest, key: ApiKey) -> bool:
    """Whoever replaces a key holds it: nobody gets more than they have."""
    return key.scope != KeyScope.ADMIN or has_role(request.user, key.project, "admin")


def _key(project: Project, key: int) -> ApiKey:
    return get_object_or_404(ApiKey.objects.select_related("project"), project=project, pk=key, revoked_at=None)
