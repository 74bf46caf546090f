"""Whose key opens the tools."""

from __future__ import annotations

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import ApiKey
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import find_key, how_it_ended


class KeyRefused(ReplayProductError):
    """The key is unknown, revoked or expired."""


class KeyMayOnlySend(KeyRefused):
    """It is of the scope *ingest*."""


def key_in_force(text: str) -> ApiKey:
    """Asked for at each call, so that a revoked key ends at once. Raises `KeyRefused`, also as `KeyMayOnlySend`."""
    key = find_key(text) if text else None
    if key is None:
        ended = how_it_ended(text)
        why = f"This key {ended}" if ended else "This is not a valid key of this server"
        raise KeyRefused(f"{why}; the page Send data makes keys.")
    if key.scope == KeyScope.INGEST:
        raise KeyMayOnlySend("This key may only send recordings; one that also reads and replays is needed.")
    return key
