"""Numbers of one value and other digits: a model reads text, so that they are told apart wherever they stand."""

import json

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.agents.own_agents import observed_by, own, place, recorded_run, replayed_by
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_promise_kept, replayed, verdict_of
from tests.recorder.scenarios import Play, call, says, support_agent, tool_beside_output

RECORD = """{"format": "agent-replay.run", "version": 1, "run_id": "r", "input": "q", "output": "done", "steps": [
{"kind": "model", "request": {"messages": [{"kind": "request", "parts": [
  {"part_kind": "user-prompt", "content": "q"}]}]},
 "response": {"kind": "response", "parts": [
  {"part_kind": "tool-call", "tool_name": "f", "args": {"n": ASKED}, "tool_call_id": "c1"}]}},
{"kind": "tool", "tool_name": "f", "call_id": "c1", "arguments": {"n": CALLED}, "result": {"v": GIVEN}},
{"kind": "model", "request": {"after": 1, "messages": [{"kind": "request", "parts": [
  {"part_kind": "tool-return", "tool_name": "f", "content": {"v": TOLD}, "tool_call_id": "c1"}]}]},
 "response": {"kind": "response", "parts": [{"part_kind": "text", "content": "done"}]}}]}"""
PLACES = {"ASKED": 1, "CALLED": 1, "GIVEN": 2, "TOLD": 2}
"""The last step that is left, where that place alone is spelled otherwise."""


def spelled(number: str, **others: str) -> bytes:
    record = RECORD
    for word in PLACES:
        record = record.replace(word, others.get(word, number))
    return record.encode()


def is_identical(one: bytes, other: bytes) -> bool | None:
    return compare_runs(parse_native(one), parse_native(other)).identical


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("number", "other"), [("1.0", "1.00"), ("0.0", "0e0"), ("0", "-0"), ("21.0", "2.1e1")])
def test_other_digits_in_one_place_alone_are_judged(number: str, other: str, place: str):
    record = spelled(number, **{place: other})

    judged = assert_promise_kept(record)

    assert ([reason.code for reason in judged.reasons], judged.step) == (["spelling_contradicted"], PLACES[place])
    assert is_identical(spelled(number), record) is False


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("number", "other"), [("1e-7", "0.0000001"), ("0.1", "1e-1"), ("1e-7", "1E-07")])
def test_how_an_exponent_is_written_is_no_difference(number: str, other: str, place: str):
    record = spelled(number, **{place: other})

    assert judge(parse_native(record)).verdict == "replayable"
    assert replayed(record)[0].verdict == "reproduced"
    assert is_identical(spelled(number), record)


@pytest.mark.parametrize("number", ["1.00", "-0", "0e0", "-0.0", "1.0e1"])
def test_any_spelling_that_stands_in_all_places_is_reproduced(number: str):
    assert judge(parse_native(spelled(number))).verdict == "replayable"
    assert replayed(spelled(number))[0].verdict == "reproduced"


@pytest.mark.parametrize(("given", "told"), [("-0", "0"), ("0", "-0"), ("-0", "-0"), ("0", "0"), ('"-0"', '"-0"')])
def test_an_answer_that_is_a_number_alone_is_told_as_it_was_given(given: str, told: str):
    record = RECORD.replace('{"v": GIVEN}', given).replace('{"v": TOLD}', told)
    record = record.replace("ASKED", "1").replace("CALLED", "1")

    judged, (result, _) = judge(parse_native(record.encode())), replayed(record.encode())

    expected = ("reproduced", []) if given == told else ("unknown_from_step", ["spelling_contradicted"])
    assert (result.verdict, [reason.code for reason in judged.reasons]) == expected


@pytest.mark.parametrize("end", ["\r", " ", "X"])
@pytest.mark.parametrize("text", ["plain", "[1, 2]", '{"a": 1}'])
def test_white_space_that_the_model_was_told_beside_an_answer_is_judged_where_it_was_told(text: str, end: str):
    record = json.loads(recorded(giving(text))[-1])
    record["steps"][2]["request"]["messages"][0]["parts"][0]["content"] += end

    judged = judge(parse_native(json.dumps(record).encode()))

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("answer_contradicted", 3)]
    assert verdict_of(record) == ("diverged", 3, "messages[2].parts[0].content")


def test_a_tool_that_gives_json_with_other_spaces_differs_at_its_own_step():
    run = recorded_run(lambda: giving("[1, 2]"))

    assert place(observed_by(run, giving("[1,2]"), tools="run")) == ("diverged", 2, "result")
    assert place(replayed_by(run, own(giving("[1,2]")), runs_tools=True)) == ("diverged", 2, "result")


def giving(text: str) -> Play:
    def look() -> str:
        return text

    agent = support_agent(says(call("look", {}, "a")), says("Fine."))
    agent.tool_plain(look)
    return Play(agent, "Where?")


def test_digits_that_the_messages_at_the_end_alone_tell_are_judged_at_the_call():
    record = json.loads(recorded(tool_beside_output(), "run")[-1])
    content = record["final"]["messages"][-1]["parts"][0]["content"]
    assert content["price"] == 19.9

    content["price"] = "@"
    changed = json.dumps(record).replace('"@"', "19.90").encode()

    judged = assert_promise_kept(changed)
    assert [(reason.code, reason.step) for reason in judged.reasons] == [("spelling_contradicted", 2)]
