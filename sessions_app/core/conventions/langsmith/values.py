"""Inputs and outputs of runs: JSON inside texts, and what decorators of functions wrap around a value."""

from __future__ import annotations

import json

from sessions_app.core.conventions.wrapped_tools import unwrapped_arguments
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonValue


def structured(value: JsonValue) -> JsonValue:
    """JSON objects and lists inside a text; other texts are words, also where they look like a number."""
    found = parsed(value)
    return found if isinstance(found, dict | list) else value


def returned(value: JsonValue) -> JsonValue:
    """What a function gave back: also a number or a truth value, if it is spelled as JSON writers do."""
    found = parsed(value)
    is_same = isinstance(found, dict | list) or json.dumps(found, ensure_ascii=False) == value
    return found if is_same else value


def first_argument(value: JsonValue) -> JsonValue:
    """The only argument of a function; all of them where there are several."""
    value = unwrapped_arguments(value).value
    if isinstance(value, dict) and value.keys() == {"args", "kwargs"} and not value["kwargs"]:
        value = value["args"]
        return value[0] if isinstance(value, list) and len(value) == 1 else value
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value


def unwrapped_output(value: JsonValue) -> JsonValue:
    """LangSmith keeps what a function gave back as `{"output": value}` unless it is an object itself."""
    return value["output"] if isinstance(value, dict) and value.keys() == {"output"} else value
