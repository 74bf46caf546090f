"""Runs whose trouble is in the middle: the story leads to it. Runs that went well: it accuses nobody."""

from __future__ import annotations

import re

import pytest

from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.story import story
from sessions_app.core.run import ErrorInfo, HttpExchange, Run, Step
from tests.core.test_judge_runs import make_run, model, payload, tool

DEADLOCK = ErrorInfo(type="OperationalError", message="deadlock detected")
DONE = payload("All 100 tables were migrated.")


def migrated(at: int | None, *, tables: int = 100) -> list[Step]:
    """One table after the other; the one at this step met a deadlock."""
    steps = [step for n in range(tables) for step in (model(), tool("migrate", {"table": f"t_{n}"}, {"rows": n}))]
    if at is not None:
        steps[at - 1] = tool("migrate", {"table": "t_x"}, None, error=DEADLOCK)
    return [*steps, model()]


def cancelled(output: str) -> Run:
    steps = [model(), tool("cancel", {"id": "sub_91"}, http=HttpExchange(status=503)), model()]
    return make_run(*steps, output=payload(output))


def told(run: Run) -> str:
    return story(run, find_anomalies(run))


def place_in(line: str) -> int | None:
    found = re.search(r"first anomaly at step (\d+)|\bstep (\d+) failed(?:, and the answer says so)?$", line)
    return None if found is None else int(found[1] or found[2])


def found_nothing(*, then: Step) -> Run:
    empty = tool("search", {"q": "refunds"}, {"docs": [], "count": 0})
    return make_run(model(), tool("open_ticket", {"id": 7}, {"ok": True}), model(), empty, model(), then, model())


FAULTS = {
    "a deadlock behind 147 good steps": (make_run(*migrated(148), output=DONE), 148),
    "a deadlock in a run of 2,001": (make_run(*migrated(1_148, tables=1_000), output=DONE), 1_148),
    "a failure that the answer owns up to": (cancelled("I could not cancel sub_91, the service answered 503."), 2),
    "a failure that the answer owns up to in German": (cancelled("Das Abo konnte ich leider nicht kündigen."), 2),
    "a failure that the answer hides": (cancelled("Your subscription was cancelled."), 2),
    "nothing found and asked again": (
        found_nothing(then=tool("search", {"q": "refunds"}, {"docs": [], "count": 0})),
        4,
    ),
    "an answer of a tool that was cut off": (
        make_run(*migrated(None)[:20], tool("price", {}, '{"price": 12'), model()),
        21,
    ),
    "a call for somebody else": (
        make_run(*migrated(None)[:30], tool("orders", {"user_id": "u_2"}, []), model(), user_id="u_1"),
        31,
    ),
    "no answer": (make_run(model(), tool("search", {"q": "x"}, {"docs": [1]}), model(), output=None), 3),
    "a payment that was made twice": (
        make_run(
            model(),
            tool("pay", {"id": 1}, {"charge": "a"}, extra={"tool_kind": "write"}),
            model(),
            tool("pay", {"id": 1}, {"charge": "b"}, extra={"tool_kind": "write"}),
            model(),
        ),
        4,
    ),
    "another table that went well heals nothing": (
        make_run(*migrated(10)[:14], *migrated(None)[:4], model(), output=DONE),
        10,
    ),
}


@pytest.mark.parametrize(("run", "at"), FAULTS.values(), ids=FAULTS)
def test_the_story_leads_to_where_it_went_wrong(run: Run, at: int):
    assert place_in(told(run)) == at


HEALTHY = {
    "a long migration": make_run(*migrated(None), output=DONE),
    "a call that was made again and went well": make_run(
        model(), tool("pay", {"id": 1}, None, error=DEADLOCK), model(), tool("pay", {"id": 1}, {"ok": True}), model()
    ),
    "arguments that were corrected": make_run(
        model(), tool("pay", {"id": "1"}, "id must be a number", outcome="retried"), model(),
        tool("pay", {"id": 1}, {"ok": True}), model(),
    ),
    "asking until it is done": make_run(
        model(), tool("status", {"job": 4}, {"state": "running"}), model(),
        tool("status", {"job": 4}, {"state": "done"}), model(),
    ),
    "nothing wrong, in words": make_run(model(), output=payload("I checked all 14 pages and found no errors.")),
    "a tool that knows no user": make_run(
        model(tools=(payload({"name": "weather", "parameters_json_schema": {"properties": {"city": {}}}}),)),
        tool("weather", {"city": "Graz"}, {"sky": "clear"}), model(), user_id="u_1",
    ),
    "an empty list that nobody asked for again": found_nothing(then=tool("answer", {"id": 7}, {"ok": True})),
    "a short answer": make_run(model(), output=payload("Yes.")),
    "structured output": make_run(model(), output=payload({"total": 40, "failed": False})),
    "two tools at once": make_run(model(), tool("a", {"x": 1}, 1), tool("b", {"x": 1}, 2), model()),
}  # fmt: skip


@pytest.mark.parametrize("run", HEALTHY.values(), ids=HEALTHY)
def test_the_story_of_a_run_that_went_well_accuses_nobody(run: Run):
    assert place_in(told(run)) is None


def test_a_failure_is_told_whatever_came_later():
    assert told(FAULTS["a deadlock behind 147 good steps"][0]).endswith("· answered · step 148 failed")
    assert told(HEALTHY["a call that was made again and went well"]).endswith(
        "· step 2 failed, then succeeded on retry"
    )
    many = make_run(*[tool("pay", {"id": n}, None, error=DEADLOCK) for n in range(5)], model(), output=DONE)
    assert "· 5 steps from step 1 failed ·" in told(many)
