"""Bearer keys. A key belongs to one project, and nothing outside it exists for its holder."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja.security import HttpBearer

from sessions_app.api.errors import Refused
from sessions_app.models import ApiKey, Project
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import find_key, how_it_ended


class KeyHolder(HttpBearer):
    """Any key that is not revoked; without one the answer is 401."""

    openapi_bearerFormat = "rpk_…"
    openapi_description = "Any key of a project, as the page Send data makes them."

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        return known_key(token)


class FullKeyHolder(KeyHolder):
    """A key that may also read; ingest keys may only send."""

    openapi_description = "A key of the scope *full* or *admin*."

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        key = known_key(token)
        if key is not None and key.scope == KeyScope.INGEST:
            words = "This key may only send recordings; the page Send data makes keys that also read and replay."
            raise Refused(403, "wrong_scope", words)
        return key


class AdminKeyHolder(KeyHolder):
    """A key that also manages its project."""

    openapi_description = "A key of the scope *admin*."

    def authenticate(self, request: HttpRequest, token: str) -> ApiKey | None:
        key = known_key(token)
        if key is not None and key.scope != KeyScope.ADMIN:
            raise Refused(403, "wrong_scope", "This needs a key that also manages the project: one of the scope admin.")
        return key


def known_key(token: str) -> ApiKey | None:
    """None for a key that never was. Raises `Refused` for one that ended."""
    key = find_key(token)
    if key is None and (ended := how_it_ended(token)):
        raise Refused(401, "unauthorized", f"This key {ended}; the page Send data makes keys.")
    return key


def sent_key(request: HttpRequest) -> str:
    """The bearer key that a request was sent with; empty without one. For addresses that are no operations of the API,
    where ninja reads it."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def project_of(request: HttpRequest) -> Project:
    """The project that the request's key belongs to."""
    return key_of(request).project


def key_of(request: HttpRequest) -> ApiKey:
    """The key that the request was sent with."""
    return cast(ApiKey, request.auth)  # type: ignore[attr-defined]  # put there by ninja
