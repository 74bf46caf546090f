"""The seven steps for runs that were replayed, not replayed, or cannot be, and the question between them."""

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from sessions_app.core.run import ErrorInfo, Run
from sessions_app.core.workflow.attempts import NOT_REPRODUCED, SAYS_NOTHING, Attempt, deciding, outcome_words
from sessions_app.core.workflow.steps import SHOWN, Facts, KeptGolden, workflow
from tests.core.test_judge_runs import make_run, model, other, tool

RUN = make_run(model(), tool(), model())


def replay(number: int, verdict: str | None = "reproduced", **fields: Any) -> Attempt:
    made: dict[str, Any] = {
        "replay_id": f"rp_{number}",
        "kind": "replay",
        "words": f"replay #{number}",
        "is_over": True,
    }
    return Attempt(**(made | {"verdict": verdict} | fields))


def fork(number: int, met: bool | None = None, **fields: Any) -> Attempt:
    words = {"words": f"fork #{number} at step 2", "expectation": "" if met is None else "it asks back"}
    return replay(number, "diverged", kind="fork", met=met, **(words | fields))


def facts(*attempts: Attempt, run: Run = RUN, **fields: Any) -> Facts:
    made: dict[str, Any] = {
        "is_part": False,
        "story": "3 steps · an answer",
        "odd": 0,
        "first_odd": None,
        "kit_captured": 12,
        "kit_missing": (),
        "kit_total": 12,
        "verdict": "replayable",
        "verdict_step": None,
        "reasons": (),
    }
    return Facts(run=run, attempts=attempts, **(made | fields))


def states(*attempts: Attempt, **fields: Any) -> list[str]:
    return [step.state for step in workflow(facts(*attempts, **fields)).steps]


def next_of(*attempts: Attempt, **fields: Any) -> int | None:
    found = workflow(facts(*attempts, **fields)).next_step
    return found.number if found else None


OVER = ["done", "done", "done", "done"]


def test_there_are_seven_steps_in_their_order():
    steps = workflow(facts()).steps

    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7]
    assert [step.is_next for step in steps].count(True) == 1


def test_a_run_that_was_never_replayed_asks_for_a_replay():
    found = workflow(facts())

    assert states() == ["done", "done", "done", "open", "open", "open", "open"]
    assert (found.reproduces, found.decided_by, next_of()) == (None, None, 4)
    assert found.steps[3].action == "replay"


def test_a_run_that_reproduces_needs_no_world_and_is_debugged_next():
    found = workflow(facts(replay(1)))

    assert states(replay(1)) == [*OVER, "open", "not_needed", "open"]
    assert (found.reproduces, next_of(replay(1))) == (True, 5)
    assert [evidence.replay_id for evidence in found.steps[3].evidence] == ["rp_1"]
    assert found.steps[3].evidence[0].words == "replay #1 reproduced the run"


@pytest.mark.parametrize("verdict", sorted(NOT_REPRODUCED.keys() - SAYS_NOTHING))
def test_a_run_that_does_not_reproduce_asks_for_the_world_before_debugging(verdict):
    tried = replay(1, verdict, differs_at=2)

    found = workflow(facts(tried))

    assert states(tried) == [*OVER, "open", "open", "open"]
    assert (found.reproduces, next_of(tried)) == (False, 6)
    assert found.steps[3].evidence[0].words == f"replay #1 {NOT_REPRODUCED[verdict]} at step 2"


@pytest.mark.parametrize(
    "tried",
    [replay(1, None, is_over=False), replay(1, None), replay(1, "cancelled"), *map(partial(replay, 1), SAYS_NOTHING)],
)
def test_an_attempt_that_says_nothing_leaves_the_question_open(tried):
    found = workflow(facts(tried))

    assert (found.reproduces, next_of(tried)) == (None, 4)
    assert found.steps[3].words == "No replay has reached a conclusive result."
    assert len(found.steps[3].evidence) == 1


def test_a_fork_that_goes_on_after_an_answer_says_nothing_yet():
    assert workflow(facts(fork(1, met=False, is_over=False))).reproduces is None
    assert workflow(facts(replay(1, is_over=False))).reproduces is None


def test_the_newest_replay_decides():
    assert workflow(facts(replay(1), replay(2, "diverged"))).reproduces is False
    assert workflow(facts(replay(1, "diverged"), replay(2))).reproduces is True
    assert workflow(facts(replay(1), replay(2, None, is_over=False))).reproduces is True


def test_a_loop_that_ended_well_is_done_and_shows_what_failed():
    found = workflow(facts(replay(1, "diverged"), replay(2)))

    assert found.steps[5].state == "done"
    assert [evidence.replay_id for evidence in found.steps[5].evidence] == ["rp_1"]


def test_a_fork_decides_until_a_plain_replay_reproduced():
    failed = replay(1, "diverged")

    assert workflow(facts(failed, fork(2, met=True))).reproduces is True
    assert workflow(facts(failed, fork(2, met=False))).reproduces is False
    assert deciding([failed, fork(2, met=False)]) == fork(2, met=False)
    assert workflow(facts(replay(1), fork(2, met=False))).reproduces is True
    assert workflow(facts(fork(1, met=False))).reproduces is False


def test_a_fork_whose_outcome_does_not_follow_from_its_change_decides_nothing_and_is_no_fix():
    old = fork(2, met=True, unproven_source="recorded_for_another_request")
    written = fork(3, met=False, unproven_source="by_hand")

    found = workflow(facts(replay(1), old, written))

    assert workflow(facts(old, written)).reproduces is None
    assert found.steps[6].words.startswith("No fork has shown a fix yet.")
    assert outcome_words(old) == "fork #2 at step 2 ended as expected (reusing old model answers): it asks back"
    assert outcome_words(written) == (
        "fork #3 at step 2 did not end as expected (outcome written by hand): it asks back"
    )


def test_a_fork_of_which_nothing_was_expected_decides_nothing():
    assert workflow(facts(fork(1))).reproduces is None
    assert deciding([replay(1, "diverged"), fork(2)]) == replay(1, "diverged")


def test_debugging_is_shown_by_pauses_and_forks_and_not_by_plain_replays():
    paused = replay(2, None, is_over=False, has_stops=True)

    found = workflow(facts(replay(1), paused, fork(3, met=False))).steps[4]

    assert found.state == "done"
    assert [evidence.replay_id for evidence in found.evidence] == ["rp_3", "rp_2"]
    assert found.evidence[0].words == "fork #3 at step 2 did not end as expected: it asks back"


def golden(number: int = 1, **fields: Any) -> KeptGolden:
    made: dict[str, Any] = {"fails_on": "bad", "last_run_id": "gr_1", "last_result": "pass"}
    return KeptGolden(golden_id=f"gd_{number}", name=f"Golden {number}", **(made | fields))


def test_first_a_fix_is_looked_for_and_then_it_is_kept_as_a_golden():
    without = workflow(facts(replay(1), fork(2, met=False))).steps[6]
    found = workflow(facts(replay(1), fork(2, met=True))).steps[6]

    assert (without.state, without.evidence, without.action) == ("open", (), "fork")
    assert (found.state, found.action) == ("open", "golden")
    assert [evidence.replay_id for evidence in found.evidence] == ["rp_2"]
    assert next_of(replay(1), fork(2, met=True)) == 7


def test_a_golden_that_can_fail_and_passed_last_is_the_end():
    done = workflow(facts(replay(1), fork(2, met=True), goldens=(golden(),))).steps[6]

    assert (done.state, done.action, done.evidence[0].golden_id) == ("done", None, "gd_1")
    assert next_of(replay(1), fork(2, met=True), goldens=(golden(),)) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"last_result": None, "last_run_id": None}, "has not been run"),
        ({"last_result": None}, "is running"),
        ({"last_result": "fail", "last_agents": ("old",)}, "does not pass on the latest code with old."),
        ({"last_result": "fail"}, "does not pass"),
        ({"last_result": "could_not_run"}, "does not pass"),
        ({"fails_on": None}, "not known to fail"),
    ],
)
def test_a_golden_that_proves_nothing_yet_leaves_the_step_open(fields, words):
    step = workflow(facts(replay(1), goldens=(golden(**fields),))).steps[6]

    assert step.state == "open"
    assert words in step.words


def test_the_fork_that_reproduced_the_run_is_no_fix_of_it():
    assert workflow(facts(replay(1, "diverged"), fork(2, met=True))).steps[6].evidence == ()


def test_a_cold_run_cannot_be_replayed_and_says_why():
    found = workflow(facts(verdict="cold", reasons=("Model answers are missing.",)))

    assert [step.state for step in found.steps[2:5]] == ["not_possible", "not_possible", "not_possible"]
    assert found.steps[2].missing == ("Model answers are missing.",)
    assert [step.action for step in found.steps[2:]] == [None] * 5
    assert found.next_step == found.steps[5]


def test_a_cold_run_is_not_offered_a_replay_after_a_fork():
    assert workflow(facts(fork(1), verdict="cold")).steps[4].action is None
    assert workflow(facts(fork(1))).steps[4].action == "breakpoints"
    assert workflow(facts(fork(1), fork(2))).steps[4].words.startswith("2 forks tried")


def test_a_run_that_is_replayable_to_a_step_says_how_far():
    found = workflow(facts(verdict="replayable_to_step", verdict_step=2, reasons=("Step 3 has no answer.",))).steps[2]

    assert found.state == "done"
    assert found.words == "2 model answers and 1 tool answer replace the outside world, up to step 2."
    assert found.missing == ("Step 3 has no answer.",)


def test_answers_that_are_not_there_do_not_stand_in():
    run = make_run(model(), tool(result=None), tool(result=None, error=ErrorInfo(type="E", message="x")), model(None))

    assert workflow(facts(run=run)).steps[2].words.startswith("1 model answer and 1 tool answer ")


def test_what_was_not_captured_is_missing_evidence():
    found = workflow(facts(run=replace(RUN, input=None, output=None), kit_captured=10, kit_missing=("Seed", "Commit")))

    assert found.steps[0].missing == ("no input", "no answer and no error")
    assert found.steps[1].words == "3 steps, 10 of 12 lines of the replay kit captured."
    assert found.steps[1].missing == ("Seed", "Commit")


def test_an_odd_step_is_evidence():
    found = workflow(facts(odd=3, first_odd=2)).steps[0].evidence

    assert [(evidence.step, evidence.words) for evidence in found] == [(2, "3 anomalies, first at step 2")]


def test_the_frame_s_own_steps_are_not_counted():
    run = make_run(other(), model(), tool(), model())

    assert workflow(facts(run=run)).steps[1].words.startswith("3 steps, ")


def test_a_run_without_steps_has_no_session_to_extract():
    assert states(run=replace(RUN, steps=()), verdict="cold")[1] == "not_possible"


def test_a_run_that_still_arrives_is_waited_for():
    arriving = replace(RUN, status="running")

    assert states(run=arriving)[:2] == ["open", "open"]
    assert next_of(run=arriving) == 1


def test_only_the_newest_attempts_are_named():
    many = [replay(number) for number in range(1, SHOWN + 3)]

    shown = workflow(facts(*many)).steps[3].evidence

    assert [evidence.replay_id for evidence in shown] == [f"rp_{n}" for n in range(SHOWN + 2, 2, -1)]


def test_a_part_of_a_long_run_is_not_counted_as_the_whole():
    assert workflow(facts(is_part=True)).steps[1].words.startswith("at least 3 steps")


@pytest.mark.parametrize(
    ("attempt", "words"),
    [
        (replay(1, None, is_over=False), "replay #1 has not finished"),
        (replay(1, None), "replay #1 did not finish"),
        (replay(1, "diverged"), "replay #1 took a different course"),
        (fork(2), "fork #2 at step 2 finished"),
        (replace(fork(2), verdict="unknown_from_step"), "fork #2 at step 2 waits for an answer"),
        (fork(2, met=True), "fork #2 at step 2 ended as expected: it asks back"),
    ],
)
def test_the_outcome_of_an_attempt_is_in_words(attempt, words):
    assert outcome_words(attempt) == words
