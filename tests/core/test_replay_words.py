"""No sentence about a replay claims more than was proven, whatever the verdict beside it."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

import pytest

from sessions_app.core.fork.expectations import read_expectation
from sessions_app.core.fork.report import ForkFacts
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.payload import Payload
from sessions_app.core.replay.proof import PARTS, PROVEN, OutcomeKind, Part, PartState, Proof, read_proof
from sessions_app.core.replay.words import Effect, ReplayFacts, ReplayVerdict, next_action, verdict_in_words
from sessions_app.core.reports.run_report import as_json, as_markdown, as_text, build_report
from sessions_app.core.run import Call, ModelCall, Run, Step, ToolCall
from tests.core.test_judge_runs import make_run, model, tool

STEPS = 6
FORKS = (None, ForkFacts(at_step=2, changes=("another prompt",)), ForkFacts(at_step=2))
LIMITS = (None, "The recording breaks off at step 4.")


def proofs() -> Iterator[Proof | None]:
    yield None
    kinds = (*get_args(OutcomeKind), None)
    for states, kind in itertools.product(itertools.product(get_args(PartState), repeat=len(PARTS)), kinds):
        parts = {
            name: PROVEN if state == "proven" else Part(state=state, reason="for a reason")
            for name, state in zip(PARTS, states, strict=True)
        }
        yield Proof(same_steps=STEPS if parts["requests"] == PROVEN else 2, parts=parts, outcome_kind=kind)


def overclaims(sentence: str, proof: Proof | None) -> bool:
    """Whether it says more than the proof does."""
    outcome = re.search(r"same (answer|error|open calls)", sentence)
    if outcome and (proof is None or proof.outcome != PROVEN or proof.outcome_kind != outcome[1]):
        return True
    steps = re.search(r"[Ss]ame (\d+) step", sentence)
    if steps and (proof is None or int(steps[1]) > proof.same_steps):
        return True
    return sentence.startswith("Reproduced") and (proof is None or not proof.is_reproduction)


def every_report(verdict: ReplayVerdict) -> Iterator[ReplayFacts]:
    for proof, fork, limit in itertools.product(proofs(), FORKS, LIMITS):
        yield ReplayFacts(verdict=verdict, proof=proof, fork=fork, limit=limit, steps=STEPS, stopped_at=3)


@pytest.mark.parametrize("verdict", get_args(ReplayVerdict))
def test_no_verdict_claims_what_was_not_proven(verdict):
    for facts in every_report(verdict):
        assert not overclaims(verdict_in_words(facts), facts.proof), facts
        assert "eproduced" not in next_action(facts)


@pytest.mark.parametrize("verdict", get_args(ReplayVerdict))
def test_no_form_of_the_report_claims_what_was_not_proven(verdict):
    run = make_run(model(), tool(), model())
    for facts in itertools.islice(every_report(verdict), 0, None, 61):
        report = build_report(run, kit=audit_kit(run), replay=facts)
        written = [*as_text(report).splitlines(), *as_markdown(report).splitlines(), *texts_in(as_json(report))]
        for sentence in written:
            assert not overclaims(sentence.partition("Verdict: ")[2] or sentence, facts.proof), facts


@pytest.mark.parametrize("verdict", get_args(ReplayVerdict))
def test_what_to_do_next_points_at_nothing_that_was_not_found(verdict):
    facts = ReplayFacts(verdict=verdict)

    assert not re.search(r"odd|lacks|capture", next_action(facts), re.IGNORECASE)
    found = next_action(replace(facts, is_cold=True), has_odd_step=True)
    assert ("first anomaly" in found) is (verdict == "reproduced")
    assert ("what the kit lacks" in found) is (verdict == "could_not_run")


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    "sentence",
    ["Reproduced: same 6 steps", "the same answer as before", "Same 7 steps. It broke off.", "Reproduced"],
)
def test_a_claim_without_its_proof_is_noticed(sentence):
    unproven = Proof(same_steps=STEPS, parts=dict.fromkeys(PARTS, Part(state="not_proven", reason="differs")))

    assert overclaims(sentence, unproven)
    assert overclaims(sentence, None)


def test_a_proof_survives_its_way_as_json():
    for proof in proofs():
        assert read_proof(json.loads(json.dumps(proof.to_json())) if proof else None) == proof


def test_a_fork_is_told_what_to_do_by_what_is_known_of_it():
    fork = ForkFacts(at_step=2, changes=("another prompt",))
    whole = Proof(same_steps=STEPS, parts=dict.fromkeys(PARTS, PROVEN), outcome_kind="answer")
    unproven = Proof(same_steps=STEPS, parts=dict.fromkeys(PARTS, Part(state="not_comparable", reason="not recorded")))
    waits = ReplayFacts(verdict="unknown_from_step", fork=fork)

    assert "makes no difference" in next_action(ReplayFacts(verdict="reproduced", fork=fork, proof=whole))
    assert "not compared" in next_action(ReplayFacts(verdict="reproduced", fork=fork, proof=unproven))
    assert next_action(waits).startswith("Answer and continue")
    assert "Answer and continue" not in next_action(replace(waits, limit="The outcome was not recorded."))


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        ({"contains": "could not"}, 'the outcome does not contain "could not". It ended with "cancelled".'),
        ({"equals": "sorry"}, 'the outcome does not equal "sorry". It ended with "cancelled".'),
        ({"at_most_calls": {"tool": "look", "n": 0}}, "more than 0 calls of look. look was called 1 ×."),
        ({"ends_within": 1}, "does not end within 1 step. It ended 2 steps after step 1."),
    ],
)
def test_what_was_expected_of_a_fork_and_did_not_happen_is_denied(expected, words):
    expectation = read_expectation(expected)
    model = ModelCall(history=None, response=None)
    calls: tuple[Call, ...] = (model, ToolCall(tool_name="look"), model)
    steps = tuple(Step(index=index, name="step", call=call) for index, call in enumerate(calls, start=1))
    run = Run(run_id="r", session_id="s", status="ok", output=Payload.of_text("cancelled"), steps=steps)
    seen = expectation.judge(run, 1)
    fork = ForkFacts(at_step=1, expected=expectation.words, unmet=expectation.unmet, met=seen.met, seen=seen.words)

    assert verdict_in_words(ReplayFacts(verdict="diverged", fork=fork)) == f"Expectation not met: {words}"


def test_what_was_refused_stands_in_the_sentence():
    whole = Proof(same_steps=STEPS, parts=dict.fromkeys(PARTS, PROVEN), outcome_kind="answer")
    facts = ReplayFacts(verdict="reproduced", proof=whole, refused="1 attempt refused: writing a file")

    assert verdict_in_words(facts) == "Reproduced: same 6 steps, same answer; 1 attempt refused: writing a file"
    assert verdict_in_words(replace(facts, fork=FORKS[1])).endswith("; 1 attempt refused: writing a file")


def test_a_request_without_an_answer_is_named():
    facts = ReplayFacts(verdict="fixture_missing", stopped_at=2, request="GET https://shop/y")

    assert verdict_in_words(facts) == "Unknown from step 2: no recorded exchange answers GET https://shop/y"
    assert verdict_in_words(replace(facts, request=None)) == "Could not run: fixture for step 2 missing"


@pytest.mark.parametrize(
    ("has_failed", "words"),
    [
        (False, 'The change takes effect at step 2: look now answers "no"; recorded: "yes"'),
        (True, 'look now fails at step 2: "no"; recorded: "yes"'),
    ],
)
def test_a_tool_that_fails_is_not_called_the_effect_of_a_change(has_failed: bool, words: str):
    effect = Effect(step=2, name="look", recorded='"yes"', now='"no"', has_failed=has_failed)

    assert verdict_in_words(ReplayFacts(verdict="diverged", effect=effect)) == words


def test_two_long_answers_of_a_tool_fit_a_headline():
    effect = Effect(step=2, name="look", recorded=f'"{"y" * 500}"', now=f'"{"n" * 500}"')

    assert len(verdict_in_words(ReplayFacts(verdict="diverged", effect=effect))) < 240
