"""Three versions of an order desk, and the truth planted in them: which of them refuses to cancel which order.

The truth is a table drawn by lot, so that nothing but running each version with each order tells it.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Annotated

from pydantic import Field
from pydantic_ai import Agent

VERSIONS = ("v1", "v2", "v3")
OrderId = Annotated[str, Field(description="The order number, such as ORD-1234.")]
Reason = Annotated[str, Field(description="Why the customer wants to cancel.")]


def refuses(version: str, order_id: str) -> bool:
    """What is planted."""
    return Random(f"{version} {order_id}").random() < 0.5


def agents() -> Mapping[str, str]:
    """As `REPLAY_AGENTS` has them."""
    return {version: f"{__name__}:{version}" for version in VERSIONS}


def v1() -> Agent[None, str]:
    return _order_desk("v1")


def v2() -> Agent[None, str]:
    return _order_desk("v2")


def v3() -> Agent[None, str]:
    return _order_desk("v3")


def _order_desk(version: str) -> Agent[None, str]:
    agent = Agent(
        "openai:gpt-4o",
        name="order_desk",
        instructions="You help customers with order management.",
        defer_model_check=True,
    )

    @agent.tool_plain(metadata={"replay": "read"}, description="Look up an order by its number.")
    def lookup_order(order_id: OrderId) -> str:
        return f"Order {order_id}: Widget Pro, status: delivered, non-cancellable"

    @agent.tool_plain(description="Cancel an order.")
    def cancel_order(order_id: OrderId, reason: Reason) -> str:
        if refuses(version, order_id):
            return f"Order {order_id} is not eligible for cancellation (status: delivered)."
        return f"Order {order_id} cancelled. Reason: {reason}"

    return agent
