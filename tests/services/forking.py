"""Runs to fork and replays that wait, for the tests of asking."""

import json
from dataclasses import replace
from typing import Any

from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import ReplayState
from sessions_app.services.forks import request_fork
from sessions_app.services.ingest import ingest_document
from sessions_app.services.run_store import store_assembled
from tests.agents.talking import example

EMPTY_ANSWER = {"kind": "tool_result", "step": 2, "value": []}
"""Of `cancel_bug`: model, lookup_order, model, cancel_order, model, with a state."""


def make_run(project: Project, name: str = "cancel_bug", **changes: Any) -> Run:
    return ingest_document(project, json.dumps(example(name) | changes).encode()).run


def make_order(**changes: Any) -> dict[str, Any]:
    order = {"at_step": 2, "changes": [EMPTY_ANSWER], "hypothesis": "It asks again.", "expect": {"contains": "sorry"}}
    return order | changes


def make_fork(run: Run, **changes: Any) -> Replay:
    return request_fork(run=run, order=make_order(**changes))


def tool_stop(**changes: Any) -> dict[str, Any]:
    call = {"kind": "tool", "name": "lookup_order", "call_id": "c9", "arguments": {"order_id": "ORD-1"}}
    return {"at": 4, "asked": "ab" * 32, "step": 2, "why": "unknown", "nearest": [], **call, **changes}


def model_stop(**changes: Any) -> dict[str, Any]:
    stop = {"at": 5, "asked": "cd" * 32, "kind": "model", "step": 3, "name": "gpt-4o", "why": "unknown", "nearest": []}
    return stop | changes


def stop(replay: Replay, stopped_at: dict[str, Any]) -> Replay:
    """As the engine leaves a fork that nothing could answer."""
    return _set(replay, state=ReplayState.DONE, verdict="unknown_from_step", attempt=1, stopped_at=stopped_at)


def pause(replay: Replay, stopped_at: dict[str, Any]) -> Replay:
    """As the engine leaves a replay at a breakpoint."""
    paused = stopped_at | {"why": "breakpoint", "breakpoint": "tool lookup_order"}
    return _set(replay, state=ReplayState.PAUSED, attempt=1, stopped_at=paused)


def _set(replay: Replay, **columns: Any) -> Replay:
    Replay.objects.filter(pk=replay.pk).update(**columns)
    return Replay.objects.get(pk=replay.pk)


def make_anew(run: Run) -> None:
    """As a late span does."""
    whole = load_run(run)
    first, *others = whole.steps
    grown = replace(whole, steps=(replace(first, name="came late"), *others))
    store_assembled(run.project, grown, source=b"{}", made_before=run.pk)
