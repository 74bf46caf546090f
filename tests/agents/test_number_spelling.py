"""Numbers of one value and other digits: a model reads text, so that they are told apart wherever they stand."""

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.replaying import assert_promise_kept, replayed

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
    for place in PLACES:
        record = record.replace(place, others.get(place, number))
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
