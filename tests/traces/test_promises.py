"""What the judge says of a run when it comes in, its replay keeps."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.builders import SAMPLES, SESSION_FILE
from tests.recorder.replaying import replayed
from tests.traces.captures import CHOICE, Capture, captures

ENDS = ("unknown_from_step", "fixture_missing", "ran_past_recording")
CAPTURES = captures()


def broken_promise(run: Run, said: Verdict) -> str | None:
    """What the replay did in place of what was said; None where both agree."""
    result, _ = replayed(encode_native(run))
    step = result.divergence.step if result.divergence else None
    kept = {
        "cold": result.verdict == "could_not_run" and bool(result.error),
        "replayable": result.verdict == "reproduced",
        "replayable_to_step": step == (said.step or 0) + 1 and _may_end(result.verdict, said),
    }[said.verdict]
    return None if kept else f"{run.run_id}: said {said.to_json()}, was {result.verdict} at {step}"


def _may_end(verdict: str, said: Verdict) -> bool:
    """A recording that contradicts itself differs from itself at the step that was named."""
    return verdict in ENDS or (verdict == "diverged" and said.reasons[0].code == "answer_contradicted")


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_what_is_said_of_captured_runs_is_kept(capture: Capture):
    assert [found for run in capture.runs if (found := broken_promise(run, judge(run)))] == []


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_is_said_of_samples_is_kept(sample: Any):
    run = parse_document(sample.read_bytes())

    assert broken_promise(run, judge(run)) is None


def test_a_false_word_is_caught():
    run = _sound().runs[0]
    false = (Verdict(verdict="cold"), Verdict(verdict="replayable_to_step", step=3))

    assert broken_promise(run, judge(run)) is None
    assert all(broken_promise(run, each) for each in false)


# --- runs in pieces ----------------------------------------------------------------------------


def test_a_run_whose_first_model_call_was_lost_is_cold():
    sound = _sound()
    first = _model_spans(sound)[0]
    lost = assemble([span for span in sound.spans if span.span_id != first], is_closed=True)

    said = judge(lost)

    assert (said.verdict, said.reasons[0].code, said.reasons[0].step) == ("cold", "model_answer_missing", 1)
    assert broken_promise(lost, said) is None


@pytest.mark.parametrize(("told_in", "step"), [(1, 3), (2, 5)])
def test_an_answer_that_a_request_shows_cut_short_ends_the_promise_there(told_in: int, step: int):
    run = _shown_otherwise(told_in, '"lookup_order"', lambda text: text)
    cut = _shown_otherwise(told_in, _long_answer(), lambda text: text[:12] + "…")

    assert judge(run).verdict == "replayable"
    said = judge(cut)
    assert (said.step, said.reasons[0].code) == (step - 1, "answer_cut_short")
    assert broken_promise(cut, said) is None


def test_agents_that_work_at_once_are_promised_up_to_where_they_meet():
    sound = _sound()
    root = next(span for span in sound.spans if span.parent_id is None)
    top = replace(root, span_id="f" * 16, name="workflow", attributes={}, end_ns=(root.end_ns or 0) * 2)
    third = ((root.end_ns or 0) - (root.start_ns or 0)) // 3
    apart = [*copied(sound.spans, "01", 0), *copied(sound.spans, "02", third * 4)]
    at_once = [*copied(sound.spans, "01", 0), *copied(sound.spans, "02", third)]

    for spans, code in ((apart, "later_turn"), (at_once, "other_course")):
        run = assemble([top, *spans], is_closed=True)
        said = judge(run)
        assert said.reasons[0].code == code
        assert broken_promise(run, said) is None


# --- records that contradict themselves --------------------------------------------------------


def test_instructions_beside_the_messages_that_say_otherwise_are_named():
    record = json.loads(SESSION_FILE.read_bytes())
    other = {**record, "instructions": "Speak Latin."}
    for message in other["messages"]:
        if message["type"] == "ModelRequest":
            message["instructions"] = "Speak English."
    run = parse_document(json.dumps(other).encode())

    said = judge(run)

    assert said.reasons[0].code == "instructions_contradicted"
    assert broken_promise(run, said) is None


def test_a_list_of_calls_beside_the_messages_that_says_otherwise_is_named():
    record = json.loads(SESSION_FILE.read_bytes())
    sound = parse_document(json.dumps(record).encode())
    record["tool_calls"][0]["args"] = {"other": True}
    run = parse_document(json.dumps(record).encode())

    said = judge(run)

    assert "calls_contradicted" not in [reason.code for reason in judge(sound).reasons]
    assert (said.reasons[0].code, said.reasons[0].step) == ("calls_contradicted", sound.tool_calls[0][0].index)
    assert broken_promise(run, said) is None


@pytest.mark.parametrize("name", ["tool_name", "tool", "name"])
@pytest.mark.parametrize("arguments", ["args", "arguments"])
def test_a_list_of_the_same_calls_is_no_contradiction_however_it_names_them(name: str, arguments: str):
    record = json.loads(SESSION_FILE.read_bytes())
    rows = [{name: row["tool"], arguments: row["args"]} for row in record["tool_calls"]]

    said = judge(parse_document(json.dumps({**record, "tool_calls": rows}).encode()))

    assert "calls_contradicted" not in [reason.code for reason in said.reasons]


def test_a_list_with_fewer_calls_than_the_messages_is_named_as_that():
    record = json.loads(SESSION_FILE.read_bytes())
    run = parse_document(json.dumps({**record, "tool_calls": []}).encode())

    said = judge(run)

    count = len(run.tool_calls)
    assert (said.reasons[0].code, said.reasons[0].step) == ("calls_contradicted", run.tool_calls[0][0].index)
    assert said.reasons[0].message.startswith(f"The list of tool calls holds 0 calls, the messages {count}.")
    assert broken_promise(run, said) is None


def _with_an_earlier_turn(record: dict[str, Any]) -> dict[str, Any]:
    """The same turn before, with ids of its own, in the messages and in the list."""
    earlier = json.loads(json.dumps(record))
    for message in earlier["messages"]:
        for part in message["parts"]:
            if "tool_call_id" in part:
                part["tool_call_id"] += "-before"
    both = {name: earlier[name] + record[name] for name in ("messages", "tool_calls")}
    return {**record, **both}


@pytest.mark.parametrize("changed", [False, True])
def test_a_list_of_calls_may_hold_those_of_earlier_turns(changed: bool):
    record = _with_an_earlier_turn(json.loads(SESSION_FILE.read_bytes()))
    if changed:
        record["tool_calls"][0]["args"] = {"other": True}
    run = parse_document(json.dumps(record).encode())

    said = judge(run)

    assert len(run.tool_calls) == len(record["tool_calls"]) / 2
    assert ("calls_contradicted" in [reason.code for reason in said.reasons]) == changed
    assert broken_promise(run, said) is None


@pytest.mark.parametrize("where", ["the list", "the message"])
def test_a_list_of_calls_with_keys_in_another_order_than_the_messages_is_named(where: str):
    record = json.loads(SESSION_FILE.read_bytes())
    call = next(part for message in record["messages"] for part in message["parts"] if "args" in part)
    listed = record["tool_calls"][0]
    call["args"], listed["args"] = ({"order_id": "7", "unit": "km"} for _ in range(2))
    assert "calls_contradicted" not in [
        each.code for each in judge(parse_document(json.dumps(record).encode())).reasons
    ]
    (listed if where == "the list" else call)["args"] = {"unit": "km", "order_id": "7"}
    run = parse_document(json.dumps(record).encode())

    said = judge(run)

    assert "calls_contradicted" in [reason.code for reason in said.reasons]
    assert broken_promise(run, said) is None


# --- spans -------------------------------------------------------------------------------------


def _sound() -> Capture:
    return Capture(CHOICE / "pydantic-ai-v5" / "order_lookup")


def _model_spans(capture: Capture) -> list[str]:
    return [str(step.extra["span"]["span_id"]) for step, _ in capture.runs[0].model_calls]


def _long_answer() -> str:
    call = _sound().runs[0].tool_calls[0][1]
    return json.dumps(call.result.value if call.result else None)


def _shown_otherwise(told_in: int, answer: str, change: Callable[[str], str]) -> Run:
    """The first tool's answer, as the request of this model call shows it."""
    sound = _sound()
    shown = _model_spans(sound)[told_in]

    def changed(span: Span) -> Span:
        messages = json.loads(str(span.attributes["gen_ai.input.messages"]))
        return replace(span, attributes={**span.attributes, "gen_ai.input.messages": json.dumps(_told(messages))})

    def _told(messages: Any) -> JsonValue:
        for part in [part for message in messages for part in message["parts"]]:
            if part["type"] == "tool_call_response" and json.dumps(part["result"]) == answer:
                part["result"] = change(answer)
        return messages

    spans = [changed(span) if span.span_id == shown else span for span in sound.spans]
    return assemble(spans, is_closed=True)


def copied(spans: list[Span], mark: str, later: int) -> list[Span]:
    return [
        replace(
            span,
            span_id=mark + span.span_id[2:],
            parent_id="f" * 16 if span.parent_id is None else mark + span.parent_id[2:],
            start_ns=(span.start_ns or 0) + later,
            end_ns=(span.end_ns or 0) + later,
        )
        for span in spans
    ]
