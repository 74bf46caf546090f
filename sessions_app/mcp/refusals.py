"""What a coding agent is told when something cannot be done, and whose key opens what."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connection
from mcp.server.mcpserver.exceptions import ToolError

from sessions_app.api.errors import Refused
from sessions_app.core.errors import ReplayProductError
from sessions_app.models import ApiKey
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import find_key

P = ParamSpec("P")
R = TypeVar("R")


class KeyRefused(ReplayProductError):
    """The key is unknown, revoked or expired, or may only send."""


def key_in_force(text: str) -> ApiKey:
    """Asked for at each call, so that a revoked key ends at once. Raises `KeyRefused`."""
    key = find_key(text) if text else None
    if key is None:
        raise KeyRefused("REPLAY_KEY is not a valid key of this server; the page Send data makes keys.")
    if key.scope == KeyScope.INGEST:
        raise KeyRefused("REPLAY_KEY may only send recordings; a key that also reads and replays is needed.")
    return key


def in_words(tool: Callable[P, R]) -> Callable[P, R]:
    """What is refused is told to the agent. Tools run in threads, and each gives its connection back."""

    @wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return tool(*args, **kwargs)
        except (Refused, ReplayProductError) as error:
            field = getattr(error, "field", None)
            raise ToolError(f"{field}: {error}" if field else str(error)) from None
        finally:
            if not connection.in_atomic_block:
                connection.close()

    return answer
