"""Ids of the spans that a run and its steps were made of, as the assembly leaves them among the unknown fields.

The fields may come from a posted record just as well, and then hold anything.
"""

from __future__ import annotations

import re

from sessions_app.core.assembly.lone_calls import response_key
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, Step

_SPAN_ID = re.compile(r"[0-9a-f]{16}", re.ASCII)
_TWINS = 20


def span_ids_of_step(step: Step) -> list[str]:
    """Its own span first, then those that told of the same operation."""
    if "span" not in step.extra:
        return []
    told = _object(step.extra["span"])
    twins = told.get("twins")
    spans = [told, *map(_object, twins[:_TWINS] if isinstance(twins, list) else [])]
    return list(dict.fromkeys(found for span in spans if (found := _span_id(span))))


def answer_key(step: Step) -> bytes | None:
    key = response_key(_object(step.extra.get("span")).get("response_id"))
    return None if key is None else key[:8]


def span_id_of_run(run: Run) -> str | None:
    return _span_id(_object(_object(run.extra.get("trace")).get("root")))


def _span_id(span: dict[str, JsonValue]) -> str | None:
    found = span.get("span_id")
    return found if isinstance(found, str) and _SPAN_ID.fullmatch(found) else None


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
