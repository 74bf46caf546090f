"""Hooks of the team's that may change what a tool gave. Where the tool is frozen they do not run: what they made of its
answer is in the recorded one, and of today's nothing is known."""

from __future__ import annotations

from typing import Any

from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.tools import RunContext

_BEHIND = ("after_tool_execute", "wrap_tool_execute", "on_tool_execute_error")
_LIBRARY = "pydantic_ai."


def hooks_behind_tools(ctx: RunContext[Any], own: AbstractCapability[Any]) -> frozenset[str]:
    """Such as `Redacts.after_tool_execute`, without those of the replay itself."""
    found: set[str] = set()

    def look(capability: AbstractCapability[Any]) -> None:
        if capability is not own:
            found.update(f"{type(capability).__name__}.{hook}" for hook in _BEHIND if _has(capability, hook))

    if ctx.root_capability is not None:
        ctx.root_capability.apply(look)
    return frozenset(found)


def _has(capability: AbstractCapability[Any], hook: str) -> bool:
    """Those of the library that only watch are none; `Hooks` has what was registered with it."""
    if type(capability) is Hooks:
        return bool(capability._get(hook))
    made_by = getattr(type(capability), hook).__module__
    return not str(made_by).startswith(_LIBRARY)
