"""The line about a run, folded loops, and the budget of what could differ."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessions_app.core.factors.time import step_times
from sessions_app.core.history import extend
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.budget import nondeterminism_budget
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.reading import TIMES
from sessions_app.core.judge.story import Group, collapse_repeats, story
from sessions_app.core.payload import Payload
from sessions_app.core.run import ErrorInfo, HttpExchange, Run
from tests.core.test_judge_runs import (
    NOON,
    make_run,
    make_whole_run,
    model,
    other,
    payload,
    read,
    retrieval,
    tool,
)

ASKED = {"query": "refund policy"}
EMPTY = {"docs": [], "count": 0}
TIMEOUT = ErrorInfo(type="Timeout", message="30 s")


def make_loop() -> Run:
    """Twenty times the same search, each after a model call, and then a timeout."""
    turns = [step for _ in range(20) for step in (model(), tool("search_docs", ASKED, EMPTY))]
    return make_run(*turns, model(None, error=TIMEOUT), status="error", output=None)


def test_a_single_failure_that_is_the_first_anomaly_is_named_once():
    run = make_run(model(), tool("move", error=TIMEOUT), model())

    assert story(run, find_anomalies(run)) == "3 steps · 1 tool call · answered · step 2 failed"


def test_a_doubt_about_the_answer_is_named_where_nothing_went_wrong():
    nothing = tool("search_docs", {"query": "dogs"}, [])
    doubted = make_run(model(), nothing, model(), output=payload("Dogs of any size are welcome."))
    words = "search_docs found nothing; the answer has no source (step 2)"
    slow = make_run(model(duration_ms=40_000.0))

    assert story(doubted, find_anomalies(doubted)) == f"3 steps · 1 tool call · answered · {words}"
    assert story(slow, find_anomalies(slow)).endswith("· answered")


@pytest.mark.parametrize(
    ("run", "line"),
    [
        (make_run(model()), "1 step · no tool call · answered"),
        (make_run(other(), model(), tool(), model()), "3 steps · 1 tool call · answered"),
        (make_run(model(), output=None), "1 step · no tool call · no answer · first anomaly at step 1"),
        (
            make_loop(),
            f"41 steps · search_docs called 20 {TIMES} with the same arguments · "
            "ended in Timeout · first anomaly at step 2",
        ),
        (
            make_run(model(), tool(), model(), status="cut_off", output=None),
            "3 steps · 1 tool call · cut off after step 3 · first anomaly at step 3",
        ),
        (make_run(model(), status="running"), "1 step · no tool call · still running"),
        (
            make_run(model(), tool(result=None), status="running", output=None),
            "2 steps · 1 tool call · still running, waiting for lookup_order",
        ),
        (make_run(model(), status="error"), "1 step · no tool call · ended in an error · first anomaly at step 1"),
    ],
)
def test_story_is_made_from_data(run, line):
    assert story(run, find_anomalies(run)) == line


def says_no_answer(run: Run) -> bool:
    return any(found.code == "no_answer" for found in find_anomalies(run))


@pytest.mark.parametrize("output", [None, payload(""), payload("It is on its way.")], ids=["none", "empty", "text"])
@pytest.mark.parametrize("error", [None, TIMEOUT], ids=["no error", "error"])
@pytest.mark.parametrize("status", ["ok", "error", "cut_off"])
def test_story_and_anomalies_agree_whether_there_was_an_answer(status, error, output):
    """Also of a record that contradicts itself, such as open calls beside an output."""
    waits = tool(result=None, outcome="unapproved")
    run = make_run(model(), waits, status=status, error=error, output=output, final=extend(None, []))

    assert ("· answered" in story(run)) is not says_no_answer(run)


@pytest.mark.parametrize(
    ("later", "words"),
    [(tool("edit", arguments={"a": 2}), "step 2 failed, then succeeded on retry"), (model(), "step 2 failed")],
)
def test_a_call_that_the_tool_sent_back_is_told(later, words):
    refused = tool("edit", arguments={"a": 1}, outcome="retried")

    assert story(make_run(model(), refused, model(), later, model())).endswith(f"· answered · {words}")


def test_story_of_an_answer_says_so():
    assert "· answered" in story(make_run(model()))
    assert not says_no_answer(make_run(model()))


def test_loop_of_model_and_tool_folds():
    assert collapse_repeats(make_loop().steps) == [
        Group(first=1, last=40, count=20, name="search_docs"),
        Group(first=41, last=41, count=1, name="model"),
    ]


def test_fold_says_when_results_differ():
    steps = make_run(model(), tool(result="1"), model(), tool(result="2"), model()).steps

    assert collapse_repeats(steps)[0] == Group(first=1, last=4, count=2, name="lookup_order", same_result=False)


def test_equal_calls_in_one_turn_fold_and_others_do_not():
    steps = make_run(model(), *[tool(arguments={"a": 1})] * 3, tool(arguments={"a": 2})).steps

    assert [(g.first, g.last, g.count) for g in collapse_repeats(steps)] == [(1, 1, 1), (2, 4, 3), (5, 5, 1)]


def test_recording_without_loops_is_not_folded():
    run = read("parallel-tools.messages.json")

    assert [(g.first, g.last, g.count) for g in collapse_repeats(run.steps)] == [(n, n, 1) for n in range(1, 6)]


@given(st.lists(st.sampled_from([model(), other(), tool(), tool(arguments={"a": 1}), tool("b")])))
def test_groups_hold_every_step_once(steps):
    run = make_run(*steps)

    held = [n for group in collapse_repeats(run.steps) for n in range(group.first, group.last + 1)]

    assert held == list(range(1, len(steps) + 1))


# --- the budget --------------------------------------------------------------------------------


def states(run: Run, replayed: bool = False) -> dict[str, str]:
    return {row.key: row.state for row in nondeterminism_budget(run, replayed)}


KEYS = (
    "sampling",
    "seed",
    "model_version",
    "routing",
    "tool_latency",
    "tool_results",
    "retrieval",
    "load",
    "clock",
)


def test_replay_of_a_whole_run_pins_all_nine():
    assert states(make_whole_run(), replayed=True) == dict.fromkeys(KEYS, "pinned")


def test_whole_run_is_recorded_where_its_answers_say_so():
    assert states(make_whole_run()) == {
        **dict.fromkeys(KEYS, "recorded"),
        "model_version": "not_captured",
        "load": "uncontrolled",
    }


def test_bare_run_captures_little_and_its_replay_controls_less():
    bare = make_run(model(), retrieval(chunks=None), tool(result=None), model(None))

    assert states(bare) == {
        **dict.fromkeys(KEYS, "not_captured"),
        "tool_latency": "recorded",
        "load": "uncontrolled",
    }
    assert states(bare, replayed=True) == {
        **dict.fromkeys(KEYS, "uncontrolled"),
        "tool_latency": "pinned",
    }


def test_budget_says_values():
    at: dict[str, Any] = {"started_at": NOON, "duration_ms": 50.0}
    late: dict[str, Any] = {"started_at": NOON + timedelta(milliseconds=10), "duration_ms": 5.0}
    run = make_run(
        model(model="sonnet-4", answered_model="sonnet-4-2511", provider="anthropic"),
        tool(**at, http=HttpExchange(status=200)),
        tool(**late, http=HttpExchange(status=429)),
        model(model="sonnet-4", answered_model="sonnet-4-2511"),
        started_at=NOON,
        output=payload("x"),
    )

    assert {row.key: row.values for row in nondeterminism_budget(run, replayed=False)} == {
        "sampling": "temperature not captured, top_p not captured",
        "seed": "seed not supported by this provider",
        "model_version": "sonnet-4 → sonnet-4-2511",
        "routing": "provider not captured, region not captured",
        "tool_latency": "1 parallel batch, 1 overlapping",
        "tool_results": "2 of 2 answers recorded",
        "retrieval": "no retrieval step",
        "load": f"HTTP 200 {TIMES} 1, HTTP 429 {TIMES} 1",
        "clock": "2026-02-17T12:00:00+00:00",
    }


def rows_of(run: Run, replayed: bool) -> dict[str, tuple[str, str]]:
    return {row.key: (row.state, row.values) for row in nondeterminism_budget(run, replayed)}


BARE = make_run(model(), tool(), retrieval(("kb#1", 0.8, "text")), model(answered_model="sonnet-4-2511"))


def test_a_row_that_is_held_does_not_say_that_it_was_not_captured():
    held = {
        "sampling": ("pinned", "by the recorded answers of the model"),
        "seed": ("pinned", "by the recorded answers of the model"),
        "routing": ("pinned", "by the recorded answers of the model"),
        "load": ("pinned", "by the recorded answers of the tools"),
        "retrieval": ("pinned", "1 of 1 search with chunks"),
    }

    assert rows_of(BARE, replayed=True).items() >= held.items()


@pytest.mark.parametrize("run", [BARE, make_whole_run(), make_loop(), read("parallel-tools.messages.json")])
@pytest.mark.parametrize("replayed", [True, False])
def test_no_row_holds_what_it_lacks(run, replayed):
    for state, values in rows_of(run, replayed).values():
        assert state not in ("pinned", "recorded") or "not captured" not in values, (state, values)


def test_what_nothing_holds_still_says_what_was_not_captured():
    assert rows_of(BARE, replayed=False)["routing"] == (
        "not_captured",
        "provider not captured, region not captured",
    )


def test_a_seed_that_nobody_set_is_not_controlled_and_not_missing():
    unset = make_run(model(settings=Payload.of_json({"temperature": None, "top_p": None, "seed": None})))

    rows = {row.key: (row.state, row.values) for row in nondeterminism_budget(unset, replayed=False)}

    assert rows["seed"] == ("uncontrolled", "seed not set")
    assert rows["sampling"] == ("uncontrolled", "temperature not set, top_p not set")


def test_inner_steps_are_counted_nowhere():
    run = make_run(other(), model(started_at=NOON, duration_ms=1.0), other(), tool(started_at=NOON, duration_ms=1.0))

    assert story(run).startswith("2 steps")
    assert "start on 2 of 2 steps, end on 2 of 2" in audit_kit(run).line("timestamps").detail
    assert step_times(run).words == "Every step has its time."
