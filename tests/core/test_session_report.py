"""One verdict for all runs of a session, and its report in three forms."""

import json
import re
from typing import Any

import pytest

from sessions_app.core.replay.words import Difference, ReplayFacts
from sessions_app.core.reports.session_report import ReplayedRun, SessionReport, as_json, as_markdown, as_text
from sessions_app.core.sessions.contradictions import Contradiction
from tests.proofs import make_proof

DIFFERENCE = Difference(step=4, path="result.user_id", recorded=None, replayed='"u_7710"')


def replayed(number: int, verdict: str | None = "reproduced", **fields: Any) -> ReplayedRun:
    """Open where the verdict is None."""
    found = DIFFERENCE if verdict == "diverged" else None
    said: Any = "unknown_from_step" if verdict == "partial" else verdict
    limit = "The recording ends there." if verdict == "partial" else None
    facts = ReplayFacts(verdict=said, proof=make_proof(5), difference=found, limit=limit) if verdict else None
    state = {None: "queued", "cancelled": "cancelled", "could_not_run": "failed"}.get(verdict, "done")
    made: dict[str, Any] = {"run_id": f"run_{number}", "replay_id": f"rp_{number}", "number": 1, "state": state}
    return ReplayedRun(**(made | {"verdict": verdict, "facts": facts, "difference": found} | fields))


def report_of(*runs: ReplayedRun, contradictions: tuple[Contradiction, ...] = ()) -> SessionReport:
    named: dict[str, Any] = {"session_replay_id": "sr_1", "session_id": "chat_1", "mode": "recording"}
    return SessionReport(**named, preset="From the recording", runs=runs, contradictions=contradictions)


OTHER_ANSWER = Contradiction(
    run_id="run_2", step=1, path="messages[3].parts[0].content", other_run_id="run_1", other_step=4
)
UNKNOWN_TURN = Contradiction(run_id="run_2", step=1, path="messages[4]", other_run_id=None, other_step=None)
PLACE = "run 2 (run_2), step 1: messages[3].parts[0].content is not what run 1 (run_1) says at step 4"


def test_a_session_is_reproduced_only_if_every_run_is():
    whole = report_of(replayed(1), replayed(2))
    other = report_of(replayed(1), replayed(2, "diverged"), replayed(3, "could_not_run"))

    assert (whole.state, whole.verdict, whole.words) == ("done", "reproduced", "Reproduced: all 2 runs")
    assert (other.state, other.verdict) == ("done", "diverged")
    assert other.words == ("1 of 3 runs reproduced, 1 diverged, 1 could not run")
    alone = report_of(replayed(1), replayed(2, "diverged"))
    assert alone.words == (
        '1 of 2 runs reproduced; run 2, run_2: Diverged at step 4: user_id in the tool result: absent → "u_7710"'
    )
    assert other.next_action == "Open the diff at the first difference."
    assert whole.next_action is None


@pytest.mark.parametrize("verdict", ["diverged", "partial", "could_not_run", "cancelled", "fixture_missing"])
def test_one_run_that_is_not_reproduced_is_enough(verdict):
    runs = (replayed(1), replayed(2, verdict), replayed(3))

    report = report_of(*runs)

    assert report.verdict == verdict
    assert report.words.startswith("2 of 3 runs reproduced; run 2, run_2: ")


@pytest.mark.parametrize(
    ("runs", "state", "words"),
    [
        ((replayed(1, None), replayed(2, None)), "queued", "0 of 2 runs have finished"),
        ((replayed(1), replayed(2, None)), "running", "1 of 2 runs has finished"),
        ((replayed(1, None, state="running"), replayed(2, None)), "running", "0 of 2 runs have finished"),
        ((replayed(1, None, state="paused"), replayed(2)), "paused", "1 of 2 runs has finished"),
        ((replayed(1, None, state="paused"), replayed(2, None)), "running", "0 of 2 runs have finished"),
        ((replayed(1, "diverged"), replayed(2, None)), "running", "1 of 2 runs has finished"),
    ],
)
def test_nothing_is_concluded_before_all_runs_are_over(runs, state, words):
    report = report_of(*runs)

    assert (report.state, report.verdict, report.words, report.first_other) == (state, None, words, None)


def test_a_session_of_which_all_was_cancelled_is_cancelled():
    assert (report_of(replayed(1, "cancelled")).state, report_of(replayed(1, "cancelled")).words) == (
        "cancelled",
        "Cancelled",
    )
    assert report_of(replayed(1), replayed(2, "cancelled")).words == "1 of 2 runs reproduced; run 2, run_2: Cancelled"


def test_a_session_whose_runs_are_gone_claims_nothing():
    report = report_of()

    assert (report.verdict, report.words) == (None, "No runs are left")


def test_the_report_as_text():
    assert as_text(report_of(replayed(1), replayed(2, "diverged"))) == (
        "Session Reproduction Report\n"
        "========================================\n"
        "Session: chat_1\n"
        "Preset: From the recording\n"
        "Verdict: 1 of 2 runs reproduced; run 2, run_2: "
        'Diverged at step 4: user_id in the tool result: absent → "u_7710"\n'
        "Next: Open the diff at the first difference.\n"
        "Session replay: sr_1\n"
        "\n"
        "Runs: 2\n"
        "  1. run_1 attempt 1, rp_1: Reproduced: same 5 steps, same answer\n"
        '  2. run_2 attempt 1, rp_2: Diverged at step 4: user_id in the tool result: absent → "u_7710"; '
        'first difference: step 4, result.user_id: recorded absent, replayed "u_7710"'
    )


def test_the_report_as_json_names_the_first_run_that_is_not_reproduced():
    body = as_json(report_of(replayed(1), replayed(2, "diverged"), replayed(3, "diverged")))

    assert json.loads(json.dumps(body)) == body
    assert (body["verdict"], body["progress"]) == ("diverged", {"done": 3, "total": 3})
    assert body["first_not_reproduced"] == {"run_id": "run_2", "replay_id": "rp_2", "step": 4}
    assert [(run["run_id"], run["verdict"], run["step"]) for run in body["runs"]] == [
        ("run_1", "reproduced", None),
        ("run_2", "diverged", 4),
        ("run_3", "diverged", 4),
    ]
    assert as_json(report_of(replayed(1)))["first_not_reproduced"] is None


def test_markdown_keeps_recorded_text_in_code():
    hostile = "@here <img src=x> `` [x](javascript:1)\n# head"

    text = as_markdown(report_of(replayed(1, run_id=hostile), replayed(2, "diverged", run_id=hostile)))

    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "img src" in text
    assert not set("@<>[") & set(outside)
    assert [line for line in outside.splitlines() if line.startswith("#")] == ["## Session Reproduction Report"]


def test_runs_that_lack_the_same_are_told_together():
    runs = [replayed(1), *(replayed(number, "partial") for number in (2, 3, 5)), replayed(6, "diverged")]
    report = report_of(*runs[:3], replayed(4), *runs[3:])

    assert [(group.numbers, group.first.reason) for group in report.unreproduced] == [
        ("2–3, 5", "The recording ends there."),
        ("6", 'at step 4: user_id in the tool result: absent → "u_7710"'),
    ]
    assert "Runs 2–3, 5: The recording ends there." in as_text(report)


def test_a_session_whose_runs_contradict_each_other_is_not_reproduced():
    report = report_of(replayed(1), replayed(2), contradictions=(OTHER_ANSWER,))
    body = as_json(report)

    words = f"All 2 runs reproduced, but they contradict each other: {PLACE}"
    assert (report.state, report.verdict, report.words) == ("done", "contradictory", words)
    assert (body["verdict"], body["words"]) == ("contradictory", words)
    assert body["first_not_reproduced"] == {"run_id": "run_2", "replay_id": "rp_2", "step": 1}
    assert body["contradictions"] == [{**OTHER_ANSWER.to_json(), "words": PLACE}]
    assert body["next_action"] == "Read both runs at these steps: their recordings cannot both be right."
    for text in (as_text(report), as_markdown(report)):
        assert text.count("contradict") == 1
        assert "messages[3].parts[0].content" in text


def test_several_contradictions_are_counted_and_listed():
    report = report_of(replayed(1), replayed(2), contradictions=(UNKNOWN_TURN, OTHER_ANSWER))

    unknown = "run 2 (run_2), step 1: messages[4] is in no run of this session"
    assert report.words == f"All 2 runs reproduced, but they contradict each other: {unknown}; and 1 more place"
    assert report.next_action == (
        "Send the run that said it, then replay the session again; if there is none, the history is wrong."
    )
    assert f"Contradiction: {unknown}\nContradiction: {PLACE}\n" in as_text(report)


def test_contradictions_stand_beside_a_verdict_that_says_something_else():
    other = report_of(replayed(1), replayed(2, "diverged"), contradictions=(OTHER_ANSWER,))
    still_open = report_of(replayed(1), replayed(2, None), contradictions=(OTHER_ANSWER,))

    assert other.verdict == "diverged"
    assert (still_open.verdict, still_open.words) == (None, "1 of 2 runs has finished")
    assert as_json(still_open)["first_not_reproduced"] is None
    for report in (other, still_open):
        assert f"Contradiction: {PLACE}\n" in as_text(report)
