"""The state of a run for pages: changes of it and snapshots, and what stood beside it at a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from django.db.models import Count, Q, Sum

from sessions_app import models
from sessions_app.core import run as core
from sessions_app.core.checkpoints import model_config, newest_request
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import read_header
from sessions_app.core.payload import JsonObject
from sessions_app.core.state_history import StateHistory
from sessions_app.mapping.details import details
from sessions_app.mapping.load import header_of, initial_state, state_change, steps_with_state
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
    rows = steps_with_state(run)
    rows = rows if until is None else rows.filter(index__lte=until)
    changes, names, snapshots = [], {}, []
    for index, text, name in details(rows, "name"):
        fields = Fields(text)
        if (change := state_change(fields)) is not None:
            changes.append((index, change))
            names[index] = name
            snapshots += _snapshot(index, fields)
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
    tool_calls: tuple[models.Step, ...]
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
    """The same number of queries for every step and every run. The step must be there."""
    facts = read_header(header_of(run.content), StoredOrGone({}), prior=None, steps=(), final=None)
    shape = _shape(run)
    asked = newest_request(shape, step)
    request = None if asked is None else run.steps.get(index=asked.index)
    calls = run.steps.filter(kind="tool", index__lte=step)
    failed = Count("index", filter=Q(has_error=True))
    counted = calls.aggregate(all=Count("index"), failed=failed, took=Sum("duration_ms"))
    return AtStep(
        step=step,
        name=run.steps.values_list("name", flat=True).get(index=step),
        facts=facts,
        request_step=None if asked is None else asked.index,
        model_config=_config(run, facts, request),
        messages=_messages(run, request),
        tool_calls=tuple(reversed(calls.order_by("-index")[:TOOL_CALLS])),
        tool_count=counted["all"],
        failed_count=counted["failed"],
        tool_ms=counted["took"],
        steps=sum(each.index <= step and each.kind != "other" for each in shape.steps),
    )


_CALLS: dict[str, core.Call] = {
    "model": core.ModelCall(history=None, response=None),
    "tool": core.ToolCall(tool_name=""),
    "retrieval": core.Retrieval(query=None, chunks=None),
    "agent": core.AgentCall(run_id=None),
    "other": core.OtherCall(),
}


def _shape(run: models.Run) -> core.Run:
    """The run as empty steps inside one another: enough to tell the agent's own requests from those of its tools."""
    rows = run.steps.order_by("index").values_list("index", "kind", "parent")
    steps = (core.Step(index=index, name="", call=_CALLS[kind], parent=parent) for index, kind, parent in rows)
    return core.Run(run_id=run.run_id, session_id="", status="running", steps=tuple(steps))


def _config(run: models.Run, facts: core.Run, request: models.Step | None) -> JsonObject:
    body = None if request is None else step_body(request, run.project_id)
    if body is None or not isinstance(body.call, core.ModelCall) or not isinstance(body.call.settings, GonePayload):
        return model_config(facts, body)
    known = replace(body, call=replace(body.call, settings=None))
    return model_config(facts, known) | {"settings": "no longer stored"}


def _messages(run: models.Run, request: models.Step | None) -> int | None:
    is_captured = run.model_call_count or run.content.prior_node if request is None else request.input_node
    if not is_captured:
        return None
    node = run.content.prior_node if request is None else request.output_node
    return len(chain_of(run, node).messages)
