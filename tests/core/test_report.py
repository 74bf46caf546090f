"""The reproduction report in its three forms."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from sessions_app.core.fork.report import ForkFacts, Samples
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.reading import TIMES
from sessions_app.core.payload import Payload
from sessions_app.core.replay.parts import parts_of
from sessions_app.core.replay.proof import Part
from sessions_app.core.replay.words import Difference, LiveModel, ReplayFacts, verdict_in_words
from sessions_app.core.reports.run_report import (
    Attempt,
    ReproductionReport,
    as_json,
    as_markdown,
    as_text,
    build_report,
    code,
    describe,
    fenced,
)
from sessions_app.core.run import CodeInfo, Run
from tests.core.test_judge_runs import make_run, model, payload, read, tool
from tests.proofs import make_proof

SAMPLE = """\
Bug Reproduction Report
========================================
Input: Cancel my order ORD-5521, wrong item...
Original output: I've cancelled order ORD-5521 for you...
Tool calls: 2
Anomalies: None detected

Reproduction attempts: 1
  Attempt 1: ✅ Reproduced"""
REPRODUCED = Attempt(number=1, outcome="reproduced", matches_original=True, tool_calls=2)
DIFFERENCE = Difference(step=4, path="result.user_id", recorded=None, replayed='"u_7710"')
UNKNOWN = Part(state="not_comparable", reason="not recorded")
MADE_BY_CODE = "The answer was made by book, which does not run in a replay."


SAME = ReplayFacts(
    verdict="reproduced",
    proof=make_proof(),
    steps=5,
    sources={"recorded": 5},
    has_run=True,
    clock="2026-02-17T14:23:01+00:00",
)


def report_on(
    run: Run, attempts: Iterable[Attempt] = (REPRODUCED,), replay: ReplayFacts | None = None
) -> ReproductionReport:
    return build_report(run, anomalies=find_anomalies(run), kit=audit_kit(run), attempts=attempts, replay=replay)


def test_text_of_a_session_file_is_the_classic_block():
    report = report_on(read("session_abc123.json"), replay=SAME)

    assert as_text(report, details=False) == SAMPLE


def test_text_goes_on_with_what_was_real_and_what_to_do():
    report = report_on(read("session_abc123.json"), replay=SAME)

    assert as_text(report).removeprefix(SAMPLE) == (
        "\n\nRun: abc123\n"
        "Model: openai:gpt-4o\n"
        "Recorded at: 2026-02-17T14:23:01+00:00\n"
        "Messages: 6\n"
        "Replay kit: 4 of 12 captured\n"
        "Captured in part: Model, provider and region; Tool requests and answers; Start, first token and end\n"
        "Not captured: User, tenant and session; Tool schemas at the time; Temperature, top_p and seed; "
        "Commit of the agent's code; Feature flags\n"
        "Verdict: Reproduced: same 5 steps, same answer\n"
        "Requests to the model: proven\n"
        "Tools and output schema: proven\n"
        "Model and settings: proven\n"
        "Tool arguments: proven\n"
        "State: proven\n"
        "Outcome: proven\n"
        "Real and simulated: 5 recorded · 0 live calls\n"
        "Steps done: load run, stub tools, pin model, diff output\n"
        "Next: Compare with a healthy run."
    )


def test_attempt_that_raised_is_an_error_and_not_different():
    attempts = [
        Attempt(number=1, outcome="different"),
        Attempt(number=2, outcome="error", error="TimeoutError: 30 s"),
    ]

    lines = as_text(report_on(make_run(model()), attempts), details=False).splitlines()

    assert lines[-4:] == [
        "Reproduction attempts: 2",
        "  Attempt 1: ❌ Different",
        "  Attempt 2: ⚠ Error",
        "    Error: TimeoutError: 30 s",
    ]


def test_anomalies_are_listed_and_equal_ones_folded():
    run = make_run(model(), *[tool(arguments={"id": 1})] * 11, model())

    words = f"Anomalies: Duplicate call: lookup_order {TIMES} 10; 11 tool calls"
    assert words in as_text(report_on(run))


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (payload("x" * 200), f"Input: {'x' * 80}..."),
        (payload("two\nlines\x1b[31m\u202e"), "Input: two lines\\u001b[31m\\u202e..."),
        (payload({"order": 1}), 'Input: {"order":1}...'),
        (Payload(content=b"\x00" * 49152, media_type="image/png"), "Input: binary · 48 KiB"),
        (None, "Input: not captured"),
    ],
)
def test_input_is_one_safe_line(value, line):
    assert line in as_text(report_on(make_run(model(), input=value))).splitlines()


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        (ReplayFacts(verdict="reproduced", proof=make_proof(7)), "Reproduced: same 7 steps, same answer"),
        (
            ReplayFacts(verdict="unknown_from_step", proof=make_proof(6, outcome=UNKNOWN), limit=MADE_BY_CODE),
            f"Same 6 steps, but the outcome cannot be compared: {MADE_BY_CODE[0].lower()}{MADE_BY_CODE[1:-1]}",
        ),
        (
            ReplayFacts(
                verdict="unknown_from_step",
                proof=make_proof(103, outcome=UNKNOWN),
                limit="The answer of step 104 (copy_table) was not recorded.",
                limit_code="tool_answer_missing",
                asked_tool="copy_table",
                stopped_at=104,
            ),
            "Stopped at step 104: the answer of copy_table was not recorded",
        ),
        (
            ReplayFacts(verdict="diverged", difference=DIFFERENCE),
            'Diverged at step 4: user_id in the tool result: absent → "u_7710"',
        ),
        (
            ReplayFacts(verdict="diverged", difference=DIFFERENCE, possible_cause="a tool (note) did not run"),
            'Diverged at step 4: user_id in the tool result: absent → "u_7710"; a tool (note) did not run',
        ),
        (ReplayFacts(verdict="ran_past_recording", stopped_at=8), "Ran past the recording at step 8"),
        (ReplayFacts(verdict="answers_left_over", left_over=2), "2 recorded answers were left over"),
        (ReplayFacts(verdict="answers_left_over", left_over=1), "1 recorded answer was left over"),
        (
            ReplayFacts(verdict="fixture_missing", stopped_at=3),
            "Could not run: fixture for step 3 missing",
        ),
        (ReplayFacts(verdict="could_not_run", error="no\nagent"), "Could not run: no agent"),
        (ReplayFacts(verdict="cancelled"), "Cancelled"),
        (
            ReplayFacts(verdict="unknown_from_step", stopped_at=5),
            "Unknown from step 5: no recorded answer fits",
        ),
    ],
)
def test_verdict_in_words(facts, words):
    assert verdict_in_words(facts) == words


HOSTILE = "@here #1 <img src=x onerror=alert(1)>\n```\n</details> [x](javascript:1)\n````` @all"


def outside_code(markdown: str) -> str:
    """What a chat would read as more than text."""
    blocks = re.sub(r"^(`{3,})text\n.*?\n\1$", "", markdown, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", blocks)


def test_markdown_keeps_recorded_text_in_code():
    run = make_run(
        model(),
        tool(HOSTILE, {"q": HOSTILE}),
        model(),
        run_id=HOSTILE,
        model=HOSTILE,
        input=payload(HOSTILE),
        output=payload(HOSTILE),
        user_id="u",
    )
    replay = ReplayFacts(
        verdict="diverged",
        difference=Difference(step=1, path=HOSTILE, recorded=HOSTILE, replayed=HOSTILE),
    )
    attempts = [Attempt(number=1, outcome="error", error=HOSTILE)]

    text = as_markdown(report_on(run, attempts, replay))

    assert "onerror" in text
    assert not set("@<>[") & set(outside_code(text))
    assert [line for line in outside_code(text).splitlines() if line.startswith("#")] == ["## Bug Reproduction Report"]


@pytest.mark.parametrize("text", ["`", "``` x", "a`b``c", "", " ", "\n", "`a`"])
def test_code_span_cannot_be_closed_from_inside(text):
    span = code(text)

    ticks = span[: len(span) - len(span.lstrip("`"))]
    assert span.endswith(ticks)
    assert not re.search(rf"(?<!`){ticks}(?!`)", span[len(ticks) : -len(ticks)])


def test_fence_is_longer_than_any_inside():
    assert fenced("a\n````\nb") == "`````text\na\n````\nb\n`````"


def test_long_value_says_how_much_is_not_shown():
    assert "\n… 1000 more characters\n" in fenced("x" * 5000)


def test_markdown_names_all_nine_rows_of_the_budget():
    text = as_markdown(report_on(make_run(model()), replay=SAME))

    assert "- Temperature and top_p: pinned, `by the recorded answers of the model`" in text
    assert len(re.findall(r"^- .*: (pinned|uncontrolled|recorded|not captured), ", text, re.MULTILINE)) == 9


def test_json_holds_the_same_facts():
    replay = replace(SAME, verdict="diverged", difference=DIFFERENCE)
    body = as_json(report_on(read("session_abc123.json"), replay=replay))

    assert json.loads(json.dumps(body)) == body
    assert body["tool_calls"] == [
        {"step": 2, "tool": "lookup_order", "arguments": {"order_id": "ORD-5521"}},
        {"step": 4, "tool": "cancel_order", "arguments": {"order_id": "ORD-5521", "reason": "wrong item"}},
    ]
    assert (body["messages"], body["kit"]["captured"]) == (6, 4)
    assert body["replay"]["divergence"] == {
        "step": 4,
        "path": "result.user_id",
        "recorded": None,
        "replayed": '"u_7710"',
    }
    assert [row["done"] for row in body["steps_done"]] == [True] * 4
    assert body["attempts"][0]["outcome"] == "reproduced"


def test_report_without_a_replay_asks_for_one():
    body = as_json(report_on(make_run(model()), attempts=[]))

    assert (body["replay"], body["next_action"]) == (None, "Queue a replay.")
    assert body["attempts"] == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "not captured"),
        (payload(" as it is "), " as it is "),
        (Payload(content=b'{ "a": 1 }'), '{"a":1}'),
        (Payload(content=b"x" * 900, media_type="image/png"), "binary · 900 B"),
        (Payload(content=b"x" * 5_347_737, media_type="image/png"), "binary · 5.1 MiB"),
    ],
)
def test_payload_is_described(value, words):
    assert describe(value) == words


def test_a_tool_that_ran_live_pins_nothing():
    run = read("session_abc123.json")
    frozen, live = replace(SAME, verdict="diverged"), replace(SAME, verdict="diverged", live_tools={"lookup_order": 2})

    [pinned], [loose] = (
        [row for row in report_on(run, replay=facts).budget if row.key == "tool_results"] for facts in (frozen, live)
    )

    assert (pinned.state, loose.state) == ("pinned", "uncontrolled")
    assert loose.values.startswith("lookup_order ran live 2 ×")


# --- what was really done ----------------------------------------------------------------------

YOURS = replace(SAME, runs_tools=True, agent="shop", sources={"recorded": 3, "own_code": 2})
FORKED = replace(YOURS, verdict="diverged", proof=make_proof(3, outcome=UNKNOWN), fork=ForkFacts(at_step=2))
SAMPLED = replace(
    SAME, verdict="diverged", proof=None, fork=ForkFacts(at_step=2, samples=Samples(n=3, judged=0, met=None))
)
OPEN = replace(SAME, verdict="diverged", proof=make_proof(3, outcome=UNKNOWN))


def done_in(facts: ReplayFacts) -> list[tuple[str, bool, str | None]]:
    body = as_json(report_on(read("session_abc123.json"), replay=facts))
    return [(row["title"], row["done"], row["why_not"]) for row in body["steps_done"]]


def test_all_four_steps_were_done_by_a_replay_of_the_recording():
    titles = ("load run", "stub tools", "pin model", "diff output")

    assert done_in(SAME) == [(title, True, None) for title in titles]


@pytest.mark.parametrize(
    ("facts", "title", "why_not"),
    [
        (YOURS, "stub tools", "your own code answered 2 calls"),
        (FORKED, "stub tools", "your own code answered 2 calls"),
        (FORKED, "diff output", "the outcomes were not compared"),
        (replace(YOURS, sources={"recorded": 3}), "stub tools", "no tool was called"),
        (replace(SAME, live_tools={"look": 1}), "stub tools", "look ran live"),
        (SAMPLED, "pin model", "a live model answered"),
        (OPEN, "diff output", "the outcomes were not compared"),
    ],
    ids=[
        "tools ran",
        "tools of a fork ran",
        "outcome of a fork",
        "no tool was called",
        "a live tool",
        "a live model",
        "no outcome",
    ],
)
def test_a_step_that_was_not_done_says_why(facts, title, why_not):
    text = as_text(report_on(read("session_abc123.json"), replay=facts))

    assert (title, False, why_not) in done_in(facts)
    assert f"not done: {title}: {why_not}" in text


@pytest.mark.parametrize("verdict", ["could_not_run", "cancelled"])
def test_a_replay_that_never_ran_did_and_held_nothing(verdict):
    report = report_on(read("session_abc123.json"), replay=ReplayFacts(verdict=verdict))

    assert as_json(report)["steps_done"] == []
    assert "Steps done" not in as_text(report)
    assert "pinned" not in {row.state for row in report.budget}
    assert "pinned" in {row.state for row in report_on(read("session_abc123.json"), replay=SAME).budget}


def test_each_attempt_says_what_ran():
    """Control: one whose parts are not known says nothing of them, nor does the classic block."""
    parts = parts_of(agent="desk", runs_tools=True, model="recorded_for_others")
    attempt = Attempt(number=1, outcome="different", parts=parts, state="no state was recorded")
    report = report_on(make_run(model()), [attempt, REPRODUCED])

    words = "agent: your code, desk · model: recorded, even for different requests · tools: run"
    words += " · state: no state was recorded"
    assert as_text(report).count("agent: ") == as_markdown(report).count("agent: ") == 1
    assert f"  Attempt 1: ❌ Different\n    {words}\n  Attempt 1: ✅ Reproduced\n" in as_text(report)
    assert f"- Attempt 1: ❌ Different, `{words}`\n" in as_markdown(report)
    first, second = as_json(report)["attempts"]
    assert (first["parts"]["agent"], second["parts"]) == ("today's version of your code", None)
    assert "agent: " not in as_text(report, details=False)


ASKED = LiveModel(name="gpt-4o", settings={"temperature": 0, "top_p": 0.95})


def test_the_budget_of_a_live_replay_shows_what_was_asked():
    """Control: a replay that might have asked a live model, and did not, held still what any replay holds still."""
    run = make_run(model())
    parts = parts_of(agent="desk", runs_tools=False, model="recorded_then_live")
    might = replace(SAME, parts=parts)
    did = replace(might, live_model=ASKED)

    [asked], [seed], [not_asked] = (
        [row for row in report_on(run, replay=facts).budget if row.key == key]
        for facts, key in ((did, "sampling"), (did, "seed"), (might, "sampling"))
    )

    assert asked.values.startswith("the live model was asked with temperature 0, top_p 0.95; recorded: ")
    assert (asked.state, seed.state, not_asked.state) == ("recorded", "uncontrolled", "pinned")
    assert seed.values.startswith("the live model was asked with seed not set; recorded: ")
    states = {row.key: row.state for row in report_on(run, replay=did).budget}
    assert (states["tool_results"], states["model_version"]) == ("pinned", "uncontrolled")
    assert "not done: pin model" in as_text(report_on(run, replay=did))
    assert "not done: pin model" not in as_text(report_on(run, replay=might))


def test_every_report_of_samples_says_how_often_which_outcome_came():
    samples = Samples(n=3, judged=0, met=None, done=2, again=1, outcomes=(("It is shipped.", 1), ("Not found.", 1)))
    report = report_on(make_run(model()), replay=replace(SAME, verdict="diverged", samples=samples))

    assert "\nOutcomes:\n  1 × It is shipped.\n  1 × Not found." in as_text(report)
    assert "**Outcomes**\n\n- `1 × It is shipped.`\n- `1 × Not found.`" in as_markdown(report)
    told = as_json(report)["replay"]["samples"]
    assert (told["n"], told["done"], told["again"]) == (3, 2, 1)
    assert told["outcomes"][0] == {"words": "It is shipped.", "count": 1}


def test_a_cancelled_attempt_is_no_error():
    attempts = [Attempt(number=1, outcome="cancelled"), REPRODUCED]
    report = report_on(make_run(model()), attempts)

    assert "  Attempt 1: ⊘ Cancelled" in as_text(report).splitlines()
    assert "- Attempt 1: ⊘ Cancelled" in as_markdown(report)
    assert as_json(report)["attempts"][0]["outcome"] == "cancelled"
    assert "Error" not in as_text(report)


@pytest.mark.parametrize(("commit", "words"), [("1f2e3d", "shop, commit 1f2e3d"), (None, "shop, commit not known")])
def test_the_commit_that_ran_stands_beside_the_recorded_one(commit, words):
    run = replace(read("session_abc123.json"), code=CodeInfo(commit="0a0b0c"))
    report = report_on(run, replay=replace(YOURS, commit=commit))

    assert f"Code that ran: {words}\nCode recorded: commit 0a0b0c\n" in as_text(report)
    body = as_json(report)
    assert (body["commit"], body["replay"]["agent"], body["replay"]["commit"]) == ("0a0b0c", "shop", commit)


def test_an_agent_that_was_rebuilt_has_no_commit_that_ran():
    assert "Code that ran" not in as_text(report_on(read("session_abc123.json"), replay=SAME))


def budget_of(facts: ReplayFacts) -> dict[str, tuple[str, str]]:
    return {row.key: (row.state, row.values) for row in report_on(read("session_abc123.json"), replay=facts).budget}


def test_tools_that_ran_are_not_held():
    frozen, ran = budget_of(SAME), budget_of(YOURS)

    assert (frozen["tool_results"][0], frozen["load"][0]) == ("pinned", "pinned")
    assert (ran["tool_results"][0], ran["load"][0]) == ("uncontrolled", "uncontrolled")
    assert ran["tool_results"][1].startswith("your own code answered 2 calls; 2 of 2 answers recorded")
    assert ran["load"][1] == "your own code answered 2 calls; status codes not captured"
    assert ran["retrieval"] == frozen["retrieval"]


def test_a_clock_is_pinned_only_where_the_replay_pinned_it():
    assert budget_of(SAME)["clock"][0] == "pinned"
    later = "2026-02-17T14:23:09+00:00"
    assert budget_of(replace(SAME, clock=later))["clock"] == ("pinned", later)
    assert budget_of(replace(SAME, clock=None))["clock"] == ("uncontrolled", "not pinned; 2026-02-17T14:23:01+00:00")


def test_nothing_is_pinned_and_not_captured_at_once():
    for facts in (SAME, YOURS, OPEN, SAMPLED, replace(SAME, clock=None)):
        for run in (read("session_abc123.json"), make_run(model(), tool(), model())):
            rows = report_on(run, replay=facts).budget
            assert not [row for row in rows if row.state == "pinned" and "not captured" in row.values]
