"""The HTTP of a model's step, in which a provider says again what the step says, at places of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sessions_app.core.compare.json_diff import Difference
from sessions_app.core.compare.payload_fields import FieldComparer
from sessions_app.core.compare.strict import read_json
from sessions_app.core.compare.volatile import VolatileRules
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.spans.provider_messages.streams import events_in

_ASKED = r"^http\.request_body\."
_ANSWERED = r"^http\.response_body(?:\[\d+\])?(?:\.response|\.message|\.item)?"
"""A document, or an event of a stream and what stands in it."""
_PLACES = {
    "provider-response-id": re.compile(
        rf"{_ANSWERED}(?:\.output\[\d+\])?\.(?:id|item_id|responseId|obfuscation)$"
        rf"|{_ASKED}(?:previous_response_id|input\[\d+\]\.id)$"
    ),
    "provider-time": re.compile(rf"{_ANSWERED}\.(?:created|created_at|completed_at|createTime)$"),
    "tool-call-id": re.compile(
        rf"{_ASKED}messages\[\d+\]\.(?:tool_calls\[\d+\]\.id|tool_call_id|content\[\d+\]\.(?:id|tool_use_id))$"
        rf"|{_ASKED}input\[\d+\]\.call_id$"
        rf"|{_ANSWERED}\.choices\[\d+\]\.(?:message|delta)\.tool_calls\[\d+\]\.id$"
        rf"|{_ANSWERED}(?:(?:\.output\[\d+\])?\.call_id|(?:\.content\[\d+\]|\.content_block)\.id)$"
    ),
}
"""Where the HTTP of OpenAI, Anthropic and Google has what these rules mean. Arguments of calls are none of these."""


def with_places_in_http(rules: VolatileRules) -> VolatileRules:
    """The rules that are in force, at their places in a provider's HTTP as well."""
    there = (replace(rule, place=_PLACES[rule.key], ending="") for rule in rules if rule.key in _PLACES)
    return (*rules, *there)


def answers(fields: FieldComparer, path: str, left: Payload | None, right: Payload | None) -> Iterator[Difference]:
    """Bodies of answers; streams are compared event by event."""
    one, other = _events(left), _events(right)
    if one is None or other is None or one == other:
        return fields.payloads(path, left, right)
    return fields.present(path, one, other)


def _events(body: Payload | None) -> list[JsonValue] | None:
    events = events_in(body.as_text()) if body is not None and body.is_text else None
    return None if events is None else [_read(event) for event in events]


def _read(event: str) -> JsonValue:
    try:
        return read_json(event)
    except ValueError:
        return event
