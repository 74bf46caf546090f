"""What a coding agent is told when something cannot be done."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import connection
from mcp.server.mcpserver.exceptions import ToolError

from sessions_app.api.errors import Refused
from sessions_app.core.errors import ReplayProductError

P = ParamSpec("P")
R = TypeVar("R")


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
