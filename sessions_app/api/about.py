"""Who asks, whom they ask, and what there is: the key and its project, the server, its agents."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from sessions_app.api.auth import FullKeyHolder, KeyHolder, key_of
from sessions_app.api.project_shapes import KeyBody, ProjectBody, key_shape, project_shape
from sessions_app.api.schemas import Answer
from sessions_app.core.payload import JsonObject
from sessions_app.core.version import API_VERSION, VERSION

router = Router(auth=KeyHolder(), tags=["server"])


class MeBody(Answer):
    key: KeyBody
    project: ProjectBody


class VersionBody(Answer):
    version: str = Field(description="Version of the server.")
    api: str = Field(description="Version of this API, as in its addresses without the v.")


class AgentBody(Answer):
    name: str = Field(description="Use it as `agent` of a replay, a fork or a golden.")


class AgentList(Answer):
    items: list[AgentBody]
    next_cursor: str | None


@router.get("/me", response={200: MeBody})
def get_me(request: HttpRequest) -> JsonObject:
    """Get the key this request was sent with, and its project."""
    key = key_of(request)
    return {"key": key_shape(key), "project": project_shape(key.project)}


@router.get("/version", response={200: VersionBody})
def get_version(request: HttpRequest) -> JsonObject:
    """Get the versions of the server and of its API."""
    return {"version": VERSION, "api": API_VERSION}


@router.get("/agents", auth=FullKeyHolder(), response={200: AgentList})
def list_agents(request: HttpRequest) -> JsonObject:
    """List the agents that this server's settings register."""
    return {"items": [{"name": name} for name in sorted(settings.REPLAY_AGENTS)], "next_cursor": None}
