"""A replay that waits: what it asks for, where it stands, and what was recorded that comes near."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from sessions_app.core.compare.json_diff import differences
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import ReplayQueue
from sessions_app.queries.code_places import why_not_forked
from sessions_app.web.render import spelled
from sessions_app.web.render.changes import Field, field_of
from sessions_app.web.render.tree import Node, build_tree
from sessions_app.web.replays.recorded_here import last_message, recorded_here
from sessions_app.web.run_pages import run_address
from sessions_app.web.steps.states import states_around

SHOWN_DIFFERENCES = 20
TWINS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Twin:
    """A recorded call that comes near the one asked for; its answer can be given in its place."""

    run_id: str
    step: int
    address: str
    fields: tuple[Field, ...]
    """Arguments that differ."""
    is_same_run: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownStop:
    """Where a replay waits, and for what."""

    at: int
    kind: str
    """`tool` or `model`."""
    step: int
    name: str
    call_id: str | None
    arguments: Node | None
    call: str
    """Arguments on one line."""
    is_unknown: bool
    """Nothing could answer; otherwise it was paused on purpose."""
    breakpoint: str | None
    """None when it was asked for one step."""
    messages: int | None
    messages_address: str | None
    fork_address: str
    twins: tuple[Twin, ...]
    token: str
    """Names what is asked for, so that an answer cannot go to something else."""

    @property
    def is_model(self) -> bool:
        return self.kind == "model"

    @property
    def sentence(self) -> str:
        if not self.is_unknown:
            return f"Paused before step {self.step}: {self.name}"
        if self.is_model:
            return f"Stopped at step {self.step}: the model's answer is unknown"
        return f"Stopped at step {self.step}: the answer of {self.name} to {self.call} is unknown"


def stop_of(project: Project, replay: Replay) -> ShownStop | None:
    """None for a replay that does not wait."""
    found = replay.stopped_at
    if not found or not (replay.state == "paused" or replay.waits_for_answer):
        return None
    arguments, step = found.get("arguments"), found.get("step") or 1
    near = (found.get("nearest") or [])[:TWINS] if found["kind"] == "tool" else []
    spelled_out = spelled.of_value(arguments)
    return ShownStop(
        at=found["at"],
        kind=found["kind"],
        step=step,
        name=found.get("name") or found["kind"],
        call_id=found.get("call_id"),
        arguments=build_tree(spelled_out) if found["kind"] == "tool" else None,
        call=spelled.compact(spelled_out),
        is_unknown=found.get("why") == "unknown",
        breakpoint=found.get("breakpoint"),
        messages=found.get("messages"),
        messages_address=_messages_address(project, replay),
        fork_address=_fork_address(project, replay, step),
        twins=tuple(_twin(project, each, arguments) for each in near),
        token=f"{found['at']}-{found.get('asked', '')}",
    )


def stop_context(project: Project, replay: Replay) -> dict[str, Any]:
    """The stop with the state at that moment, and what keeps it from another answer; empty for a replay that does not
    wait."""
    stop = stop_of(project, replay)
    if stop is None:
        return {}
    made = replay.produced_run
    not_edited = why_not_forked(replay.run) if replay.queue == ReplayQueue.CODE else None
    state = states_around(made, len(made.steps)).after if made else None
    return {
        "stop": stop,
        "state": state,
        "not_edited": not_edited,
        "recorded_here": recorded_here(replay, stop.kind, stop.step),
        "last_message": last_message(made) if stop.is_model else None,
    }


def argument_fields(recorded: JsonValue, asked: JsonValue) -> tuple[Field, ...]:
    """Arguments of a recorded call that differ from those asked for."""
    found = differences(recorded, asked, path="args")
    return tuple(
        field_of(each.path, each.left, each.right, note=each.note)
        for _, each in zip(range(SHOWN_DIFFERENCES), found, strict=False)
    )


def _twin(project: Project, near: JsonObject, asked: JsonValue) -> Twin:
    session = reverse("session", args=[project.slug, near["session_id"]])
    return Twin(
        run_id=near["run_id"],
        step=near["step"],
        address=f"{session}?{urlencode({'run': near['run_id'], 'step': near['step']})}",
        fields=argument_fields(near.get("arguments"), asked),
        is_same_run=bool(near.get("is_same_run")),
    )


def _messages_address(project: Project, replay: Replay) -> str | None:
    made = replay.produced_run
    return run_address(made, project, view="messages", step=len(made.steps)) if made and made.steps else None


def _fork_address(project: Project, replay: Replay, step: int) -> str:
    """Of the run as far as it has come; a step that it does not have yet is one of its parent."""
    made = replay.produced_run
    run = made if made is not None and made.steps else replay.run
    return run_page("fork", project, run, step=min(step, max(len(run.steps), 1)))


def run_page(name: str, project: Project, run: Run, *, step: int | None = None) -> str:
    """A page under the session's that is about one of its runs."""
    address = reverse(name, args=[project.slug, run.session.session_id])
    query = urlencode({"run": run.run_id} | ({} if step is None else {"step": str(step)}))
    return f"{address}?{query}"
