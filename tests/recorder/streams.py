"""Streamed runs whose final text has a call beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from tests.recorder.scenarios import CrmDown, Play

STRATEGIES = ("early", "graceful", "exhaustive")


def text_then_call(strategy: Any, *, crashes: bool = False) -> Play:
    async def stream(messages: Any, info: AgentInfo) -> AsyncIterator[Any]:
        yield "Looking "
        yield "now."
        yield {1: DeltaToolCall(name="lookup_order", json_args='{"order_id": ', tool_call_id="a")}
        yield {1: DeltaToolCall(json_args='"ORD-1"}')}

    agent: Agent[None, str] = Agent(FunctionModel(stream_function=stream), end_strategy=strategy)

    @agent.tool_plain
    def lookup_order(order_id: str) -> dict[str, str]:
        if crashes:
            raise CrmDown("the CRM is down")
        return {"id": order_id, "status": "shipped"}

    return Play(agent, "Where?")
