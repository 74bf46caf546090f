"""Saved snapshots of an agent's state, one or a list of them in the order in which they were taken.

    {"step_number": 2, "memory": […], "context_variables": {…},
     "tool_results": [{"step": 1, "tool": "lookup_order", "args": {…}, "result": …}, …], "iteration_count": 2}

The results that a snapshot holds are the run's tool steps, and the snapshot is a step with the state behind them.
Where an agent went back to an earlier snapshot, the results that it took back stand in the snapshots before.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.fields import Fields, as_array
from sessions_app.core.formats.tool_list import is_call, read_call
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, JsonValue, Payload, sha256_hex
from sessions_app.core.run import OtherCall, Run, StateChange, Step
from sessions_app.core.state import diff_state

SOURCE = "state-snapshots"
SNAPSHOT_KEYS = {"step_number", "memory", "context_variables", "tool_results", "iteration_count"}
_EMPTY: JsonObject = {
    "step_number": 0,
    "memory": [],
    "context_variables": {},
    "tool_results": [],
    "iteration_count": 0,
}


def matches(value: JsonValue) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) and item.keys() >= SNAPSHOT_KEYS for item in items)


def parse_snapshots(content: bytes, limits: Limits = Limits()) -> Run:
    is_list = content.lstrip()[:1] == b"["
    raw = as_array(content, "the document") if is_list else [content]
    run_id = f"run-{sha256_hex(content)[:16]}"
    writer = _Writer(limits)
    for position, slice_ in enumerate(raw):
        writer.take(Fields(slice_, f"[{position}]" if is_list else ""))
    return Run(
        run_id=run_id,
        session_id=run_id,
        status="cut_off",
        source_format=SOURCE,
        initial_state=Payload.of_json(_EMPTY),
        steps=tuple(writer.steps),
    )


class _Writer:
    """Takes the snapshots in their order."""

    def __init__(self, limits: Limits) -> None:
        self.steps: list[Step] = []
        self._state: JsonValue = _EMPTY
        self._results: list[JsonValue] = []
        self._limits = limits

    def take(self, fields: Fields) -> None:
        state = {name: fields.value(name) for name in fields.names() if name != "label"}
        self._add_results(fields)
        label = fields.name("label")
        said: JsonObject = {"snapshot": {"label": label, "automatic": False}} if label else {}
        step = Step(
            index=len(self.steps) + 1,
            name=label or f"snapshot of step {state['step_number']}",
            call=OtherCall(),
            state=StateChange(after=tuple(diff_state(self._state, state))),
            extra=said,
        )
        self._append(step)
        self._state = state

    def _add_results(self, fields: Fields) -> None:
        """Those that the snapshot before did not hold."""
        rows = fields.children("tool_results") or ()
        results: list[JsonValue] = fields.value("tool_results") or []
        known = 0
        while known < min(len(self._results), len(results)) and self._results[known] == results[known]:
            known += 1
        for row, value in list(zip(rows, results, strict=True))[known:]:
            if not is_call(value):
                raise row.error("tool", "is required beside args and result")
            self._append(read_call(row, len(self.steps) + 1))
        self._results = results

    def _append(self, step: Step) -> None:
        if len(self.steps) == self._limits.max_steps:
            raise RecordTooLarge(f"The snapshots hold more than {self._limits.max_steps} steps.")
        self.steps.append(replace(step, index=len(self.steps) + 1))
