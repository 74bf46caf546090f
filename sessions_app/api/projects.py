"""Projects, who belongs to them, and what opens them. Keys of the scope admin manage their project."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, TypeVar

from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from ninja import Router, Status
from pydantic import Field

from sessions_app.api import examples
from sessions_app.api.auth import AdminKeyHolder, FullKeyHolder, key_of, project_of
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.project_shapes import (
    InvitationList,
    KeyList,
    MadeInvitation,
    MadeKey,
    MadeProject,
    MemberBody,
    MemberList,
    ProjectBody,
    ProjectList,
    RoleName,
    ScopeName,
    invitation_shape,
    key_row,
    member_shape,
    project_shape,
)
from sessions_app.api.schemas import OrderBody, shown
from sessions_app.core.payload import JsonObject
from sessions_app.models import ApiKey, Invitation, Membership
from sessions_app.models.projects import KeyScope
from sessions_app.queries.projects import listed_keys, members_of, open_invitations
from sessions_app.services import projects
from sessions_app.services.keys import AlreadyReplaced, create_key, revoke_key
from sessions_app.services.keys import rotate_key as rotated
from sessions_app.services.projects import LastAdministrator

router = Router(auth=AdminKeyHolder(), tags=["projects"])
Name = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$")]
Row = TypeVar("Row", bound=Model)


_CREATES_PROJECTS = (
    "Only an admin key of an administrator of this server creates projects: one that they made on the page Send data, "
    "or manage.py keys PROJECT create NAME --scope admin --user USERNAME."
)


class NameRequest(OrderBody):
    model_config = shown(examples.PROJECT)
    name: Name


class RoleRequest(OrderBody):
    model_config = shown(examples.ROLE)
    role: RoleName


class KeyRequest(OrderBody):
    model_config = shown(examples.KEY)
    name: Name
    scope: ScopeName = "ingest"
    expires_in_days: int | None = Field(default=None, ge=1, le=3650, description="Without it the key never expires.")


class RotationRequest(OrderBody):
    model_config = shown(examples.ROTATION)
    overlap_hours: int = Field(default=24, ge=0, le=720, description="How long the old key still works.")


# --- projects ----------------------------------------------------------------------------------


@router.get("/projects", auth=FullKeyHolder(), response={200: ProjectList})
def list_projects(request: HttpRequest) -> JsonObject:
    """List the projects the key can see. A key belongs to one project."""
    return {"items": [project_shape(project_of(request))], "next_cursor": None}


@router.post("/projects", response={201: MadeProject})
def post_project(request: HttpRequest, wanted: NameRequest) -> Status[JsonObject]:
    """Create a project and a key that manages it. Needs an admin key that belongs to an administrator of the server."""
    maker = key_of(request).created_by
    if maker is None or not maker.is_superuser or not maker.is_active:
        raise Refused(403, "role_needed", _CREATES_PROJECTS)
    project = projects.create_project(wanted.name.strip(), maker)
    _, text = create_key(project=project, name="first key", scope=KeyScope.ADMIN, user=maker)
    return Status(201, {**project_shape(project), "api_key": text})


@router.patch("/projects/{slug:project}", response={200: ProjectBody})
def patch_project(request: HttpRequest, project: str, wanted: NameRequest) -> JsonObject:
    """Rename the key's project. Its name in addresses does not change."""
    own = project_of(request)
    if own.slug != project:
        raise Refused(404, "not_found", "There is no such project.")
    projects.rename_project(own, wanted.name.strip())
    return project_shape(own)


# --- members -----------------------------------------------------------------------------------


@router.get("/members", response={200: MemberList})
def list_members(request: HttpRequest) -> JsonObject:
    """List the members of the project. Administrators of the server see every project and are not listed for that."""
    return {"items": [member_shape(each) for each in members_of(project_of(request))], "next_cursor": None}


@router.patch("/members/{username}", response={200: MemberBody, 409: None})
def patch_member(request: HttpRequest, username: str, wanted: RoleRequest) -> JsonObject:
    """Change a member's role."""
    member = _member(request, username)
    try:
        projects.set_role(member, wanted.role)
    except LastAdministrator as last:
        raise Refused(409, "last_administrator", str(last), "role") from None
    return member_shape(member)


@router.delete("/members/{username}", response={204: None, 409: None})
def delete_member(request: HttpRequest, username: str) -> Status[None]:
    """Remove a member. What they made in the project stays, their keys included."""
    try:
        projects.remove_member(_member(request, username))
    except LastAdministrator as last:
        raise Refused(409, "last_administrator", str(last)) from None
    return Status(204, None)


def _member(request: HttpRequest, username: str) -> Membership:
    members = Membership.objects.select_related("user").filter(project=project_of(request))
    found = None if "\x00" in username else members.filter(user__username=username).first()
    if found is None:
        raise not_found("member")
    return found


# --- invitations -------------------------------------------------------------------------------


@router.get("/invitations", response={200: InvitationList})
def list_invitations(request: HttpRequest) -> JsonObject:
    """List the invitations that nobody has accepted. Their links cannot be shown again."""
    return {"items": [invitation_shape(each) for each in open_invitations(project_of(request))], "next_cursor": None}


@router.post("/invitations", response={201: MadeInvitation})
def post_invitation(request: HttpRequest, wanted: RoleRequest) -> Status[JsonObject]:
    """Create an invitation link for one person. Whoever opens it joins with an existing or a new account. The link is
    shown only once."""
    key = key_of(request)
    made, token = projects.invite(key.project, wanted.role, key.created_by)
    address = request.build_absolute_uri(reverse("invitation", args=[token]))
    return Status(201, {**invitation_shape(made), "url": address})


@router.delete("/invitations/{int:invitation_id}", response={204: None})
def delete_invitation(request: HttpRequest, invitation_id: int) -> Status[None]:
    """Revoke an invitation. Its link stops working."""
    _own(Invitation.objects.filter(project=project_of(request)), invitation_id, "invitation").delete()
    return Status(204, None)


# --- keys --------------------------------------------------------------------------------------


@router.get("/keys", response={200: KeyList})
def list_keys(request: HttpRequest) -> JsonObject:
    """List the project's keys, newest first, never the keys themselves. Expired keys stay listed for 30 days."""
    return {"items": [key_row(each) for each in listed_keys(project_of(request))], "next_cursor": None}


@router.post("/keys", response={201: MadeKey})
def post_key(request: HttpRequest, wanted: KeyRequest) -> Status[JsonObject]:
    """Create a key. It is shown only once."""
    ends = None if wanted.expires_in_days is None else timezone.now() + timedelta(days=wanted.expires_in_days)
    maker = key_of(request)
    made, text = create_key(
        project=maker.project, name=wanted.name.strip(), scope=wanted.scope, user=maker.created_by, expires_at=ends
    )
    return Status(201, {**key_row(made), "api_key": text})


@router.post("/keys/{int:key_id}/rotate", response={201: MadeKey, 409: None})
def rotate_key(request: HttpRequest, key_id: int, wanted: RotationRequest | None = None) -> Status[JsonObject]:
    """Replace a key with a new one of the same name and scope. The new key is shown only once and belongs to the user
    of the key that asks; the old one keeps working for the overlap. 409 for a key that was replaced before. The body
    is optional."""
    old = _own(_keys(request), key_id, "key")
    overlap = timedelta(hours=(wanted or RotationRequest()).overlap_hours)
    try:
        made, text = rotated(old, user=key_of(request).created_by, overlap=overlap)
    except AlreadyReplaced as refused:
        raise Refused(409, "already_replaced", str(refused)) from None
    return Status(201, {**key_row(made), "api_key": text})


@router.delete("/keys/{int:key_id}", response={204: None})
def delete_key(request: HttpRequest, key_id: int) -> Status[None]:
    """Revoke a key immediately."""
    revoke_key(_own(_keys(request), key_id, "key"))
    return Status(204, None)


def _keys(request: HttpRequest) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project=project_of(request), revoked_at=None).select_related("project")


def _own(rows: QuerySet[Row], key: int, what: str) -> Row:
    found = rows.filter(pk=key).first() if key < 2**63 else None
    if found is None:
        raise not_found(what)
    return found
