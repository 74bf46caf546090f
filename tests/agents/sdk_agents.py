"""Agents of the OpenAI Agents SDK as a team registers them: an order desk, and what becomes of it."""

from __future__ import annotations

import json
import socket
from typing import Any

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    GuardrailFunctionOutput,
    RunConfig,
    RunContextWrapper,
    Runner,
    function_tool,
    input_guardrail,
    output_guardrail,
)

from tests.recorder.openai_playing import Record, Scripted, calls, one_record, says
from tests.recorder.openai_playing import recorded as all_recorded

PROMPT = "Cancel my order ORD-5521, wrong item"
KEY = "sk-proj-4f5a6b7c8d9e0f1a2b3c4d5e6f7a8b9c"


@function_tool
def lookup_order(order_id: str) -> str:
    return f"Order {order_id}: 2x Widget Pro, status: delivered"


@function_tool
def cancel_order(order_id: str) -> str:
    return f"Order {order_id} cancelled."


@function_tool(name_override="cancel_order")
def careful_cancel_order(order_id: str) -> str:
    return f"Order {order_id} cannot be cancelled: it is delivered."


@function_tool(name_override="cancel_order", failure_error_function=None)
def calling_cancel_order(order_id: str) -> str:
    socket.create_connection(("127.0.0.1", 9))
    return f"Order {order_id} cancelled."


@function_tool(name_override="cancel_order")
def telling_cancel_order(order_id: str) -> str:
    return f"Order {order_id} cancelled with {KEY}."


def _desk(cancel: FunctionTool, instructions: str = "You help customers with their orders.") -> Agent[Any]:
    asks = [calls(name, json.dumps({"order_id": "ORD-5521"}), call_id) for name, call_id in CALLS]
    script = Scripted([asks[0]], [asks[1]], [says("I've cancelled order ORD-5521 for you.")])
    return Agent(name="orders", instructions=instructions, model=script, tools=[lookup_order, cancel])


CALLS = [("lookup_order", "call_1"), ("cancel_order", "call_2")]


def desk() -> Agent[Any]:
    return _desk(cancel_order)


def fixed() -> Agent[Any]:
    return _desk(careful_cancel_order)


def strict() -> Agent[Any]:
    return _desk(cancel_order, "NEVER cancel anything.")


def calling() -> Agent[Any]:
    return _desk(calling_cancel_order)


def telling() -> Agent[Any]:
    return _desk(telling_cancel_order)


def with_key() -> Agent[Any]:
    """Its instructions hold a secret, which recordings do not."""
    return _desk(cancel_order, f"The key of the warehouse is {KEY}.")


def _with_orders(is_kept: bool) -> dict[str, Any]:
    """Its context is the state, which the tool changes."""

    @function_tool(name_override="cancel_order")
    def cancel(ctx: RunContextWrapper[dict[str, Any]], order_id: str) -> str:
        if not is_kept:
            ctx.context["orders"][order_id] = "cancelled"
        return f"Order {order_id} cancelled."

    return {"agent": _desk(cancel), "deps_of_state": lambda state: {"orders": state["orders"]}, "state_of_deps": dict}


def with_orders() -> dict[str, Any]:
    return _with_orders(is_kept=False)


def with_orders_kept() -> dict[str, Any]:
    """The same answers, and the order is not cancelled."""
    return _with_orders(is_kept=True)


def recorded_with_state() -> Record:
    orders = {"orders": {"ORD-5521": "delivered"}}
    agent = with_orders()["agent"]
    return one_record(lambda: Runner.run(agent, PROMPT, context=orders), state=lambda: orders, snapshot_every=1)


def leaving() -> Agent[Any]:
    raise SystemExit(3)


@output_guardrail
async def polite(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info={"words": len(output.split())}, tripwire_triggered=False)


@input_guardrail
async def on_topic(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


def guarded() -> Agent[Any]:
    return desk().clone(output_guardrails=[polite], input_guardrails=[on_topic])


def guarded_at_start() -> Agent[Any]:
    return desk().clone(input_guardrails=[on_topic])


class _ChangesThePast(AgentHooks[Any]):
    """Of the second request the oldest message, in its place."""

    def __init__(self) -> None:
        self._asked = 0

    async def on_llm_start(self, context: Any, agent: Any, system_prompt: Any, input_items: list[Any]) -> None:
        self._asked += 1
        if self._asked == 2:
            input_items[0]["content"] += " again"


def changing_the_past() -> Agent[Any]:
    return desk().clone(hooks=_ChangesThePast())


def _billing(instructions: str = "You check payments.", tool: FunctionTool = lookup_order) -> Agent[Any]:
    looks = calls("lookup_order", '{"order_id": "ORD-5521"}', "call_i")
    script = Scripted([looks], [says("It is paid.")])
    return Agent(name="Billing", instructions=instructions, model=script, tools=[tool])


def _outer(ask: Any) -> Agent[Any]:
    """Another agent runs inside of its tool."""
    asks = calls("ask", '{"input": "Is ORD-5521 paid?"}', "call_1")
    outer = Scripted([asks], [says("Yes, it is paid.")])
    return Agent(name="orders", instructions="Ask.", model=outer, tools=[ask])


def asking() -> Agent[Any]:
    return _outer(_billing().as_tool("ask", "Ask billing."))


def asking_otherwise() -> Agent[Any]:
    return _outer(_billing("You check payments twice.").as_tool("ask", "Ask billing."))


@function_tool(name_override="lookup_order")
def other_lookup_order(order_id: str) -> str:
    return f"Order {order_id}: lost"


def asking_with_other_tool() -> Agent[Any]:
    return _outer(_billing(tool=other_lookup_order).as_tool("ask", "Ask billing."))


def asking_with_config() -> Agent[Any]:
    """The tool has a model of its own, which is not that of the run around it."""
    billing = _billing()
    return _outer(billing.as_tool("ask", "Ask billing.", run_config=RunConfig(model=billing.model)))


def asking_behind_handoff() -> Agent[Any]:
    """The agent that has the tool is handed over to."""
    hands = calls("transfer_to_orders", "{}", "call_h")
    return Agent(name="front", instructions="Hand over.", model=Scripted([hands]), handoffs=[asking()])


def _within(*billings: Agent[Any], words: str = "") -> Agent[Any]:
    """The tool is a function that runs the agents itself, one after the other."""

    @function_tool(name_override="ask")
    async def ask(input: str) -> str:
        try:
            answers = [(await Runner.run(billing, input)).final_output for billing in billings]
        except Exception:
            return "Nobody knows."
        return words + " ".join(answers)

    return _outer(ask)


def asking_within() -> Agent[Any]:
    return _within(_billing())


def asking_within_otherwise() -> Agent[Any]:
    return _within(_billing("You check payments twice."))


def asking_within_in_other_words() -> Agent[Any]:
    return _within(_billing(), words="Billing: ")


def asking_within_twice() -> Agent[Any]:
    return _within(_billing(), _billing("You check payments twice."))


def asking_nobody_within() -> Agent[Any]:
    return _within()


def recorded_with_inner(make: Any = asking) -> list[Record]:
    """The outer run first."""
    return all_recorded(lambda: Runner.run(make(), PROMPT))


def recorded(make: Any = desk) -> Record:
    return one_record(lambda: Runner.run(make(), PROMPT))


def recorded_streamed() -> Record:
    async def play() -> None:
        async for _ in Runner.run_streamed(desk(), PROMPT).stream_events():
            pass

    return one_record(play)
