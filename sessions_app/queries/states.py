"""The state of a run for pages: changes of it and snapshots, and what stood beside it at a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from sessions_app import models
from sessions_app.core import run as core
from sessions_app.core.checkpoints import model_config, newest_request
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import read_header
from sessions_app.core.payload import JsonObject
from sessions_app.core.state_history import StateHistory
from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.load import header_of, initial_state, state_change, steps_with_state
from sessions_app.mapping.pieces import step_texts
from sessions_app.queries.run_shapes import shape_of
from sessions_app.queries.steps import GonePayload, StoredOrGone, chain_of, step_body

TOOL_CALLS = 50
"""The newest ones, which a checkpoint shows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """A step at which the agent's whole state was recorded."""

    step: int
    label: str | None
    is_automatic: bool


@dataclass(frozen=True, kw_only=True)
class RunState:
    """All that was recorded of a run's state."""

    history: StateHistory
    names: dict[int, str]
    """Of the steps that said something of the state, by their index."""
    snapshots: tuple[Snapshot, ...]


def state_of(run: models.Run, *, until: int | None = None) -> RunState:
    """Three queries, whatever the run holds; `until` leaves out what later steps did.

    Raises `PayloadMissing` when the bytes of the initial state are gone.
    """
    rows = [row for row in steps_with_state(run) if until is None or row.index <= until]
    changes, names, snapshots = [], {}, []
    for row, text in zip(rows, step_texts(run.content, rows), strict=True):
        fields = Fields(text)
        if (change := state_change(fields)) is not None:
            changes.append((row.index, change))
            names[row.index] = row.name
            snapshots += _snapshot(row.index, fields)
    history = StateHistory(initial_state(run), changes)
    return RunState(history=history, names=names, snapshots=tuple(snapshots))


def _snapshot(index: int, fields: Fields) -> list[Snapshot]:
    """What our recorder says of one (docs/record-format.md)."""
    said = fields.value("snapshot")
    if not isinstance(said, dict):
        return []
    label = said.get("label")
    is_automatic = said.get("automatic") is True
    return [Snapshot(step=index, label=label if isinstance(label, str) else None, is_automatic=is_automatic)]


@dataclass(frozen=True, kw_only=True)
class AtStep:
    """What an agent had behind it after a step; the state is found by `state_of`."""

    step: int
    name: str
    facts: core.Run
    """The run without its steps; its payloads were not read."""
    request_step: int | None
    """The newest request to the model, None before the first one."""
    model_config: JsonObject
    messages: int | None
    """None when they were not captured."""
    tool_calls: tuple[StepSummary, ...]
    """The newest `TOOL_CALLS`, in their order."""
    tool_count: int
    failed_count: int
    tool_ms: float | None
    steps: int
    """Counted as lists count them: without steps of kind `other`."""

    @cached_property
    def earlier_calls(self) -> int:
        return self.tool_count - len(self.tool_calls)


def at_step(run: models.Run, step: int) -> AtStep:
    """The step must be there."""
    facts = read_header(header_of(run.content), StoredOrGone({}), prior=None, steps=(), final=None)
    shape = shape_of(run)
    asked = newest_request(shape, step)
    request = None if asked is None else run.step(asked.index)
    calls = [row for row in run.steps[:step] if row.kind == "tool"]
    took = [row.duration_ms for row in calls if row.duration_ms is not None]
    return AtStep(
        step=step,
        name=run.steps[step - 1].name,
        facts=facts,
        request_step=None if asked is None else asked.index,
        model_config=_config(run, facts, request),
        messages=_messages(run, request),
        tool_calls=tuple(calls[-TOOL_CALLS:]),
        tool_count=len(calls),
        failed_count=sum(row.has_error for row in calls),
        tool_ms=sum(took) if took else None,
        steps=sum(each.index <= step and each.kind != "other" for each in shape.steps),
    )


def _config(run: models.Run, facts: core.Run, request: StepSummary | None) -> JsonObject:
    body = None if request is None else step_body(run, request)
    if body is None or not isinstance(body.call, core.ModelCall) or not isinstance(body.call.settings, GonePayload):
        return model_config(facts, body)
    known = replace(body, call=replace(body.call, settings=None))
    return model_config(facts, known) | {"settings": "no longer stored"}


def _messages(run: models.Run, request: StepSummary | None) -> int | None:
    prior = run.content.prior_node
    is_captured = run.model_call_count or prior is not None if request is None else request.input_node is not None
    if not is_captured:
        return None
    node = prior if request is None else request.output_node
    return len(chain_of(run, node).messages)
