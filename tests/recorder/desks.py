"""Agents as teams write them, each as a module of its own, with the one line of a tool that a team might change.

Each module has `make`, which gives the agent with its dependencies, and answers by a script when it is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

PYDANTIC_AI = """
from dataclasses import dataclass
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel


def scripted(*answers):
    left = list(answers)
    return FunctionModel(lambda messages, info: left.pop(0), model_name="scripted-1")


def call(name, call_id, **arguments):
    return ModelResponse([ToolCallPart(name, arguments, tool_call_id=call_id)])


def says(text):
    return ModelResponse([TextPart(text)])

"""
OPENAI_AGENTS = """
import json
from dataclasses import dataclass
from agents import Agent, RunContextWrapper, function_tool
from tests.recorder.openai_playing import Scripted, calls, says as message


def call(name, call_id, **arguments):
    return [calls(name, json.dumps(arguments), call_id)]


def says(text):
    return [message(text)]


def scripted(*answers):
    return Scripted(*answers)

"""


@dataclass(frozen=True)
class Desk:
    """One agent. `step` and `path` are where the change of the tool shows when its tools run."""

    source: str
    line: str
    changed: str
    step: int
    path: str
    prompt: str = "Cancel my order ORD-5521, wrong item"


ORDERS = (
    PYDANTIC_AI
    + '''
def make():
    orders = {"ORD-5521": {"item": "2x Widget Pro", "status": "delivered"}}
    agent = Agent(
        scripted(
            call("lookup_order", "call_1", order_id="ORD-5521"),
            call("cancel_order", "call_2", order_id="ORD-5521", reason="wrong item"),
            says("I've cancelled order ORD-5521 for you."),
        ),
        name="orders",
        instructions="You help customers with their orders.",
    )

    @agent.tool
    def lookup_order(ctx: RunContext[dict], order_id: str) -> str:
        """Look up an order."""
        order = ctx.deps[order_id]
        return f"Order {order_id}: {order['item']}, status: {order['status']}"

    @agent.tool
    def cancel_order(ctx: RunContext[dict], order_id: str, reason: str) -> str:
        """Cancel an order."""
        ctx.deps[order_id]["status"] = "cancelled"
        return f"Order {order_id} cancelled. Reason: {reason}"

    return agent, orders
'''
)
CHECKED = (
    '        if ctx.deps[order_id]["status"] == "delivered":\n'
    '            return f"Order {order_id} cannot be cancelled: it is delivered."\n'
    '        ctx.deps[order_id]["status"] = "cancelled"\n'
)

DESKS = {
    "a_dict": Desk(ORDERS, '        ctx.deps[order_id]["status"] = "cancelled"\n', CHECKED, 4, "result"),
    "a_dataclass": Desk(
        PYDANTIC_AI
        + """
@dataclass
class Till:
    paid: float = 0.0


def make():
    agent = Agent(scripted(call("pay", "p1", amount=3), call("pay", "p2", amount=4), says("Paid.")), deps_type=Till)

    @agent.tool
    async def pay(ctx: RunContext[Till], amount: float) -> dict:
        ctx.deps.paid += amount
        return {"paid": ctx.deps.paid, "open": 10 - ctx.deps.paid}

    return agent, Till()
""",
        "ctx.deps.paid += amount",
        "ctx.deps.paid += amount * 2",
        2,
        "result.paid",
    ),
    "a_pydantic_model": Desk(
        PYDANTIC_AI
        + """
class Shelf(BaseModel):
    stock: dict[str, int]


def make():
    agent = Agent(scripted(call("count", "c1", item="pen"), call("take", "t1", item="pen"), says("Taken.")))

    @agent.tool
    def count(ctx: RunContext[Shelf], item: str) -> int:
        return ctx.deps.stock[item]

    @agent.tool
    def take(ctx: RunContext[Shelf], item: str) -> Shelf:
        ctx.deps.stock[item] -= 1
        return ctx.deps

    return agent, Shelf(stock={"pen": 3, "cup": 1})
""",
        "ctx.deps.stock[item] -= 1",
        "ctx.deps.stock[item] -= 2",
        4,
        "result.stock.pen",
    ),
    "a_database": Desk(
        PYDANTIC_AI
        + """
import sqlite3


def make():
    rows = sqlite3.connect(":memory:", check_same_thread=False)
    rows.execute("create table stock (item text, n integer)")
    rows.execute("insert into stock values ('pen', 3), ('cup', 1)")
    agent = Agent(scripted(call("find", "f1", item="cup"), says("One cup.")))

    @agent.tool_plain
    def find(item: str) -> list[int]:
        return [n for (n,) in rows.execute("select n from stock where item = ?", [item])]

    return agent
""",
        "select n from stock where item = ?",
        "select n + 1 from stock where item = ?",
        2,
        "result[0]",
    ),
    "a_refusal": Desk(
        PYDANTIC_AI
        + """
def make():
    agent = Agent(scripted(call("refund", "r1", amount=90), call("refund", "r2", amount=9), says("Refunded.")))

    @agent.tool_plain
    def refund(amount: int) -> str:
        if amount > 50:
            raise ModelRetry("At most 50.")
        return f"{amount} refunded"

    return agent
""",
        "if amount > 50:",
        "if amount > 95:",
        2,
        "result",
    ),
    "a_context_of_the_sdk": Desk(
        OPENAI_AGENTS
        + '''
@function_tool
def lookup_order(ctx: RunContextWrapper[dict], order_id: str) -> str:
    """Look up an order."""
    return f"Order {order_id}: {ctx.context[order_id]}"


@function_tool
def cancel_order(ctx: RunContextWrapper[dict], order_id: str) -> str:
    """Cancel an order."""
    ctx.context[order_id] = "cancelled"
    return f"Order {order_id} is now {ctx.context[order_id]}"


def make():
    model = scripted(
        call("lookup_order", "c1", order_id="ORD-5521"), call("cancel_order", "c2", order_id="ORD-5521"), says("Done.")
    )
    agent = Agent(name="orders", instructions="Be kind.", model=model, tools=[lookup_order, cancel_order])
    return agent, {"ORD-5521": "delivered"}
''',
        '    ctx.context[order_id] = "cancelled"\n',
        "",
        4,
        "result",
    ),
    "a_failing_tool_of_the_sdk": Desk(
        OPENAI_AGENTS
        + '''
@function_tool
def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b


def make():
    model = scripted(call("divide", "d1", a=1, b=0), call("divide", "d2", a=1, b=2), says("0.5"))
    return Agent(name="sums", instructions="Divide.", model=model, tools=[divide])
''',
        "return a / b",
        "return a / (b or 1)",
        2,
        "result",
    ),
    "an_async_tool_of_the_sdk": Desk(
        OPENAI_AGENTS
        + '''
@function_tool
async def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"{city}: 22 degrees, sunny"


def make():
    model = scripted([*call("weather", "w1", city="Paris"), *call("weather", "w2", city="London")], says("Sunny."))
    return Agent(name="weather", instructions="Report the weather.", model=model, tools=[weather])
''',
        "22 degrees, sunny",
        "22 degrees, sunny {len(city)}",
        2,
        "result",
    ),
    "a_handoff_of_the_sdk": Desk(
        OPENAI_AGENTS
        + '''
@function_tool
def refund(order: str, amount: float) -> str:
    """Pay back."""
    return f"{amount} paid back for {order}"


def make():
    billing = Agent(name="Billing", model=scripted(call("refund", "r1", order="A", amount=2.5), says("Paid back.")))
    billing.tools = [refund]
    return Agent(name="Triage", model=scripted(call("transfer_to_billing", "h1")), handoffs=[billing])
''',
        'return f"{amount} paid',
        'return f"{amount:.2f} paid',
        4,
        "result",
    ),
    "a_dataclass_of_the_sdk": Desk(
        OPENAI_AGENTS
        + '''
@dataclass
class Cart:
    items: list


@function_tool
def add(ctx: RunContextWrapper[Cart], item: str) -> str:
    """Put something into the cart."""
    ctx.context.items.append(item)
    return ", ".join(ctx.context.items)


def make():
    model = scripted(call("add", "a1", item="pen"), call("add", "a2", item="cup"), says("Two things."))
    return Agent(name="cart", instructions="Fill the cart.", model=model, tools=[add]), Cart([])
''',
        "ctx.context.items.append(item)",
        "ctx.context.items.insert(0, item)",
        4,
        "result",
    ),
}
