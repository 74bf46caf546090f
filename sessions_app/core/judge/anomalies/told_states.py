"""What an answer says of the state of what it was asked for: refused, or not over yet."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.reading import value_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import ToolCall

STATE_KEYS = frozenset({"status", "state", "decision", "result", "outcome", "verdict", "approval"})

REFUSED = frozenset({"rejected", "declined", "denied", "refused", "disapproved", "not_approved"})

UNFINISHED = frozenset(
    {"pending", "queued", "waiting", "running", "processing", "in_progress", "in progress", "started", "starting"}
)


def told_states(call: ToolCall) -> Iterator[tuple[str, str]]:
    """Each state that an answer gives, with its key; also of the one record that stands in it."""
    told = value_of(call.result)
    if isinstance(told, dict):
        for record in (told, *_records(told)):
            yield from ((key, item.strip().lower()) for key, item in _states(record))


def _records(told: JsonObject) -> list[JsonObject]:
    inner = [item for item in told.values() if isinstance(item, dict)]
    return inner if len(inner) == 1 else []


def _states(record: JsonObject) -> Iterator[tuple[str, str]]:
    yield from ((key, item) for key, item in record.items() if key.lower() in STATE_KEYS and isinstance(item, str))


def is_unfinished(call: ToolCall) -> bool:
    return any(state in UNFINISHED for _, state in told_states(call))
