"""Providers' own requests and answers in attributes that frameworks chose for them."""

from __future__ import annotations

import json
from typing import Any

from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from tests.core.test_assembly import agent, made, span, tools_of
from tests.recorder.replaying import replayed

CALL = {"function_call": {"id": "f1", "name": "w", "args": {"c": "P"}}}
RESULT = {"function_response": {"id": "f1", "name": "w", "response": {"result": "sun"}}}
SCHEMA = {"type": "OBJECT", "properties": {"c": {"type": "STRING"}}}
CONFIG = {
    "system_instruction": "Be kind",
    "temperature": 0.1,
    "tools": [{"function_declarations": [{"name": "w", "description": "d", "parameters": SCHEMA}]}],
}


def content(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def asked(number: int, contents: list[Any], answer: Any) -> Any:
    request = {"model": "gemini-2", "config": CONFIG, "contents": contents}
    response = {"content": answer, "finish_reason": "STOP", "usage_metadata": {"prompt_token_count": 5}}
    said = {
        "gen_ai.system": "gcp.vertex.agent",
        "gen_ai.request.model": "gemini-2",
        "gen_ai.usage.input_tokens": 5,
        "gcp.vertex.agent.llm_request": json.dumps(request) if contents else "{}",
        "gcp.vertex.agent.llm_response": json.dumps(response) if contents else "{}",
    }
    return span(number, 1, name="call_llm", attributes=said)


def adk(contents: bool = True) -> Run:
    prompt, called = content("user", {"text": "W?"}), content("model", CALL)
    told = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "w",
        "gen_ai.tool.call.id": "f1",
        "gcp.vertex.agent.tool_call_args": '{"c": "P"}',
        "gcp.vertex.agent.tool_response": '{"result": "sun"}',
    }
    later = [prompt, called, content("user", RESULT)]
    return made(
        [
            agent(),
            asked(2, [prompt] if contents else [], called),
            span(3, 1, name="execute_tool w", attributes=told),
            asked(4, later if contents else [], content("model", {"text": "Sunny."})),
        ]
    )


def test_googles_adk_keeps_them_where_nothing_is_configured():
    run = adk()

    ((_, call),) = tools_of(run)
    assert (call.arguments and call.arguments.value, call.result and call.result.value) == (
        {"c": "P"},
        {"result": "sun"},
    )
    assert run.input is not None
    assert (run.input.value, run.instructions) == ("W?", "Be kind")
    assert run.output is not None
    assert run.output.value == "Sunny."
    assert judge(run).verdict == "replayable"
    assert replayed(encode_native(run))[0].verdict == "reproduced"


def test_empty_bodies_are_content_that_was_switched_off():
    run = adk(contents=False)

    assert [call.history for _, call in run.model_calls] == [None, None]
    assert judge(run).verdict == "cold"


def test_all_messages_may_stand_in_one_old_attribute():
    said = {
        "gen_ai.operation.name": "chat",
        "gen_ai.prompt": json.dumps([{"role": "user", "content": "W?"}]),
        "gen_ai.completion": json.dumps([{"role": "assistant", "content": "Sunny."}]),
    }
    run = made([agent(), span(2, 1, name="chat m", attributes=said)])

    assert run.input is not None
    assert run.output is not None
    assert (run.input.value, run.output.value) == ("W?", "Sunny.")
