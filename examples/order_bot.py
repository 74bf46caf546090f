"""The order bot with its bug: it cancels an order that was delivered and cannot be cancelled.

    python -m examples.order_bot            # the bug
    python -m examples.order_bot --fixed    # the same request to the repaired bot

Needs pydantic-ai-slim. The model is scripted, so it needs no key and errs the same way every time; the agent, its tools
and the recording are real. `install` is all that it takes to record messages, tool calls, and how the orders change
from step to step. With REPLAY_URL and REPLAY_KEY set the run is sent to that server, else it stays in a folder.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
import uuid
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import replay_recorder

Orders = dict[str, dict[str, Any]]
ORDERS: Orders = {"ORD-5521": {"item": "Widget Pro", "status": "delivered", "cancellable": False}}
REQUEST = "Cancel order ORD-5521, changed my mind"


def order_bot(orders: Orders, *, checks_eligibility: bool) -> Agent[None, str]:
    """An agent whose tools look at these orders, and change them."""
    model = FunctionModel(decide, model_name="scripted-1")
    agent = Agent(model, name="order_bot", instructions="You help customers with their orders.")

    @agent.tool_plain
    def lookup_order(order_id: str) -> str:
        """Look up an order by its number."""
        order = orders[order_id]
        can_be = "cancellable" if order["cancellable"] else "non-cancellable"
        return f"Order {order_id}: {order['item']}, {order['status']}, {can_be}"

    @agent.tool_plain
    def cancel_order(order_id: str, reason: str) -> str:
        """Cancel an order."""
        order = orders[order_id]
        if checks_eligibility and not order["cancellable"]:
            return f"Order {order_id} cannot be cancelled: it is {order['status']}."
        order.update(status="cancelled", reason=reason)
        return f"Order {order_id} is cancelled. Reason: {reason}."

    return agent


def decide(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """The model: it looks the order up, cancels it whatever it sees, and says what came of it."""
    match messages[-1].parts[-1]:
        case ToolReturnPart(tool_name="lookup_order"):
            return ModelResponse([ToolCallPart("cancel_order", {"order_id": "ORD-5521", "reason": "changed my mind"})])
        case ToolReturnPart(tool_name="cancel_order", content=outcome):
            return ModelResponse([TextPart(str(outcome))])
        case _:
            return ModelResponse([ToolCallPart("lookup_order", {"order_id": "ORD-5521"})])


def as_it_was() -> dict[str, Any]:
    """For goldens: the bot, the orders that it begins with, and how its state is read from them."""
    return _for_goldens(checks_eligibility=False)


def fixed() -> dict[str, Any]:
    return _for_goldens(checks_eligibility=True)


def _for_goldens(*, checks_eligibility: bool) -> dict[str, Any]:
    orders = copy.deepcopy(ORDERS)
    bot = order_bot(orders, checks_eligibility=checks_eligibility)
    return {"agent": bot, "deps": orders, "state_of_deps": lambda orders: {"orders": orders}}


def main(is_fixed: bool, folder: str) -> None:
    orders = copy.deepcopy(ORDERS)
    replay_recorder.install(
        spool=folder,
        agent_version="v2" if is_fixed else "v1",
        state=lambda: {"orders": orders},
        snapshot_every=2,  # behind each tool call: before it the model was asked
    )
    run_id = f"cancel_{uuid.uuid4().hex[:6]}"
    with replay_recorder.context(user_id="u_2071", tenant_id="shop-eu", flags={}):
        bot = order_bot(orders, checks_eligibility=is_fixed)
        result = bot.run_sync(REQUEST, run_id=run_id, conversation_id=run_id)

    parts = [part for message in result.all_messages() for part in message.parts]
    print(f"Asked:     {REQUEST}")
    print(f"Called:    {', '.join(part.tool_name for part in parts if isinstance(part, ToolCallPart))}")
    print(f"Answered:  {result.output}")
    print(f"The order: {ORDERS['ORD-5521']['status']} before, {orders['ORD-5521']['status']} after")
    print(f"Recorded:  {run_id}, {whereabouts(folder)}")


def whereabouts(folder: str) -> str:
    """Where the recording is now."""
    replay_recorder.flush()
    if replay_recorder.stats().get("delivered"):
        return "sent"
    newest = sorted(Path(folder).glob("*/*.run"))[-1:]
    return " ".join(["replay-recorder inspect", *map(str, newest)])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="An order bot with a bug, recorded.")
    parser.add_argument("--fixed", action="store_true", help="run the repaired bot")
    parser.add_argument("--folder", help="where the recording is kept; by default a temporary folder")
    given = parser.parse_args()
    main(given.fixed, given.folder or tempfile.mkdtemp(prefix="order-bot-"))
