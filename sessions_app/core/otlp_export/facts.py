"""What the record format says of a run and its steps beyond GenAI: the record's own fields without those said there."""

from __future__ import annotations

from sessions_app.core.formats.fields import as_object
from sessions_app.core.formats.json_writer import object_text, scalar
from sessions_app.core.formats.native import header_fields
from sessions_app.core.formats.native_steps import Table, write_step
from sessions_app.core.formats.values import write_value
from sessions_app.core.history import History
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, StepKind

SAID_OF_RUN = ("format", "version", "session_id", "input", "output", "model", "provider", "instructions", "user_id")
_SAID_OF_EACH = ("user_id",)
_SAID_OF_KIND: dict[StepKind, tuple[str, ...]] = {
    "model": (
        *("request", "response", "tools", "model", "answered_model", "provider", "finish_reason"),
        *("input_tokens", "output_tokens"),
    ),
    "tool": ("tool_name", "call_id", "arguments", "result"),
    "retrieval": ("query", "chunks"),
    "agent": ("arguments", "result"),
    "other": ("arguments", "result"),
}


def facts_of_run(run: Run) -> str:
    """JSON text."""
    fields = [(name, text) for name, text in header_fields(run, _InPlace()) if name not in SAID_OF_RUN]
    return object_text(fields, run.extra).decode()


def facts_of_step(step: Step) -> str:
    """JSON text."""
    said = (*_SAID_OF_EACH, *_SAID_OF_KIND[step.kind])
    return object_text([(name, text) for name, text in written_step(step).items() if name not in said]).decode()


def written_step(step: Step) -> dict[str, bytes]:
    """JSON text by field, as a record would have it."""
    return as_object(write_step(step, _InPlace()), "step")


class _InPlace:
    """Each value where it belongs; tables and chains are a record's way of being short."""

    def payload(self, payload: Payload) -> bytes:
        return write_value(payload)

    def text(self, text: str | None) -> bytes | None:
        return scalar(text)

    def shared(self, table: Table, payload: Payload) -> bytes:
        return payload.content if payload.is_json else write_value(payload)

    def history(self, history: History | None) -> bytes | None:
        return None

    def step_written(self, step: Step) -> None:
        return None
