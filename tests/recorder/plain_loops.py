"""Agents without a framework, as people write them: a client of a provider, a table of functions, a loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import httpx
import openai

from replay_recorder import record, recorded_tool

ORDERS = {"ORD-5521": {"item": "2x Widget Pro", "status": "delivered"}}
TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "find_order",
            "description": "What became of an order.",
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
        },
    }
]


as_told = json.dumps


def find_order(order_id: str) -> dict[str, str]:
    if order_id not in ORDERS:
        raise KeyError(order_id)
    return ORDERS[order_id]


recorded_lookup = recorded_tool(kind="read", name="find_order")(find_order)


def _begun(question: str) -> list[Any]:
    return [{"role": "system", "content": "You help with orders."}, {"role": "user", "content": question}]


def _answer_of(tool: Callable[..., Any], call: Any) -> dict[str, Any]:
    try:
        given = as_told(tool(**json.loads(call["function"]["arguments"])))
    except KeyError as error:
        given = f"no order {error}"
    return {"role": "tool", "tool_call_id": call["id"], "content": given}


def chat(url: str, tool: Callable[..., Any] = find_order) -> Callable[[str], str]:
    """OpenAI's chat completions, one answer at a time."""
    client = openai.OpenAI(base_url=url, api_key="sk-none", max_retries=2)

    @record
    def support(question: str) -> str:
        messages = _begun(question)
        while True:
            answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS, temperature=0)
            said = answer.choices[0].message
            if not said.tool_calls:
                return said.content or ""
            messages.append(said.model_dump(exclude_none=True))
            messages += [_answer_of(tool, call.model_dump()) for call in said.tool_calls]

    return support


def prepared_chat(
    url: str, tool: Callable[..., Any], *, before: Callable[[], Any] = str, after: Callable[[str], Any] = str
) -> Callable[[str], str]:
    """The same with code of its own around it: `before` makes the system prompt, `after` gets the answer."""
    client = openai.OpenAI(base_url=url, api_key="sk-none", max_retries=0)

    @record
    def support(question: str) -> str:
        messages: list[Any] = [
            {"role": "system", "content": f"Help {before()}."},
            {"role": "user", "content": question},
        ]
        while True:
            answer = client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
            said = answer.choices[0].message
            if not said.tool_calls:
                after(said.content or "")
                return said.content or ""
            messages.append(said.model_dump(exclude_none=True))
            messages += [_answer_of(tool, call.model_dump()) for call in said.tool_calls]

    return support


def async_chat(url: str, tool: Callable[..., Any] = find_order) -> Callable[[str], str]:
    return lambda question: asyncio.run(awaited_chat(url, tool)(question))


def awaited_chat(url: str, tool: Callable[..., Any] = find_order) -> Callable[[str], Coroutine[Any, Any, str]]:
    """The same without blocking."""

    @record
    async def support(question: str) -> str:
        async with openai.AsyncOpenAI(base_url=url, api_key="sk-none") as client:
            messages = _begun(question)
            while True:
                answer = await client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS)
                said = answer.choices[0].message
                if not said.tool_calls:
                    return said.content or ""
                messages.append(said.model_dump(exclude_none=True))
                messages += [_answer_of(tool, call.model_dump()) for call in said.tool_calls]

    return support


def streamed_chat(url: str, tool: Callable[..., Any] = find_order) -> Callable[[str], str]:
    """The same in pieces."""
    client = openai.OpenAI(base_url=url, api_key="sk-none")

    @record
    def support(question: str) -> str:
        messages = _begun(question)
        while True:
            words, asked = "", dict[int, dict[str, Any]]()
            for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, tools=TOOLS, stream=True):
                delta = chunk.choices[0].delta
                words += delta.content or ""
                for piece in delta.tool_calls or []:
                    call = asked.setdefault(piece.index, {"id": piece.id, "type": "function", "function": {}})
                    function = call["function"]
                    function["name"] = function.get("name") or (piece.function and piece.function.name)
                    arguments = (piece.function and piece.function.arguments) or ""
                    function["arguments"] = function.get("arguments", "") + arguments
            if not asked:
                return words
            messages.append({"role": "assistant", "content": words or None, "tool_calls": list(asked.values())})
            messages += [_answer_of(tool, call) for call in asked.values()]

    return support


def responses(url: str, tool: Callable[..., Any] = find_order) -> Callable[[str], str]:
    """OpenAI's responses."""
    client = openai.OpenAI(base_url=url, api_key="sk-none")
    tools: list[Any] = [{"type": "function", **TOOLS[0]["function"], "strict": None}]

    @record
    def support(question: str) -> str:
        items: list[Any] = [{"role": "user", "content": question}]
        while True:
            answer = client.responses.create(model="gpt-4o", instructions="You help.", input=items, tools=tools)
            asked = [item for item in answer.output if item.type == "function_call"]
            if not asked:
                return answer.output_text
            items += [item.model_dump(exclude_none=True) for item in answer.output]
            for call in asked:
                given = json.dumps(tool(**json.loads(call.arguments)))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": given})

    return support


def anthropic_messages(url: str, tool: Callable[..., Any] = find_order, *, is_streamed: bool = False) -> Any:
    """Anthropic's messages, by any client: here the HTTP itself."""

    @record
    def support(question: str) -> str:
        messages: list[Any] = [{"role": "user", "content": question}]
        definition = {**TOOLS[0]["function"], "input_schema": TOOLS[0]["function"]["parameters"]}
        definition.pop("parameters")
        while True:
            body = {"model": "claude-opus-4", "max_tokens": 900, "system": "You help.", "messages": messages}
            sent = {**body, "tools": [definition], **({"stream": True} if is_streamed else {})}
            answer = httpx.post(f"{url}/messages", json=sent, headers={"x-api-key": "sk-none"})
            content = _streamed_content(answer.text) if is_streamed else answer.json()["content"]
            asked = [block for block in content if block["type"] == "tool_use"]
            if not asked:
                return "".join(block["text"] for block in content)
            messages.append({"role": "assistant", "content": content})
            given = [
                {"type": "tool_result", "tool_use_id": each["id"], "content": json.dumps(tool(**each["input"]))}
                for each in asked
            ]
            messages.append({"role": "user", "content": given})

    return support


def _streamed_content(body: str) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for line in body.splitlines():
        event = json.loads(line[5:]) if line.startswith("data:") else {}
        if event.get("type") == "content_block_start":
            blocks.append(dict(event["content_block"]))
        if event.get("type") == "content_block_delta" and "text" in event["delta"]:
            blocks[-1]["text"] += event["delta"]["text"]
        if event.get("type") == "content_block_delta" and "partial_json" in event["delta"]:
            blocks[-1]["json"] = blocks[-1].get("json", "") + event["delta"]["partial_json"]
    for block in blocks:
        if "json" in block:
            block["input"] = json.loads(block.pop("json"))
    return blocks
