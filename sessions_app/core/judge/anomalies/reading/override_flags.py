"""Arguments that tell a tool to go on where it would refuse, such as `force: true`."""

from __future__ import annotations

import re

from sessions_app.core.judge.reading import argument_key, object_of
from sessions_app.core.payload import canonical_json
from sessions_app.core.run import ToolCall

_OVERRIDES = re.compile(r"(?:force|overwrite|override|bypass|ignore|skip)(?=[A-Z_]|d?$).*")


def overrides_in(call: ToolCall) -> set[str]:
    return {key for key, item in object_of(call.arguments).items() if item is True and _OVERRIDES.fullmatch(key)}


def without_overrides(call: ToolCall) -> bytes:
    """A key for calls that are the same but for their overrides."""
    found = overrides_in(call)
    if not found:
        return argument_key(call)
    return canonical_json({key: item for key, item in object_of(call.arguments).items() if key not in found})
