"""Why an output was refused, in the words of whoever wrote its classes: Pydantic's errors name its own machinery."""

from __future__ import annotations

import re
from collections.abc import Callable

from sessions_app.core.payload import JsonObject, JsonValue

_NAMES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"function-\w+\[[^,\[\]]*\(\), ?([^\[\]]*)\]"), lambda found: found[1]),
    (re.compile(r"(?:tagged-)?union\[([^\[\]]*)\]"), lambda found: " or ".join(found[1].split(","))),
    (re.compile(r"nullable\[([^\[\]]*)\]"), lambda found: f"{found[1]} or null"),
    (re.compile(r"json\[([^\[\]]*)\]"), lambda found: f"{found[1]} as JSON"),
)
"""`function-after[check(), Ticket]` is `Ticket`, with its validator around it."""


def refusal_in_words(said: JsonValue) -> JsonValue:
    """Errors of Pydantic as one text; what a check of the team's own says as it is."""
    errors = [each for each in said if _is_error(each)] if isinstance(said, list) else []
    return "; ".join(map(_error, errors)) if errors and errors == said else said


def _is_error(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.keys() >= {"type", "loc", "msg"}


def _error(error: JsonObject) -> str:
    place = ".".join(_name(str(each)) for each in error.get("loc") or [])
    return f"{place}: {error['msg']}" if place else str(error["msg"])


def _name(place: str) -> str:
    """From the inside out, as often as there is something left to name."""
    named = place
    for pattern, name in _NAMES:
        named = pattern.sub(name, named)
    return named if named == place else _name(named)
