"""Documents that people have at hand beside a recording, and what to send in their place."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue

_BY_KEYS: tuple[tuple[frozenset[str], str], ...] = (
    (
        frozenset({"added_messages", "state_changes"}),
        "This is what changed between two checkpoints. Send the checkpoints whole, with run_id and step_number.",
    ),
    (
        frozenset({"run_id", "description", "expected_outcome"}),
        "This names a run and what is expected of it, and holds no step. Send the recording of that run.",
    ),
    (
        frozenset({"attempt_number", "success"}),
        "This is the result of an attempt to reproduce a run. Send the recording of the run, and replay it here.",
    ),
    (
        frozenset({"anomalies", "total_messages"}),
        "This is an analysis of a run. Send the session file that it was made of.",
    ),
)
_CALLS = "These are tool calls without their answers. Send the session file that holds the messages, with the answers."


def refusal_of(value: JsonValue) -> str | None:
    """Why this is no recording, and what to send instead; None where nothing is known of it."""
    if isinstance(value, dict):
        return next((words for keys, words in _BY_KEYS if keys <= value.keys()), None)
    if not isinstance(value, list) or not value:
        return None
    return _CALLS if all(map(_is_bare_call, value)) else _refusal_of_first(value[0])


def _refusal_of_first(value: JsonValue) -> str | None:
    return refusal_of(value) if isinstance(value, dict) else None


def _is_bare_call(value: JsonValue) -> bool:
    return isinstance(value, dict) and value.keys() == {"tool", "args"}
