"""Agents to try a code replay with: those of the example recordings, and the repairs of three.

A fresh installation has them registered (`REPLAY_AGENTS` puts a team's own in their place):

    order_desk            the one that was recorded as cancel_5521: it cancels what cannot be cancelled
    order_desk_fixed      checks an order before its tool cancels it
    order_desk_repaired   checks it inside of the tool, which shows when the tool runs in the replay
    v2_with_empty_check   the assistant of run_xyz789, which says that it found nothing instead of searching on
    order_lookup          the one that was recorded as r_8821: it finds orders of other users too
    order_lookup_scoped   looks for orders of the user alone
    billing_desk          the one that was recorded as charged_3107: it charges a card twice and sends two e-mails

    python -m sessions_app.examples.agents    # the agents, their tools, and which of these only read

They look like any agent of a team: nothing here knows that it is replayed. A replay answers for the model, and for the
tools, of which none runs unless it is asked for; then they run with the world off.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import Field
from pydantic_ai import Agent, FunctionToolset, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.settings import ModelSettings

MODEL = "openai:gpt-4o"
OrderId = Annotated[str, Field(description="The order number, such as ORD-1234.")]
Reason = Annotated[str, Field(description="Why the customer wants to cancel.")]
Query = Annotated[str, Field(description="What to search for.")]
InvoiceId = Annotated[str, Field(description="The invoice number, such as INV-1234.")]
Amount = Annotated[str, Field(description="What to charge, such as 10.00 EUR.")]
Customer = Annotated[str, Field(description="The customer's number, such as u_1234.")]
Subject = Annotated[str, Field(description="What the e-mail is about.")]

Words = Annotated[str, Field(description="Words to search for in orders.")]
placed = [
    {"order": "#4421", "user_id": "u_3306", "item": "Desk lamp", "status": "shipped"},
    {"order": "#4398", "user_id": "u_7710", "item": "Travel kettle", "status": "processing"},
    {"order": "#4377", "user_id": "u_5142", "item": "Wool blanket", "status": "delivered"},
]
"""What a search for "my order" finds."""
orders = {"ORD-5521": {"item": "Widget Pro", "status": "delivered", "cancellable": False}}
cancelled: list[str] = []
"""What the tool that cancels was run for."""
charged: list[str] = []
emailed: list[str] = []
"""Payments taken and e-mails sent by the billing desk."""


def order_desk() -> Agent[None, str]:
    return _order_desk(checks_eligibility=False)


def order_desk_fixed() -> Agent[None, str]:
    return _order_desk(checks_eligibility=True)


def order_desk_repaired() -> Agent[None, str]:
    return _order_desk(checks_eligibility=False, checks_inside=True)


def _order_desk(*, checks_eligibility: bool, checks_inside: bool = False) -> Agent[None, str]:
    agent = Agent(
        MODEL,
        name="order_desk",
        instructions="You help customers with order management.",
        model_settings=ModelSettings(temperature=0.7, top_p=1.0, seed=20171),
        defer_model_check=True,
    )

    @agent.tool_plain(metadata={"replay": "read"}, description="Look up an order by its number.")
    def lookup_order(order_id: OrderId) -> str:
        order = orders[order_id]
        can_be = "cancellable" if order["cancellable"] else "non-cancellable"
        return f"Order {order_id}: {order['item']}, status: {order['status']}, {can_be}"

    @agent.tool_plain(description="Cancel an order.", args_validator=_eligible if checks_eligibility else None)
    def cancel_order(order_id: OrderId, reason: Reason) -> str:
        if checks_inside and not orders[order_id]["cancellable"]:
            return f"Order {order_id} is not eligible for cancellation (status: {orders[order_id]['status']})."
        cancelled.append(order_id)
        orders[order_id].update(status="cancelled", cancellable=False)
        return f"Order {order_id} cancelled. Reason: {reason}"

    return agent


def _eligible(ctx: RunContext[Any], order_id: str, reason: str) -> None:
    """The repair. It runs before the tool does, in a replay as well."""
    order = orders[order_id]
    if not order["cancellable"]:
        raise ModelRetry(f"Order {order_id} is not eligible for cancellation (status: {order['status']}).")


def v2_with_empty_check() -> Agent[None, str]:
    agent = Agent(
        MODEL,
        name="docs-assistant",
        instructions="You answer questions about our policies. Search the docs with search_docs before you answer.",
        model_settings=ModelSettings(temperature=0.0, seed=42),
        capabilities=[SaysWhenNothingIsFound()],
        defer_model_check=True,
    )

    @agent.tool_plain(metadata={"replay": "read"}, description="Search the documentation.")
    def search_docs(query: Query) -> dict[str, Any]:
        return {"docs": [], "count": 0}

    return agent


class SaysWhenNothingIsFound(AbstractCapability[Any]):
    """The repair: after an empty search the model is not asked again."""

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> ModelResponse:
        found = _newest_search(request_context.messages)
        if found is not None and not found.get("docs"):
            words = "I don't have any documents about refund policy. Please check with support."
            return ModelResponse(parts=[TextPart(words)])
        answer: ModelResponse = await handler(request_context)
        return answer


def _newest_search(messages: list[ModelMessage]) -> dict[str, Any] | None:
    newest = messages[-1]
    part = newest.parts[-1] if isinstance(newest, ModelRequest) and newest.parts else None
    if not isinstance(part, ToolReturnPart) or part.tool_name != "search_docs":
        return None
    content: Any = part.content
    return content if isinstance(content, dict) else None


def order_lookup() -> Agent[None, str]:
    return _order_lookup(owner=None)


def order_lookup_scoped() -> Agent[None, str]:
    return _order_lookup(owner="u_7710")


def _order_lookup(*, owner: str | None) -> Agent[None, str]:
    agent = Agent(
        "anthropic:sonnet-4-2511",
        name="order-lookup",
        instructions="You help customers check the status of their orders. Use lookup_order to find an order and "
        "answer in one sentence.",
        model_settings=ModelSettings(temperature=0.7, top_p=0.95),
        defer_model_check=True,
    )

    @agent.tool_plain(metadata={"replay": "read"}, description="Find orders that match a search text.")
    def lookup_order(query: Words) -> list[dict[str, Any]]:
        """The repair is that the search knows for whom it searches."""
        return [order for order in placed if owner in (None, order["user_id"])]

    return agent


def billing_desk() -> Agent[None, str]:
    agent = Agent(
        MODEL,
        name="billing_desk",
        instructions="You help customers pay their invoices.",
        model_settings=ModelSettings(temperature=0.7, top_p=1.0, seed=31071),
        defer_model_check=True,
    )

    @agent.tool_plain(metadata={"replay": "read"}, description="Find what is due on an invoice, and what was paid.")
    def find_payment(invoice_id: InvoiceId) -> dict[str, Any]:
        return {"invoice_id": invoice_id, "due": "148.00 EUR", "payments": list(charged)}

    @agent.tool_plain(description="Charge the customer's card for an invoice.")
    def charge_card(invoice_id: InvoiceId, amount: Amount) -> str:
        """The payment service takes the money each time; its first answer breaks off."""
        charged.append(f"ch_{invoice_id[4:]}_{len(charged) + 1}")
        answer = json.dumps({"charge_id": charged[-1], "amount": amount, "status": "charged"})
        return answer if len(charged) > 1 else answer[: answer.index('",')]

    @agent.tool_plain(description="Send an e-mail to the customer.")
    def send_email(to: Customer, subject: Subject) -> str:
        emailed.append(subject)
        return "sent"

    return agent


AGENTS = (
    order_desk,
    order_desk_fixed,
    order_desk_repaired,
    v2_with_empty_check,
    order_lookup,
    order_lookup_scoped,
    billing_desk,
)


def main() -> None:
    for make in AGENTS:
        sets = [toolset for toolset in make().toolsets if isinstance(toolset, FunctionToolset)]
        tools = {
            name: (tool.metadata or {}).get("replay", "write") for each in sets for name, tool in each.tools.items()
        }
        print(f"{make.__name__}: {', '.join(f'{name} ({kind})' for name, kind in tools.items())}")


if __name__ == "__main__":
    main()
