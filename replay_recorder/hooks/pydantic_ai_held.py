"""What a message holds, so that a later look tells whether somebody changed it in its place."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json

from replay_recorder.writing.json_text import holds_iterator


def held(value: Any) -> Any:
    """A text of whatever can be changed from inside, such as a dict; anything else as it is."""
    if value is None or isinstance(value, (str, bool, int, float, bytes)) or holds_iterator(value):
        return value
    try:
        return to_json(value, serialize_unknown=True, inf_nan_mode="constants")
    except ValueError:
        return repr(value)
