"""What agents of the frameworks answer, as checks see it: on the server, and where an exported golden runs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from agents import function_tool

from replay_goldens import records
from replay_goldens.checks import all_passed, judge, read_checks
from replay_goldens.trace import of_another_from
from sessions_app.core.formats.native import parse_native
from sessions_app.core.goldens.traces import missing_tools, trace_of
from tests.builders import make_record
from tests.recorder import openai_playing
from tests.recorder.playing import recorded
from tests.recorder.scenarios import Play, call, says, support_agent

READERS = {
    "server": lambda record: trace_of(parse_native(record)),
    "exported": lambda record: records.trace_of(json.loads(record), {}),
}


def passed(check: dict[str, Any], record: bytes, reader: str) -> bool | None:
    [judged] = judge(read_checks([check]), READERS[reader](record))
    return judged.seen.passed


def number() -> bytes:
    [record] = recorded(
        Play(support_agent(says(call("final_result", {"response": 18}, "o")), output_type=int), "How many?")
    )
    return record


@function_tool
def stock(item: str) -> dict[str, Any]:
    """Look at the stock."""
    return {"item": item, "left": 2}


def printed() -> bytes:
    """The OpenAI Agents SDK tells the model what Python prints of a dictionary."""
    script = [openai_playing.calls("stock", '{"item": "lamp"}', "call_1")], [openai_playing.says("Two.")]
    agent = openai_playing.agent(*script, tools=[stock])
    return openai_playing.bytes_of(openai_playing.one_record(lambda: openai_playing.run(agent)))


NUMBERS = [({"more_than": 5}, True), ({"less_than": 19}, True), ({"more_than": 18}, False), ({"equals": 18}, True)]


@pytest.mark.parametrize("reader", READERS)
def test_an_answer_that_is_a_number_is_compared_as_one(reader):
    record = number()

    for how, holds in NUMBERS:
        assert passed({"kind": "output", **how}, record, reader) is holds, how


BY_FUNCTION: dict[str, Any] = {"output": 42, "status": "ok", "agent": {"output_function": "total"}, "user_id": "u_1"}
OF_THE_ANSWER: list[dict[str, Any]] = [{"kind": "output", "equals": 42}, {"kind": "no_value_of_other_user"}]


@pytest.mark.parametrize(("tools", "expected"), [("frozen", None), ("run", True)])
def test_an_answer_that_a_frozen_function_was_given_is_not_judged(tools, expected):
    """In an exported golden; the run itself has come to its end."""
    trace = records.trace_of({"run_id": "r", "steps": [], **BY_FUNCTION}, {}, tools=tools)

    assert [each.seen.passed for each in judge(read_checks(OF_THE_ANSWER), trace)] == [expected, expected]
    assert all_passed(judge(read_checks([{"kind": "ends_within", "n": 1}]), trace)) is True


@pytest.mark.parametrize(("origin", "expected"), [("replay", None), ("recorded", False)])
def test_a_replay_without_the_answer_of_a_function_is_not_judged_by_it(origin, expected):
    """On the server. Control: a recording without an answer gave none."""
    record = make_record("r", **{**BY_FUNCTION, "output": None, "origin": origin})

    assert passed(OF_THE_ANSWER[0], json.dumps(record).encode(), "server") is expected


ANSWERED = [{"kind": "model", "response": {"parts": []}}] * 2
OLD = "recorded_for_another_request"
SOURCES = [
    ((OLD, OLD), None, None),
    (("recorded", OLD), None, None),
    ((OLD, "own_code"), None, None),
    (("recorded", "own_code"), True, True),
    (("recorded", "recorded"), True, True),
    ((OLD, "by_hand"), True, None),
]


@pytest.mark.parametrize(("sources", "expected", "is_short"), SOURCES)
def test_an_answer_that_rests_on_answers_to_other_requests_is_not_judged(sources, expected, is_short):
    """On the server. Control: of a fork, an answer that a person wrote, which says so itself."""
    steps = [{**step, "source": source} for step, source in zip(ANSWERED, sources, strict=True)]
    record = make_record("r", steps=steps, output=42, status="ok", user_id="u_1", origin="replay")
    trace = trace_of(parse_native(json.dumps(record).encode()))

    assert [each.seen.passed for each in judge(read_checks(OF_THE_ANSWER), trace)] == [expected, expected]
    assert all_passed(judge(read_checks([{"kind": "ends_within", "n": 2}]), trace)) is is_short


@pytest.mark.parametrize(("first", "expected"), [(2, None), (None, True)])
def test_an_answer_to_another_request_is_not_judged_in_an_exported_golden(first, expected):
    record = {"run_id": "r", "steps": ANSWERED, "output": 42, "status": "ok", "user_id": "u_1"}
    trace = records.trace_of(record, {}, first_of_another=first)

    assert [each.seen.passed for each in judge(read_checks(OF_THE_ANSWER), trace)] == [expected, expected]


def _called(tool: str, kind: str, **more: Any) -> dict[str, Any]:
    arguments, result = {"id": tool}, {"of": tool}
    return {"kind": "tool", "tool_name": tool, "arguments": arguments, "result": result, "tool_kind": kind, **more}


COSTS = {"kind": "model", "response": {"parts": [], "usage": {"cost": 0.2}}}
DONE = [COSTS, _called("find", "read"), COSTS, _called("pay", "write", ran_with={"id": "own"}), COSTS]
OF_CHOICES: list[tuple[dict[str, Any], list[bool | None]]] = [
    ({"kind": "at_most_calls", "tool": "pay", "n": 1}, [True, None, None]),
    ({"kind": "at_most_calls", "tool": "find", "n": 0}, [False, False, None]),
    ({"kind": "tool_order", "tools": ["find", "pay"]}, [True, None, None]),
    ({"kind": "tool_order", "tools": ["find"]}, [True, True, None]),
    ({"kind": "tool_order", "tools": ["pay", "find"]}, [False, None, None]),
    ({"kind": "ends_within", "n": 5}, [True, None, None]),
    ({"kind": "ends_within", "n": 1}, [False, False, None]),
    ({"kind": "no_write"}, [False, None, None]),
    ({"kind": "no_write", "tools": ["find"]}, [False, False, None]),
    ({"kind": "cost_below", "usd": 1}, [True, None, None]),
    ({"kind": "cost_below", "usd": 0.1}, [False, False, None]),
    ({"kind": "arguments", "tool": "find", "path": "/id", "equals": "find"}, [True, True, None]),
    ({"kind": "arguments", "tool": "find", "path": "/id", "equals": "none"}, [False, False, False]),
    ({"kind": "arguments", "tool": "pay", "path": "/id", "equals": "own"}, [True, True, True]),
    ({"kind": "arguments", "tool": "gone", "path": "/id", "equals": "own"}, [False, None, None]),
    ({"kind": "result", "tool": "pay", "path": "/of", "equals": "pay"}, [True, True, True]),
    ({"kind": "result", "tool": "pay", "path": "/of", "equals": "none"}, [False, False, False]),
    ({"kind": "result", "tool": "gone", "equals": "none"}, [False, None, None]),
]


@pytest.mark.parametrize("reader", ["server", "exported"])
@pytest.mark.parametrize(("check", "expected"), OF_CHOICES)
def test_calls_that_an_answer_to_another_request_asks_for_are_not_judged(check, expected, reader):
    """In order: no answer is of another request, the second is the first such, each is. What tools were given by code,
    what they answered and which calls stand before are judged as ever."""
    found = []
    for first in (None, 3, 1):
        steps = [
            {**step, **({"source": OLD} if first and place >= first else {})} for place, step in enumerate(DONE, 1)
        ]
        record = make_record("r", *steps, output=42, status="ok", origin="replay")
        trace = (
            trace_of(parse_native(json.dumps(record).encode()))
            if reader == "server"
            else records.trace_of(record, {}, first_of_another=first)
        )
        found.append(judge(read_checks([check]), trace)[0].seen)

    assert [seen.passed for seen in found] == expected
    assert all(
        of_another_from(at) in seen.words for at, seen in zip((3, 1), found[1:], strict=True) if seen.passed is None
    )


@pytest.mark.parametrize("reader", READERS)
def test_what_a_tool_returned_is_checked_where_the_model_was_told_a_text_of_it(reader):
    record = printed()

    for left, holds in ((2, True), (2.0, False), (3, False)):
        assert passed({"kind": "result", "tool": "stock", "path": "/left", "equals": left}, record, reader) is holds
    assert passed({"kind": "result", "tool": "stock", "contains": "'left': 2}"}, record, reader)


@pytest.mark.parametrize(("tool", "missing"), [("stock", ("stock",)), ("made_up", ())])
def test_an_agent_of_the_sdk_without_a_recorded_tool_lacks_it(tool, missing):
    scene = json.loads(printed())
    error = {"type": "ModelBehaviorError", "message": f"Tool {tool} not found in agent Support"}
    made = {**scene, "steps": scene["steps"][:1], "status": "error", "error": error}
    del made["final"], made["output"]

    runs = (parse_native(json.dumps(record).encode()) for record in (made, scene))

    assert missing_tools(*runs) == missing


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("said", "given"),
    [
        ({}, {"item": "lamp"}),
        ({"ran_with": {"item": "desk"}}, {"item": "desk"}),
        ({"ran_with": {"left": 1}, "ran_with_unknown": {"arguments": ["item"]}}, {"item": "lamp", "left": 1}),
        ({"approved_arguments": {"item": "desk"}}, {"item": "desk"}),
        ({"approved_arguments": {"item": "desk"}, "ran_with": {"item": "shelf"}}, {"item": "shelf"}),
    ],
)
def test_arguments_are_those_that_the_tool_was_called_with(reader, said, given):
    record = json.loads(printed())
    record["steps"][1] |= said

    check = {"kind": "arguments", "tool": "stock", "equals": given}
    assert passed(check, json.dumps(record).encode(), reader)
    other = check | {"equals": {"item": "chair"}}
    assert not passed(other, json.dumps(record).encode(), reader)


@pytest.mark.parametrize(("recorded", "has_failed"), [(None, False), ("RecordingExhausted", True)])
def test_an_exported_golden_that_stops_where_the_recording_knows_no_answer_has_not_failed(recorded, has_failed):
    """As on the server. Control: an error of this name that the scene had too is the run's own."""
    error = {"type": "RecordingExhausted", "message": "It holds 1 answer."}
    record = {"run_id": "r", "status": "error", "error": error, "steps": []}

    found = records.trace_of(record, {} if recorded is None else {"error": error})

    assert (found.has_failed, found.has_ended) == (has_failed, False)
    assert "It holds 1 answer." in found.why_not_ended
