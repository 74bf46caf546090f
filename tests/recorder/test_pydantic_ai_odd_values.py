"""Values that the hook of Pydantic AI must not read, must not keep, or cannot write down as they are."""

from __future__ import annotations

import asyncio
import json
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from pydantic_ai import Agent, TextOutput, ToolReturn
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import MCPServerTool

from replay_recorder.guard import FAULTS
from replay_recorder.hooks.pydantic_ai_messages import parameters_text
from replay_recorder.hooks.pydantic_ai_reading import settings_value
from tests.recorder.recordings import records_of

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


def test_a_list_prompt_with_half_a_character_is_recorded():
    (record,) = records_of(lambda: run(Agent(says(TextPart("Done."))), ["\ud800 hi", "x"]))

    assert json.loads(record)["input"][1] == "x"
