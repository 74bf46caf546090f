"""Checkpoints: all that is needed to go on from a step, and what happened to one value of the state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import Answer, ErrorAnswer, Moment, PageSize
from sessions_app.api.shapes import error_body, moment, shown
from sessions_app.core.checkpoints import checkpoint_without_state, newest_request, state_digest
from sessions_app.core.compare.json_diff import MISSING
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Checkpoint, ModelCall, Run, Step, ToolCall
from sessions_app.core.state import InPlace, PointerError, StateTooLarge, read_pointer
from sessions_app.core.state_history import StateHistory, ValueChange
from sessions_app.mapping.load import load_run
from sessions_app.queries.states import Snapshot, state_of

router = Router(auth=FullKeyHolder(), tags=["checkpoints"])


class CheckpointRun(Answer):
    user_id: str | None
    started_at: Moment | None
    agent_version: str | None


class CheckpointCall(Answer):
    step: int
    name: str
    arguments: Any
    result: Any
    error: dict[str, Any] | None
    duration_ms: float | None


class SnapshotBody(Answer):
    step: int
    label: str | None
    automatic: bool


class CheckpointBody(Answer):
    run_id: str
    step: int
    run: CheckpointRun
    messages: list[Any] | None = Field(description="As recorded, oldest first; null when they were not captured.")
    tool_calls: list[CheckpointCall] = Field(description="Tool calls up to the step.")
    model_settings: dict[str, Any] = Field(
        alias="model_config", description="model, provider, region, settings and prompt_version of the newest request."
    )
    state: Any
    state_digest: str | None = Field(description="SHA-256 of the state's canonical JSON.")
    state_error: str | None = Field(description="Why the state cannot be rebuilt.")
    snapshots: list[SnapshotBody] = Field(description="Snapshots taken up to the step.")


class StateChangeBody(Answer):
    step: int
    kind: str = Field(description="add, replace or remove")
    before: Any
    after: Any
    between: bool = Field(description="true: it happened between the previous step and this one.")


class StateChanges(Answer):
    run_id: str
    path: str
    items: list[StateChangeBody]
    next_cursor: str | None
    not_known_from: int | None = Field(description="Step whose recorded change does not fit the state.")


@router.get("/runs/{path:run_id}/checkpoints/{step}", response={200: CheckpointBody}, by_alias=True)
def get_checkpoint(request: HttpRequest, run_id: str, step: int) -> JsonObject:
    """Get messages, tool calls, model settings and state as they were after a step."""
    row = find_run(request, run_id)
    run = load_run(row)
    if not 1 <= step <= len(run.steps):
        raise not_found("step")
    point, kept = checkpoint_without_state(run, step), state_of(row, until=step)
    return {
        "run_id": run.run_id,
        "step": step,
        "run": {"user_id": run.user_id, "started_at": moment(run.started_at), "agent_version": point.agent_version},
        "messages": _messages(run, point),
        "tool_calls": [_call(each) for each in point.tool_calls],
        "model_config": point.model_config,
        **_state(kept.history, step),
        "snapshots": [_snapshot(each) for each in kept.snapshots],
    }


def _state(history: StateHistory, step: int) -> JsonObject:
    """With its digest, or with the reason why it cannot be said."""
    state, problem = history.state_after(step), history.broken.message if history.broken else None
    try:
        digest = state_digest(state)
    except RecursionError:
        state, digest, problem = None, None, "The state is nested too deep to be written."
    return {"state": state, "state_digest": digest, "state_error": problem}


def _messages(run: Run, point: Checkpoint) -> list[JsonValue] | None:
    request = newest_request(run, point.step)
    call = request.call if request else None
    was_asked = call.history is not None if isinstance(call, ModelCall) else bool(run.model_calls or run.prior)
    return [message.value for message in messages(point.history)] if was_asked else None


def _call(step: Step) -> JsonObject:
    call = step.call if isinstance(step.call, ToolCall) else None
    return {
        "step": step.index,
        "name": step.name,
        "arguments": shown(call.arguments if call else None),
        "result": shown(call.result if call else None),
        "error": error_body(step.error),
        "duration_ms": step.duration_ms,
    }


def _snapshot(snapshot: Snapshot) -> JsonObject:
    return {"step": snapshot.step, "label": snapshot.label, "automatic": snapshot.is_automatic}


@router.get("/runs/{path:run_id}/state", response={200: StateChanges, 413: ErrorAnswer})
def list_state_changes(
    request: HttpRequest, run_id: str, path: str = "", cursor: str | None = None, limit: PageSize = 100
) -> JsonObject:
    """List each change of a value in the state, in order. Without `path`, of the whole state."""
    row = find_run(request, run_id)
    place, start = _place(path), _start(cursor)
    history = state_of(row).history
    found = _kept(history.changes_of(place, keep=InPlace().value, start=start), limit + 1)
    return {
        "run_id": row.run_id,
        "path": path,
        "items": [_change(each) for each in found[:limit]],
        "next_cursor": str(start + limit) if len(found) > limit else None,
        "not_known_from": history.broken.step if history.broken else None,
    }


def _kept(changes: Iterator[ValueChange], limit: int) -> list[ValueChange]:
    try:
        return list(islice(changes, limit))
    except StateTooLarge:
        words = "The values of these changes are too large together; ask for fewer, or for a path further down."
        raise Refused(413, "too_large", words, "limit") from None


def _place(path: str) -> tuple[str, ...]:
    try:
        return tuple(read_pointer(path))
    except PointerError as error:
        raise Refused(400, "bad_parameter", f"path: {error}.", "path") from None


def _start(cursor: str | None) -> int:
    if cursor is not None and not (cursor.isdecimal() and cursor.isascii() and len(cursor) < 10):
        raise Refused(400, "bad_cursor", "The cursor is not one that this server gave.", "cursor")
    return int(cursor or 0)


def _change(change: ValueChange) -> JsonObject:
    before, after = (None if value is MISSING else value for value in (change.before, change.after))
    return {
        "step": change.step,
        "kind": change.kind,
        "before": before,
        "after": after,
        "between": change.is_between,
    }
