"""Hooks of the team's that may change what a tool gave. Where the tool is frozen they do not run: what they made of its
answer then is in the recorded one, and what they would make of it today is not known. The observed run says so."""

from __future__ import annotations

from typing import Any

from pydantic_ai.capabilities import AbstractCapability, Hooks

from replay_recorder.context import current_place

_BEHIND = ("after_tool_execute", "wrap_tool_execute", "on_tool_execute_error")
_NOT_THEIRS = ("pydantic_ai.", "replay_recorder.")


class HooksBehind:
    """Those of one replay, such as `Redacts.after_tool_execute`."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def look(self, root: AbstractCapability[Any] | None) -> None:
        """A call came to its tool; `root` holds all capabilities."""
        found: set[str] = set()

        def look(capability: AbstractCapability[Any]) -> None:
            found.update(f"{type(capability).__name__}.{hook}" for hook in _BEHIND if _has(capability, hook))

        if root is not None:
            root.apply(look)
        place = current_place()
        if found - self._names and place is not None:
            self._names |= found
            place.run.put(hooks_not_run=sorted(self._names))


def _has(capability: AbstractCapability[Any], hook: str) -> bool:
    """`Hooks` has what was registered with it."""
    if type(capability) is Hooks:
        return bool(capability._get(hook))
    return not str(getattr(type(capability), hook).__module__).startswith(_NOT_THEIRS)
