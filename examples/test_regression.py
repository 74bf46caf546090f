"""Runs that once went wrong are kept as tests: the recorded answers of their tools, and what has to happen instead.

    pytest examples/test_regression.py

`recordings/` holds the tool calls of two incidents, as `ToolRecorder.save` writes them in production. Each test gives
them to the agent of today, checks which tools it calls and which states it passes through, and not its answer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from examples.minimal_agent_graph import DocsAgent, State, StepEvent
from examples.record_replay_tools import CallTool, cancel_on_request
from replay_recorder import RecordingExhausted, ReplayMismatch, ToolReplayer

RECORDINGS = Path(__file__).with_name("recordings")


class Replay:
    """Tools that answer from the recording of a run, and the sequence in which they were called."""

    def __init__(self, run_id: str) -> None:
        self.replayer = ToolReplayer(run_id, RECORDINGS)
        self.called: list[str] = []

    def call_tool(self, tool_name: str, args: dict[str, Any]) -> Any:
        self.called.append(tool_name)
        return self.replayer.replay(tool_name, args)

    def tool(self, tool_name: str) -> Callable[..., Any]:
        return lambda **args: self.call_tool(tool_name, args)


# --- the agent that searched twenty times


def ask_about_refunds(agent: type[DocsAgent]) -> tuple[list[str], list[State]]:
    """The tools that were called, and the state behind each step."""
    replay, events = Replay("run_xyz789"), list[StepEvent]()
    agent({"search_docs": replay.tool("search_docs")}, events.append).run("refund policy")
    return replay.called, [event.output_state for event in events]


def check_refuses_when_nothing_is_found(agent: type[DocsAgent]) -> None:
    called, states = ask_about_refunds(agent)

    assert called == ["search_docs"]
    assert states[1]["docs"] == []
    assert "don't have" in states[-1]["answer"]


def test_the_docs_agent_refuses_when_nothing_is_found() -> None:
    check_refuses_when_nothing_is_found(DocsAgent)


class SearchesAgain(DocsAgent):
    """The agent as it was: it takes an empty result for no result."""

    def run(self, question: str) -> str:
        while not (found := self.tools["search_docs"](query=question))["docs"]:
            pass
        return str(found["docs"][0])


def test_the_check_fails_for_the_agent_as_it_was() -> None:
    with pytest.raises(RecordingExhausted, match="holds 20 calls and none is left"):
        check_refuses_when_nothing_is_found(SearchesAgain)


# --- the agent that cancelled a delivered order


def check_asks_before_it_cancels(agent: Callable[[str, CallTool], str]) -> None:
    replay = Replay("cancel_5521")

    answer = agent("ORD-5521", replay.call_tool)

    assert replay.called == ["lookup_order"]
    assert [call["tool_name"] for call in replay.replayer.left_over()] == ["cancel_order"]
    assert "cannot be cancelled" in answer


def test_the_order_agent_does_not_cancel_what_was_delivered() -> None:
    check_asks_before_it_cancels(cancel_on_request)


def cancel_at_once(order_id: str, call_tool: CallTool) -> str:
    """The agent as it was: it looks, and cancels whatever it has seen."""
    call_tool("lookup_order", {"order_id": order_id})
    return f"Order {order_id} is {call_tool('cancel_order', {'order_id': order_id})['status']}."


def test_the_check_fails_for_the_order_agent_as_it_was() -> None:
    with pytest.raises(AssertionError, match="cancel_order"):
        check_asks_before_it_cancels(cancel_at_once)


def test_a_call_with_other_arguments_is_no_replay() -> None:
    with pytest.raises(ReplayMismatch, match=r"recorded as lookup_order\(.*ORD-5521.*ORD-5522"):
        cancel_on_request("ORD-5522", Replay("cancel_5521").call_tool)
