"""Fields that differ between any two runs and mean nothing: a visible list of rules.

A rule only hides a difference at a place it names, so a tool's own argument called `timestamp` is
compared like any other. What was hidden is counted. In the HTTP of a model's step some of them name further places
(see `provider_http`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sessions_app.core.payload import JsonValue

_MESSAGE = r"^(?:(?:request\.|final\.)?messages\[\d+\]|prior\[\d+\]|response|\[\d+\])"
_MESSAGE_OR_PART = _MESSAGE + r"(?:\.parts\[\d+\])?"
SAME_KEYS = "same keys, other order"
"""The note of a difference in nothing but the order of an object's keys."""
SAME_JSON = "same JSON, written otherwise"
"""The note of two JSON values that differ in nothing but spaces, escapes and exponents."""
OUTPUT_TEXT = "output-text"
SPELLED_AS_TEXT = "an object or list, and the text that spells it"
"""The note of two outputs with the same values."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VolatileRule:
    """Differences at places like this one are counted and not shown."""

    key: str
    """Stable name for addresses and the API."""
    name: str
    why: str
    ending: str
    """How the path ends; a cheap test before `place`."""
    place: re.Pattern[str]
    values: re.Pattern[str] | None = None
    """When given, the values must be texts that this matches."""
    note: str | None = None
    """When given, only differences with this note are meant."""
    are_alike: Callable[[JsonValue, JsonValue], bool] | None = None
    """When given, only values are meant that stand for the same."""

    def matches(self, path: str, left: JsonValue, right: JsonValue, note: str | None = None) -> bool:
        if not path.endswith(self.ending) or not self.place.search(path) or self.note not in (None, note):
            return False
        if self.are_alike is not None and not self.are_alike(left, right):
            return False
        return self.values is None or _all_match(self.values, left, right)


def _all_match(pattern: re.Pattern[str], *values: JsonValue) -> bool:
    texts = [value for value in values if isinstance(value, str)]
    return bool(texts) and all(pattern.match(text) for text in texts)


VolatileRules = tuple[VolatileRule, ...]
NOTHING_VOLATILE: VolatileRules = ()


def _field(key: str, name: str, why: str, *, within: str, field: str) -> VolatileRule:
    place = re.compile(within + r"\." + re.escape(field) + "$")
    return VolatileRule(key=key, name=name, why=why, ending=field, place=place)


VOLATILE_RULES: VolatileRules = (
    _field(
        "message-time",
        "time of a message or part",
        "The clock at the moment the message was made.",
        within=_MESSAGE_OR_PART,
        field="timestamp",
    ),
    _field(
        "message-run-id",
        "run id on a message",
        "The library stamps each message with the id of the run it was made in.",
        within=_MESSAGE,
        field="run_id",
    ),
    _field(
        "conversation-id",
        "conversation id on a message",
        "Made anew for each conversation.",
        within=_MESSAGE,
        field="conversation_id",
    ),
    _field(
        "provider-time",
        "time that the provider stamped",
        "The provider's clock when it answered.",
        within=_MESSAGE_OR_PART,
        field="provider_details.timestamp",
    ),
    VolatileRule(
        key="provider-response-id",
        name="ids that the provider made",
        why="Made anew by the provider for each answer and its parts.",
        ending="id",
        place=re.compile(_MESSAGE + r"\.(?:provider_response_id|parts\[\d+\]\.id)$"),
    ),
    VolatileRule(
        key="toolset-id",
        name="id of a toolset without a name",
        why="Pydantic AI makes `<toolset:…>` at random for each object.",
        ending="capability_id",
        place=re.compile(r"^(?!args|result|input|output).*\bcapability_id$"),
        values=re.compile(r"<toolset:"),
    ),
    VolatileRule(
        key="field-order",
        name="order of a message's own fields",
        why="The library writes the fields of messages and parts in an order of its own; no model sees it.",
        ending="",
        place=re.compile(_MESSAGE_OR_PART + r"(?:\.(?:usage|provider_details|retry)(?:\.details)?)?$|^parameters$"),
        note=SAME_KEYS,
    ),
    VolatileRule(
        key="json-spelling",
        name="spaces and escapes in JSON",
        why="Whoever wrote the JSON chose them; the values, and the digits of numbers, are the same.",
        ending="",
        place=re.compile(""),
        note=SAME_JSON,
    ),
    VolatileRule(
        key=OUTPUT_TEXT,
        name="structured output written as text",
        why="Whoever recorded it chose one; the values, and the digits of numbers, are the same.",
        ending="output",
        place=re.compile(r"^output$"),
        note=SPELLED_AS_TEXT,
    ),
    VolatileRule(
        key="nested-run-id",
        name="id of a nested run",
        why="Made anew for each run of an agent inside this one.",
        ending="run_id",
        place=re.compile(r"^run_id$"),
    ),
    VolatileRule(
        key="answer-source",
        name="where an answer came from",
        why="What was answered is compared; a replay gives the same answer from another source.",
        ending="source",
        place=re.compile(r"^source$"),
    ),
    VolatileRule(
        key="other-fields",
        name="fields of a step that are not compared",
        why="The record format does not know them, or they say nothing of what the step did, such as tool_kind.",
        ending="",
        place=re.compile(r"^extra\."),
    ),
    VolatileRule(
        key="step-time",
        name="start and duration of a step",
        why="No two executions take the same time.",
        ending="",
        place=re.compile(r"^(?:started_at|first_token_at|duration_ms)$"),
    ),
)
"""In force unless switched off."""

TOOL_CALL_ID = VolatileRule(
    key="tool-call-id",
    name="id of a tool call",
    why="A live model makes new ids; a replay must give the recorded ones. The id of another call is no new one.",
    ending="call_id",
    place=re.compile(_MESSAGE_OR_PART + r"\.tool_call_id$|^call_id$"),
)

ALL_RULES: VolatileRules = (*VOLATILE_RULES, TOOL_CALL_ID)


def without(keys: Iterable[str], rules: VolatileRules = VOLATILE_RULES) -> VolatileRules:
    """The rules but those that were switched off, by key."""
    off = set(keys)
    return tuple(rule for rule in rules if rule.key not in off)


def rule_for(
    rules: VolatileRules, path: str, left: JsonValue, right: JsonValue, note: str | None = None
) -> VolatileRule | None:
    """The first rule that hides a difference at this path."""
    return next((rule for rule in rules if rule.matches(path, left, right, note)), None)
