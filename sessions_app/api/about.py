"""Who asks, whom they ask, and what there is: the key and its project, the server, its agents."""

from __future__ import annotations

from typing import Literal

from django.conf import settings
from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from sessions_app.api.auth import FullKeyHolder, KeyHolder, key_of, project_of
from sessions_app.api.schemas import Answer, Moment
from sessions_app.api.shapes import moment
from sessions_app.core.payload import JsonObject
from sessions_app.core.version import API_VERSION, VERSION
from sessions_app.models import Project

router = Router(auth=KeyHolder(), tags=["server"])


class ProjectBody(Answer):
    project: str = Field(description="Its name in addresses.")
    name: str
    created_at: Moment


class KeyBody(Answer):
    name: str
    prefix: str = Field(description="The first characters of the key.")
    scope: Literal["ingest", "full"] = Field(description="ingest: may send recordings. full: also read and replay.")
    created_at: Moment
    expires_at: Moment | None


class MeBody(Answer):
    key: KeyBody
    project: ProjectBody


class VersionBody(Answer):
    version: str = Field(description="Of the server.")
    api: str = Field(description="Of this API; the same as in its addresses, without the v.")


class AgentBody(Answer):
    name: str = Field(description="As `agent` of a replay, a fork or a golden names it.")


class AgentList(Answer):
    items: list[AgentBody]
    next_cursor: str | None


class ProjectList(Answer):
    items: list[ProjectBody]
    next_cursor: str | None


@router.get("/me", response={200: MeBody})
def get_me(request: HttpRequest) -> JsonObject:
    """The key that this request was sent with, and its project."""
    key = key_of(request)
    return {
        "key": {
            "name": key.name,
            "prefix": key.prefix,
            "scope": key.scope,
            "created_at": moment(key.created_at),
            "expires_at": moment(key.expires_at),
        },
        "project": _project(key.project),
    }


@router.get("/version", response={200: VersionBody})
def get_version(request: HttpRequest) -> JsonObject:
    """The versions of the server and of its API."""
    return {"version": VERSION, "api": API_VERSION}


@router.get("/agents", auth=FullKeyHolder(), response={200: AgentList})
def list_agents(request: HttpRequest) -> JsonObject:
    """The agents that this server's settings register, by name."""
    return {"items": [{"name": name} for name in sorted(settings.REPLAY_AGENTS)], "next_cursor": None}


@router.get("/projects", auth=FullKeyHolder(), response={200: ProjectList})
def list_projects(request: HttpRequest) -> JsonObject:
    """The projects that the key may see: a key belongs to one."""
    return {"items": [_project(project_of(request))], "next_cursor": None}


def _project(project: Project) -> JsonObject:
    return {"project": project.slug, "name": project.name, "created_at": moment(project.created_at)}
