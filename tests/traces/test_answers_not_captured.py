"""What a tool answered, where the records of the OpenAI Agents SDK do not hold it: not captured, and never null."""

import json
from typing import Any

import pytest

from sessions_app.core.assembly.run import assemble
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.importers.openai_agents import to_spans
from sessions_app.core.run import Run
from tests.recorder.openai_playing import agent, calls, lookup, one_record, run, says
from tests.recorder.replaying import assert_promise_kept

Json = dict[str, Any]
TRACE_ID = "trace_" + "ab" * 16
ASKED = {"role": "user", "content": "Hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
ANSWER = {"type": "function_call_output", "call_id": "c1"}
SAID = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Bye"}]}


def trace(given: Json, *, told: Json) -> Run:
    """A tool between two calls of the model. `given` is in the tool's own span, `told` in the item of the request."""
    data = [
        {"type": "agent", "name": "A", "tools": ["look"]},
        {"type": "generation", "input": [ASKED], "output": [CALL], "model": "m"},
        {"type": "function", "name": "look", "input": "{}", **given},
        {"type": "generation", "input": [ASKED, CALL, {**ANSWER, **told}], "output": [SAID], "model": "m"},
    ]
    spans = [
        {
            "object": "trace.span",
            "id": f"span_{number}",
            "trace_id": TRACE_ID,
            "parent_id": "span_0" if number else None,
            "started_at": f"2026-01-01T00:00:0{number}Z",
            "ended_at": f"2026-01-01T00:00:0{number or 9}.5Z",
            "span_data": each,
        }
        for number, each in enumerate(data)
    ]
    whole = {"object": "trace", "id": TRACE_ID, "workflow_name": "Support"}
    return assemble(to_spans({"data": [whole, *spans]}), is_closed=True)


def answers(run: Run) -> list[Any]:
    return [call.result and call.result.value for _, call in run.tool_calls]


@pytest.mark.parametrize("told", [{}, {"output": None}], ids=["absent", "null"])
def test_an_answer_that_nothing_holds_was_not_captured(told: Json):
    made = trace({}, told=told)
    judged = assert_promise_kept(encode_native(made))

    assert answers(made) == [None]
    assert (judged.verdict, [reason.code for reason in judged.reasons]) == ("cold", ["tool_answers_missing"])


def test_an_answer_that_the_request_lacks_does_not_count_as_told():
    made = trace({"output": "x"}, told={})
    judged = assert_promise_kept(encode_native(made))

    assert answers(made) == ["x"]
    assert [reason.code for reason in judged.reasons] == ["other_course"]


@pytest.mark.parametrize("answer", ["x", "", "null"])
def test_an_answer_that_is_there_is_the_answer(answer: str):
    made = trace({}, told={"output": answer})

    assert assert_promise_kept(encode_native(made)).verdict == "replayable"
    assert answers(made) == [answer]


def test_a_recorded_request_without_the_answer_is_judged_and_not_refused():
    script = [calls("lookup", '{"order": "O-1"}', "c1")], [says("It has.")]
    record = one_record(lambda: run(agent(*script, tools=[lookup])))
    (part,) = record["steps"][2]["request"]["messages"][-1]["parts"]
    del part["content"]
    content = json.dumps(record).encode()
    judged = assert_promise_kept(content)

    assert (judged.step, [reason.code for reason in judged.reasons]) == (2, ["unknown_message_part"])
    assert parse_native(content).tool_calls[0][1].result is not None
