"""Forks of a recorded run for tests of pages, as the services and the engine leave their rows."""

from __future__ import annotations

from typing import Any

from sessions_app.core.replay.proof import Part
from sessions_app.models import Project, Replay, Run
from tests.proofs import make_proof
from tests.web.records import load_record, model_step, tool_step

CHANGE = {"kind": "tool_result", "step": 3, "value": {"orders": []}}
ORDER = {
    "at_step": 3,
    "changes": [CHANGE],
    "hypothesis": "It asks for the id when nothing is found.",
    "expect": {"contains": "order id"},
}
FACTS = {
    "sources": {"recorded": 2, "by_hand": 1, "borrowed": 1},
    "started_from": {"step": 3, "state_digest": None, "history_digest": "ab" * 32, "how": "history"},
    "lint": ["Message 2 answers a call that no message before it asked for."],
    "steps_after": 1,
    "expectation": {"words": "the outcome contains 'order id'", "met": True, "seen": "It ended with: Which order id?"},
    "links": [{"step": 4, "source": "borrowed", "run_id": "older", "from_step": 2}],
    "proof": make_proof(2, outcome=Part(state="not_proven", reason="differs at step 4, output")).to_json(),
    "isolation": "namespaces, read-only root, seccomp and audit hook",
    "fence": {
        "kernel": ["namespaces", "read-only root", "seccomp"],
        "held": ["network", "local sockets", "disk", "programs"],
    },
}
ASKED = "5a" * 32
UNKNOWN = {
    "at": 4,
    "asked": ASKED,
    "kind": "tool",
    "step": 4,
    "name": "lookup_order",
    "call_id": "c9",
    "arguments": {"query": "my order", "tenant": {"id": 7}},
    "messages": 5,
    "why": "unknown",
    "breakpoint": None,
    "nearest": [
        {
            "run_id": "parent",
            "session_id": "chat_1",
            "step": 2,
            "arguments": {"query": "my order", "user_id": "u_7710"},
            "differs": ["user_id", "tenant"],
            "is_same_run": True,
        }
    ],
}
PAUSED = UNKNOWN | {"name": "cancel_order", "why": "breakpoint", "breakpoint": "tool cancel_order", "nearest": []}


def load_parent(project: Project, **fields: Any) -> Run:
    steps = [
        model_step(1),
        tool_step("lookup_order", arguments={"query": "my order", "user_id": "u_7710"}, result={"orders": [1]}),
        tool_step("lookup_order", arguments={"query": "other"}, result={"orders": [2]}),
        model_step(2, after=1),
    ]
    return load_record(project, **({"run_id": "parent", "session_id": "chat_1", "steps": steps} | fields))


def load_forked(project: Project, parent: str = "parent", run_id: str = "parent_fork_0a1b2c3d", **fields: Any) -> Run:
    """What a fork at step 3 made: one answer by hand, one borrowed."""
    steps = [
        model_step(1),
        tool_step("lookup_order", arguments={"query": "my order", "user_id": "u_7710"}, result={"orders": [1]}),
        tool_step("lookup_order", arguments={"query": "other"}, result={"orders": []}, source="by_hand"),
        model_step(9, after=1, source="borrowed"),
    ]
    own = {"run_id": run_id, "session_id": "chat_1", "origin": "fork", "output": "Which order id?", "steps": steps}
    return load_record(project, **(own | {"parent": {"run_id": parent, "step": 3}} | fields))


def make_fork(run: Run, number: int = 1, **columns: Any) -> Replay:
    """A finished fork that ended as expected, unless columns say otherwise."""
    fork_id = f"{run.run_id}_fork_{number:08x}"
    found = {"mode": "fork", "state": "done", "verdict": "diverged", "order": ORDER, "facts": FACTS, "live_calls": 0}
    divergence = {"step": 3, "path": "result.orders", "recorded": [2], "replayed": []}
    own = {"fork_id": fork_id, "expectation_met": True, "divergence": divergence}
    return Replay.objects.create(
        project=run.project, run=run, content=run.content, number=number, **(found | own | columns)
    )


def make_waiting(run: Run, **columns: Any) -> Replay:
    """A fork that stopped at a call which nothing knows the answer of."""
    found = {"verdict": "unknown_from_step", "stopped_at": UNKNOWN, "expectation_met": None}
    return make_fork(run, **(found | {"divergence": {"step": 4, "path": "args"}} | columns))


def make_paused(run: Run, **columns: Any) -> Replay:
    """A fork that stands at a breakpoint."""
    found = {"state": "paused", "verdict": None, "stopped_at": PAUSED, "expectation_met": None, "divergence": None}
    return make_fork(run, **(found | columns))
