"""How projects, their people and their keys look in answers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sessions_app.api.schemas import Answer, Moment
from sessions_app.api.shapes import moment
from sessions_app.core.payload import JsonObject
from sessions_app.models import ApiKey, Invitation, Membership, Project

RoleName = Literal["viewer", "member", "admin"]
ScopeName = Literal["ingest", "full", "admin"]


class ProjectBody(Answer):
    project: str = Field(description="Its name in addresses.")
    name: str
    created_at: Moment


class MadeProject(ProjectBody):
    api_key: str = Field(description="Key that manages the new project; shown only once.")


class ProjectList(Answer):
    items: list[ProjectBody]
    next_cursor: str | None


class MemberBody(Answer):
    username: str
    role: RoleName


class MemberList(Answer):
    items: list[MemberBody]
    next_cursor: str | None


class InvitationBody(Answer):
    invitation_id: int
    role: RoleName
    created_by: str | None
    created_at: Moment
    expires_at: Moment


class MadeInvitation(InvitationBody):
    url: str = Field(description="Whoever opens it first joins; shown only once.")


class InvitationList(Answer):
    items: list[InvitationBody]
    next_cursor: str | None


class KeyBody(Answer):
    name: str
    prefix: str = Field(description="The first characters of the key.")
    scope: ScopeName = Field(
        description="ingest: may send recordings. full: also read and replay. admin: also manage the project."
    )
    created_at: Moment
    expires_at: Moment | None


class KeyRow(KeyBody):
    key_id: int
    created_by: str | None
    last_used_at: Moment | None = Field(description="Rounded to the minute.")
    replaced_at: Moment | None = Field(description="When another key was made in its place.")


class MadeKey(KeyRow):
    api_key: str = Field(description="The key itself; shown only once.")


class KeyList(Answer):
    items: list[KeyRow]
    next_cursor: str | None


def project_shape(project: Project) -> JsonObject:
    return {"project": project.slug, "name": project.name, "created_at": moment(project.created_at)}


def member_shape(member: Membership) -> JsonObject:
    return {"username": member.user.get_username(), "role": member.role}


def invitation_shape(invitation: Invitation) -> JsonObject:
    return {
        "invitation_id": invitation.pk,
        "role": invitation.role,
        "created_by": invitation.created_by.get_username() if invitation.created_by else None,
        "created_at": moment(invitation.created_at),
        "expires_at": moment(invitation.expires_at),
    }


def key_shape(key: ApiKey) -> JsonObject:
    return {
        "name": key.name,
        "prefix": key.prefix,
        "scope": key.scope,
        "created_at": moment(key.created_at),
        "expires_at": moment(key.expires_at),
    }


def key_row(key: ApiKey) -> JsonObject:
    maker = key.created_by.get_username() if key.created_by else None
    times = {"last_used_at": moment(key.last_used_at), "replaced_at": moment(key.replaced_at)}
    return {**key_shape(key), "key_id": key.pk, "created_by": maker, **times}
