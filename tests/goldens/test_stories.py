"""The three incidents, each kept as a golden: it fails on the agent of that day and passes on its repair, which runs as
code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from replay_goldens.trace import OF_ANOTHER_REQUEST
from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.models import Golden, GoldenRun, Project, Run
from sessions_app.services.forks import request_fork
from sessions_app.services.golden_runs import run_golden, settle
from sessions_app.services.goldens import create_golden, warnings_of
from sessions_app.services.replay_work import work_on
from tests.builders import make_project
from tests.web.records import load_example

pytestmark = pytest.mark.django_db
OWN_ORDER = {"order": "#4398", "user_id": "u_7710", "item": "Travel kettle", "status": "processing"}


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


@pytest.fixture
def shop() -> Project:
    return make_project()


def keep(run: Run, mode: str, on_difference: str, *checks: Mapping[str, object]) -> Golden:
    replay = {"mode": mode, "on_difference": on_difference}
    wanted = {"name": "story", "checks": list(map(dict, checks)), "replay": replay}
    return create_golden(run=run, wanted=wanted)


def result(golden: Golden, agent: str, children: ChildPool) -> tuple[str | None, str]:
    run = run_golden(golden, agent=agent)
    work_on(run.replay.pk, worker="test", children=children)
    found = GoldenRun.objects.select_related("golden__project", "replay__produced_run").get(pk=run.pk)
    settle([found])
    golden.refresh_from_db()
    return found.result, found.words


def test_a_check_inside_of_a_tool_keeps_a_delivered_order_from_being_cancelled(shop, children):
    run = load_example(shop, "cancel_bug")
    refused = {"kind": "result", "tool": "cancel_order", "contains": "not eligible"}
    golden = keep(run, "code_and_tools", "play_on", refused)
    assert golden.fails_on == ["cancel_5521"]

    bad, good = (result(golden, agent, children) for agent in ("order_desk", "order_desk_repaired"))

    assert bad[0] == "fail"
    assert bad[1].endswith("cancel_order answered Order ORD-5521 cancelled. Reason: changed my mind")
    assert good == ("pass", "The check passed"), good
    assert (golden.passes_on, warnings_of(golden)) == (["cancel_5521_golden_2"], [])


def test_an_answer_to_another_request_is_not_judged_and_what_the_code_did_is(shop, children):
    """Control: the agent of then makes the very requests that the answers were recorded for."""
    run = load_example(shop, "cancel_bug")
    refused = {"kind": "result", "tool": "cancel_order", "contains": "not eligible"}
    for how in ({"contains": "cancelled"}, {"not_contains": "cancelled"}, {"equals": "Refused."}):
        golden = keep(run, "code_and_tools", "play_on", refused, {"kind": "output", **how})

        found = result(golden, "order_desk_repaired", children)

        assert found[0] == "nothing_covered"
        assert found[1].endswith(f"; {OF_ANOTHER_REQUEST}")
        assert [each["passed"] for each in golden.runs.get().checks] == [True, None]

    of_then = keep(run, "code_and_tools", "play_on", {"kind": "output", "contains": "cancelled"})
    assert result(of_then, "order_desk", children) == ("pass", "The check passed")


def test_an_agent_without_the_tools_of_the_scene_cannot_run_it(shop, children):
    run = load_example(shop, "cancel_bug")
    golden = keep(run, "code_and_tools", "play_on", {"kind": "no_write"})
    known = (golden.fails_on, golden.passes_on)

    other = result(golden, "v2_with_empty_check", children)

    words = "The agent has no tool lookup_order or cancel_order, which the recorded answers call"
    assert other == ("could_not_run", words)
    assert (golden.fails_on, golden.passes_on) == known


def test_an_assistant_that_found_nothing_says_so_instead_of_searching_on(shop, children):
    run = load_example(shop, "run_xyz789")
    few = {"kind": "at_most_calls", "tool": "search_docs", "n": 3}
    says_so = {"kind": "output", "contains_any": ["don't have", "no documents"]}
    golden = keep(run, "code", "play_on", few, says_so)
    assert golden.fails_on == ["run_xyz789"]

    assert result(golden, "v2_with_empty_check", children) == ("pass", "Both checks passed")
    assert (golden.passes_on, warnings_of(golden)) == (["run_xyz789_golden_1"], [])


def test_a_search_for_the_user_alone_tells_no_order_of_another(shop, children):
    """The scene is the fork that shows how it should have gone: with other answers the model says something else."""
    run = load_example(shop, "r_8821")
    answer = {"kind": "model_answer", "step": 4, "value": {"text": "Order #4398 is processing.", "tool_calls": []}}
    order = {
        "at_step": 3,
        "changes": [{"kind": "tool_result", "step": 3, "value": [OWN_ORDER]}, answer],
        "hypothesis": "The search knows for whom it searches.",
        "expect": {"contains": "#4398"},
    }
    fork = request_fork(run=run, order=order)
    work_on(fork.pk, worker="test", children=children)
    fork.refresh_from_db()
    assert fork.produced_run is not None, fork.error

    golden = keep(fork.produced_run, "code_and_tools", "stop", {"kind": "no_value_of_other_user"})
    assert (golden.fails_on, golden.passes_on) == (["r_8821"], [fork.produced_run.run_id])

    bad, good = (result(golden, agent, children) for agent in ("order_lookup", "order_lookup_scoped"))

    assert bad[0] == "fail"
    assert bad[1].startswith("Behaves differently from step 3 on")
    assert good == ("pass", "The check passed"), good
    assert warnings_of(golden) == []
