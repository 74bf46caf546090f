"""Values that the hook of Pydantic AI must not read, must not keep, or cannot write down as they are."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, TextOutput, ToolReturn
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import MCPServerTool

from replay_recorder.guard import FAULTS
from replay_recorder.hooks.pydantic_ai_messages import answer_value, json_value, message_text, parameters_text
from replay_recorder.hooks.pydantic_ai_reading import settings_value
from sessions_app.core.run import answered
from tests.recorder.recordings import only_run_of, records_of, value
from tests.recorder.replaying import replayed

SECRET = "canary-7"


def says(*parts: Any) -> FunctionModel:
    """One answer after the other."""
    left = iter(parts)
    return FunctionModel(lambda *_: ModelResponse(parts=[next(left)]))


def run(agent: Agent[Any, Any], prompt: Any = "x") -> Any:
    return asyncio.run(agent.run(prompt))


def numbers(text: str) -> Any:
    return iter(range(3))


def test_an_output_that_can_be_read_once_is_left_to_the_agent():
    outputs: list[list[int]] = []
    agent = Agent(says(TextPart("hello")), output_type=TextOutput(numbers))

    records_of(lambda: outputs.append(list(run(agent).output)))

    assert outputs == [[0, 1, 2]]


def test_metadata_that_can_be_read_once_is_left_to_the_agent():
    agent = Agent(says(ToolCallPart("look", {}), TextPart("Done.")))

    @agent.tool_plain
    def look() -> ToolReturn[str]:
        return ToolReturn("v", metadata={"rows": numbers("x")})

    rows: list[int] = []

    def work() -> None:
        messages = run(agent).all_messages()
        rows.extend(messages[2].parts[0].metadata["rows"])

    (record,) = records_of(work)

    assert rows == [0, 1, 2]
    assert [step["kind"] for step in json.loads(record)["steps"]] == ["model", "tool", "model"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": SECRET},
        httpx.Headers({"Authorization": SECRET}),
        MappingProxyType({"Authorization": SECRET}),
        [("Authorization", SECRET)],
        [SECRET],
        SECRET,
    ],
)
def test_no_form_of_headers_brings_its_values_along(headers):
    said = settings_value({"extra_headers": headers, "temperature": 0})

    assert SECRET not in said
    assert "[redacted]" in said


def test_what_a_provider_sends_on_to_a_server_is_kept_without_its_secrets():
    tool = MCPServerTool(
        id="crm",
        url=f"https://u:{SECRET}@mcp.example/",
        authorization_token=SECRET,
        headers={"X-Api-Key": SECRET},
    )

    said = parameters_text(ModelRequestParameters(native_tools=[tool]))

    assert SECRET not in said
    assert json.loads(said)["native_tools"][0]["headers"] == {"X-Api-Key": "[redacted]"}


def test_a_tool_that_is_no_json_costs_no_step():
    agent = Agent(says(ToolCallPart("look", {}), TextPart("Done.")))

    @agent.tool_plain(metadata={"handler": object()})
    def look() -> int:
        return 1

    (record,) = records_of(lambda: run(agent))

    found = json.loads(record)
    assert all("request" in step for step in found["steps"] if step["kind"] == "model")
    assert (len(found["tools"]), FAULTS.counts) == (1, {})


def test_what_a_request_sends_beside_its_settings_is_kept_without_its_secrets():
    body = {"user": "ada", "auth": {"api_key": SECRET}, "list": [{"token": SECRET}], "headers": {"X-Auth": SECRET}}

    said = settings_value({"extra_body": {**body, "url": f"https://u:{SECRET}@h/?a=1", "stop_token": 3}})

    assert SECRET not in said
    assert json.loads(said)["extra_body"]["user"] == "ada"
    assert json.loads(said)["extra_body"]["url"] == "https://h/?a=1"
    assert json.loads(said)["extra_body"]["stop_token"] == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"extra_query": {"api_key": SECRET}},
        {"extra_query": [("api_key", SECRET)]},
        {"extra_body": f"key={SECRET}"},
        {"extra_body": SECRET.encode()},
        {"more_fields": {"api_key": SECRET}},
        {"http_headers": {"X-Auth": SECRET}},
    ],
)
def test_no_setting_brings_a_secret_along(settings):
    assert SECRET not in settings_value(settings)


def gives(result: Any) -> Agent[None, str]:
    agent = Agent(says(ToolCallPart("look", {}), TextPart("Done.")))

    @agent.tool_plain
    def look() -> Any:
        return result

    return agent


def no_id(_: Any) -> str:
    """Writing one out is what cannot be done."""
    return ""


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "result", [deep(240), 10**5000, {"n": 10**5000}, list(range(300_000)), {"a": deep(150)}], ids=no_id
)
def test_an_answer_that_the_server_would_refuse_does_not_cost_the_run(result):
    agent = gives(result)

    found = only_run_of(lambda: run(agent))

    assert [step.kind for step in found.steps] == ["model", "tool", "model"]
    assert value(answered(found.steps[1])) is not None


@pytest.mark.parametrize(
    "result", [deep(90), 10**4000, list(range(150_000)), "[" * 500, {"a": "[{,", "b": "]}"}], ids=no_id
)
def test_an_answer_that_the_server_takes_is_kept_as_it_is(result):
    agent = gives(result)

    assert value(answered(only_run_of(lambda: run(agent)).steps[1])) == result


@dataclass
class Holder:
    rows: Any


class Model(BaseModel, arbitrary_types_allowed=True):
    rows: Any


WRAPPERS: list[Callable[[Any], Any]] = [
    lambda rows: rows,
    lambda rows: {"rows": [rows]},
    lambda rows: Holder(rows),
    lambda rows: Model(rows=rows),
    lambda rows: deque([rows]),
    lambda rows: {"rows": [rows, *range(10_001)]},
]


@pytest.mark.parametrize("wrapped", WRAPPERS, ids=range(len(WRAPPERS)))
def test_what_can_be_read_once_is_left_to_the_agent(wrapped):
    rows = numbers("x")
    given = wrapped(rows)

    assert answer_value(given) is None
    assert message_text(ModelRequest(parts=[ToolReturnPart("look", given, "c1")]))
    assert message_text(ModelRequest(parts=[ToolReturnPart("look", 1, "c1", metadata=given)]))
    assert json_value(given)
    assert list(rows) == [0, 1, 2]


def test_no_number_is_none_of_json():
    assert json.loads(json_value({"a": float("nan"), "b": float("inf")})) == {"a": "NaN", "b": "Infinity"}


def test_a_state_of_many_values_is_taken_by_the_server():
    rows = list(range(250_000))
    agent = gives("x")

    found = only_run_of(lambda: run(agent), state=lambda: {"rows": rows}, snapshot_every=1)

    assert found.steps[-1].state is not None or found.steps[0].state is not None


class Unreadable:
    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def unreadable(text: str) -> Any:
    return Unreadable()


def test_an_output_that_cannot_be_read_does_not_keep_the_run_open():
    agent = Agent(says(TextPart("hello")), output_type=TextOutput(unreadable))

    assert only_run_of(lambda: run(agent)).status == "ok"


def test_a_list_prompt_with_half_a_character_is_recorded():
    (record,) = records_of(lambda: run(Agent(says(TextPart("Done."))), ["\ud800 hi", "x"]))

    assert json.loads(record)["input"][1] == "x"


def test_an_infinite_number_as_output_replays_into_a_record_that_can_be_read():
    tall = ModelResponse([ToolCallPart("final_result", '{"response": 1e400}')])
    agent = Agent(FunctionModel(lambda messages, info: tall), output_type=float)
    (record,) = records_of(lambda: asyncio.run(agent.run("How tall?")))

    result, produced = replayed(record)

    assert result.verdict == "unknown_from_step"
    assert produced is not None
    assert value(produced.output) == "Infinity"
