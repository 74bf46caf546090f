"""Agents of LangChain and LangGraph, as people write them, over a provider on this machine."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

INSTRUCTIONS = "You help with orders."


@tool
def find_order(order_id: str) -> str:
    """Find an order."""
    return f"{order_id} was delivered."


@tool
def find_customer(name: str) -> dict[str, Any]:
    """Find a customer."""
    return {"name": name, "orders": ["ORD-1", "ORD-2"]}


@tool
def out_of_order(order_id: str) -> str:
    """Find an order in a broken store."""
    raise ConnectionError(f"no store for {order_id}")


@tool
def to_shop(runtime: ToolRuntime) -> Any:
    """Hand over to the shop."""
    told = ToolMessage("Transferred.", tool_call_id=runtime.tool_call_id)
    messages = [runtime.state["messages"][-1], told]
    return Command(goto="shop", graph=Command.PARENT, update={"messages": messages})


def model_at(url: str, **settings: Any) -> ChatOpenAI:
    return ChatOpenAI(model="gpt-4o", base_url=url, api_key="sk-none", max_retries=0, **{"temperature": 0, **settings})


def shop(url: str, tools: tuple[BaseTool, ...] = (find_order, find_customer), **settings: Any) -> Any:
    """LangChain's agent, which is a graph."""
    return create_agent(model_at(url), list(tools), system_prompt=INSTRUCTIONS, name="shop", **settings)


def own_graph(url: str, tools: tuple[BaseTool, ...] = (find_order, find_customer), **settings: Any) -> Any:
    """The same loop as nodes and edges of one's own."""
    model = model_at(url, **settings).bind_tools(tools)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([SystemMessage(INSTRUCTIONS), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode(list(tools), handle_tool_errors=True))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition)
    graph.add_edge("tools", "ask")
    return graph.compile()


def asked(question: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(question)]}


def said(result: Any) -> str:
    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    return str(last.content)
