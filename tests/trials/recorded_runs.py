"""Runs of real agents to make mutants of: both frameworks, every way to start a run, and files of the other formats."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agents import Agent as OpenAIAgent
from agents import ModelSettings, Runner, function_tool, handoff
from openai.types.responses import ResponseReasoningItem
from pydantic import BaseModel
from pydantic_ai import Agent, TextOutput, ToolOutput, ToolReturn
from pydantic_ai.messages import BinaryContent
from pydantic_ai.usage import UsageLimits

from replay_recorder import recorded_tool, snapshot
from tests.recorder import openai_playing as openai
from tests.recorder import playing, scenarios
from tests.recorder.scenarios import Play, Refund, Scenario, Scripted, call, says, support_agent

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *sorted((ROOT / "tests" / "records").glob("*.json")),
    *(path for path in sorted((ROOT / "sessions_app" / "examples").glob("*.json")) if path.stem != "manifest"),
]
LONG = {"sixty_requests"}


@dataclass(frozen=True)
class RecordedRun:
    """A recording as it would be sent."""

    name: str
    content: bytes

    @property
    def record(self) -> Any:
        return json.loads(self.content)

    @cached_property
    def is_native(self) -> bool:
        record = self.record
        return isinstance(record, dict) and record.get("format") == "agent-replay.run"


# --- Pydantic AI, beyond the scenarios of the recorder's tests -----------------------------------


def _stock_agent(*script: Any, **arguments: Any) -> Agent[None, Any]:
    """Its tool answers with every kind of number, other letters, and values inside of values."""
    agent = Agent(Scripted(*script), instructions="You keep the stock.", name="stock", **arguments)

    @agent.tool_plain
    def stock(item: str, depth: int = 1) -> dict[str, Any]:
        """Count one item."""
        return {
            "item": item,
            "count": 1,
            "weight": 1.0,
            "price": 19.9,
            "serial": 2**70,
            "is_sold": True,
            "zero": 0,
            "note": None,
            "name": "Müller’s 箱 🎁",
            "places": [{"aisle": 3, "shelves": [1, 2, 1.0]}, {"aisle": 4, "shelves": []}],
        }

    @agent.tool_plain
    def ticket() -> int:
        """Draw the next number."""
        drawn.append(1)
        return len(drawn)

    drawn: list[int] = []
    return agent


def numbers_and_nesting() -> Play:
    asked = says(call("stock", {"item": "chest", "depth": 1}, "s1"), call("stock", '{"item": "箱", "depth": 2}', "s2"))
    return Play(_stock_agent(asked, says("One chest.")), "Wie viele Kisten für Müller?")


def lists_in_arguments() -> Play:
    agent = _stock_agent(
        says(call("pack", {"items": ["箱", "Kiste"], "counts": [1, 2], "for_whom": "Müller"}, "p")), says("Gepackt.")
    )

    @agent.tool_plain
    def pack(items: list[str], counts: list[int], for_whom: str) -> list[Any]:
        """Pack them."""
        return [items, counts, for_whom]

    return Play(agent, "Pack them")


def equal_sibling_calls() -> Play:
    asked = says(call("ticket", {}, "t1"), call("ticket", {}, "t2"), call("ticket", {}, "t3"))
    return Play(_stock_agent(asked, says("1, 2 and 3.")), "Three tickets")


def equal_calls_after_each_other() -> Play:
    asked = [says(call("ticket", {}, f"t{i}")) for i in range(3)]
    return Play(_stock_agent(*asked, says("1, 2 and 3.")), "Three tickets, please")


def _text_then_output(strategy: str) -> Play:
    both = says(
        "Looking.",
        call("lookup_order", {"order_id": "ORD-1"}, "a"),
        call("final_result", {"order_id": "x", "amount": 1}, "o"),
        call("search", {"query": "q", "limit": 1}, "b"),
    )
    return Play(support_agent(both, output_type=Refund, end_strategy=strategy), "Refund?")


def beside_output_early() -> Play:
    return _text_then_output("early")


def beside_output_graceful() -> Play:
    return _text_then_output("graceful")


def beside_output_exhaustive() -> Play:
    return _text_then_output("exhaustive")


def text_before_a_call_exhaustive() -> Play:
    both = says("Looking.", call("lookup_order", {"order_id": "ORD-1"}, "a"), call("search", {"query": "q"}, "b"))
    return Play(support_agent(both, says("Shipped."), end_strategy="exhaustive"), "Where?")


def text_before_a_call_early() -> Play:
    both = says("Looking.", call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(both, says("Shipped."), end_strategy="early"), "Where?")


def calls_and_then_text() -> Play:
    """Which every way to start a run ends alike."""
    looks = [says(call("search", {"query": f"q{i}", "limit": i}, f"s{i}")) for i in range(1, 4)]
    return Play(support_agent(*looks, says("Found ", "all three.")), "Search thrice")


def sub_agent() -> Play:
    agent = support_agent(says(call("ask_expert", {"question": "Late?"}, "e")), says("Not late."), name="outer")

    @agent.tool_plain
    async def ask_expert(question: str) -> str:
        """Ask the expert."""
        expert = support_agent(says(call("lookup_order", {"order_id": "ORD-7"}, "x")), says("On time."), name="expert")
        return str((await expert.run(question)).output)

    return Play(agent, "Is it late?")


@recorded_tool(kind="read")
def weigh(item: str) -> dict[str, int]:
    return {"grams": len(item)}


def tool_in_a_tool() -> Play:
    agent = support_agent(says(call("postage", {"item": "lamp"}, "p")), says("Cheap."))

    @agent.tool_plain
    def postage(item: str) -> int:
        """What it costs to send it."""
        return weigh(item)["grams"] * 2

    return Play(agent, "How much is it?")


def text_output_function() -> Play:
    def shout(text: str) -> str:
        return text.upper()

    return Play(support_agent(says("quietly"), output_type=TextOutput(shout)), "Shout")


def output_union() -> Play:
    asked = says(call("lookup_order", {"order_id": "ORD-1"}, "a"))
    answer = says(call("refund_it", {"order_id": "ORD-1", "amount": 2.5}, "o"))
    kinds: Any = [str, ToolOutput(Refund, name="refund_it")]
    return Play(support_agent(asked, answer, output_type=kinds), "Refund or say")


def files_and_metadata() -> Play:
    agent = support_agent(says(call("scan", {"page": 1}, "p1"), call("scan", {"page": 2}, "p2")), says("Two pages."))

    @agent.tool_plain
    def scan(page: int) -> ToolReturn:
        """Scan a page."""
        picture = BinaryContent(data=bytes([137, page]), media_type="image/png")
        return ToolReturn(
            return_value={"page": page, "ok": True}, content=[f"Page {page}:", picture], metadata={"dpi": 300}
        )

    return Play(agent, ["Scan ", BinaryContent(data=b"abc", media_type="application/pdf")])


def snapshots_of_state() -> Play:
    agent = support_agent(
        says(call("remember", {"what": "ORD-1"}, "m1")), says(call("remember", {"what": "2"}, "m2")), says("Ok.")
    )
    memory: list[str] = []

    @agent.tool_plain
    def remember(what: str) -> str:
        """Keep it in mind."""
        memory.append(what)
        snapshot("remembered", memory=memory, context={"n": len(memory)})
        return f"{len(memory)} things"

    return Play(agent, "Remember")


def settings_of_the_model() -> Play:
    agent = support_agent(
        says(call("search", {"query": "a", "limit": 1}, "s")),
        says("One."),
        model_settings={"temperature": 0.5, "seed": 7},
    )
    return Play(agent, "Search", model_settings={"top_p": 1.0})


def limit_of_two_requests() -> Play:
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(4)]
    return Play(support_agent(*looks), "Search", usage_limits=UsageLimits(request_limit=2))


def failure_after_a_call() -> Play:
    return Play(
        support_agent(says(call("search", {"query": "a", "limit": 1}, "s")), ConnectionError("reset by peer")), "Search"
    )


MORE: list[Callable[[], Play]] = [
    numbers_and_nesting,
    lists_in_arguments,
    equal_sibling_calls,
    equal_calls_after_each_other,
    beside_output_early,
    beside_output_graceful,
    beside_output_exhaustive,
    text_before_a_call_exhaustive,
    text_before_a_call_early,
    calls_and_then_text,
    sub_agent,
    tool_in_a_tool,
    text_output_function,
    output_union,
    files_and_metadata,
    snapshots_of_state,
    settings_of_the_model,
    limit_of_two_requests,
    failure_after_a_call,
]


# --- OpenAI Agents SDK ---------------------------------------------------------------------------


class Order(BaseModel):
    order: str
    amount: float = 0


@function_tool
async def stock(item: str) -> dict[str, Any]:
    """Count one item."""
    return {"item": item, "count": 1, "weight": 1.0, "places": [1, 2], "name": "Müller 箱"}


@function_tool
async def ticket() -> str:
    """Draw the next number."""
    return "7"


@function_tool
async def broken(order: str) -> str:
    """Look where it is broken."""
    raise ValueError(f"no {order}")


@function_tool(failure_error_function=None)
async def crashing(order: str) -> str:
    """Crash."""
    raise ValueError(f"no {order}")


@function_tool(needs_approval=True)
async def cancel_order(order: str) -> str:
    """Cancel one order."""
    return f"{order} is cancelled"


def _calls(name: str, arguments: Any, call_id: str) -> Any:
    return openai.calls(name, json.dumps(arguments), call_id)


def _reasoning() -> Any:
    summary = [{"type": "summary_text", "text": "Look it up."}]
    return ResponseReasoningItem.model_validate(
        {"id": "rs_1", "type": "reasoning", "summary": summary, "encrypted_content": "c2lnbmVk"}
    )


def _billing(*script: Any) -> OpenAIAgent[Any]:
    return openai.agent(*(script or ([openai.says("Paid.")],)), name="Billing", instructions="You bill.")


def _openai_agents() -> dict[str, Callable[[], OpenAIAgent[Any]]]:
    look = _calls("lookup", {"order": "A"}, "c1")
    tools = [openai.lookup, stock, ticket, broken, crashing]
    done = [openai.says("Done.")]

    def made(*script: Any, **facts: Any) -> Callable[[], OpenAIAgent[Any]]:
        return lambda: openai.agent(*script, **{"tools": tools, **facts})

    refund = [openai.says('{"order": "A", "amount": 2}')]
    return {
        "text": made([openai.says("In Lisbon.")]),
        "one_tool": made([look], done),
        "parallel_tools": made([look, _calls("stock", {"item": "Müller"}, "c2"), _calls("ticket", {}, "c3")], done),
        "equal_sibling_calls": made([_calls("ticket", {}, "t1"), _calls("ticket", {}, "t2")], done),
        "calls_after_each_other": made(
            [look], [_calls("lookup", {"order": "B"}, "c2")], [_calls("ticket", {}, "c3")], done
        ),
        "failed_tool": made([_calls("broken", {"order": "A"}, "c1")], done),
        "bad_arguments": made([openai.calls("broken", '{"order": 7', "c1")], done),
        "crashed_tool": made([_calls("crashing", {"order": "A"}, "c1")]),
        "structured_output": made([look], refund, output_type=Order),
        "unpacked_output": made([openai.says('{"response": ["a", "b"]}')], output_type=list[str]),
        "stop_on_first_tool": made([look], tool_use_behavior="stop_on_first_tool"),
        "reasoning": made([_reasoning(), look], done),
        "settings": made([look], done, model_settings=ModelSettings(temperature=0.5, extra_args={"seed": 3})),
        "model_error": made([look], RuntimeError("503")),
        "handoff": lambda: openai.agent(
            [look], [_calls("transfer_to_billing", {}, "h1")], tools=tools, handoffs=[handoff(_billing())]
        ),
        "agent_as_tool": lambda: openai.agent(
            [_calls("ask", {"input": "Paid?"}, "c1")], done, tools=[_billing().as_tool("ask", "Ask.")]
        ),
        "text_beside_a_call": made([openai.says("Looking."), look], done),
    }


async def _too_many_turns() -> None:
    looks = [[_calls("lookup", {"order": str(i)}, f"c{i}")] for i in range(4)]
    await openai.run(openai.agent(*looks, tools=[openai.lookup]), max_turns=2)


async def _second_turn() -> None:
    input: list[Any] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "Where is A?"},
    ]
    asking = openai.agent([_calls("lookup", {"order": "A"}, "c1")], [openai.says("Shipped.")], tools=[openai.lookup])
    await openai.run(asking, input)


async def _decided(is_approved: bool) -> None:
    cancelling = openai.agent(
        [_calls("cancel_order", {"order": "A"}, "c1"), _calls("lookup", {"order": "A"}, "c2")],
        [openai.says("Done.")],
        tools=[cancel_order, openai.lookup],
    )
    state = (await Runner.run(cancelling, "Cancel it")).to_state()
    for item in state.get_interruptions():
        state.approve(item) if is_approved else state.reject(item)
    await Runner.run(cancelling, state)


OPENAI_PLAYS: dict[str, openai.Play] = {
    "too_many_turns": _too_many_turns,
    "second_turn": _second_turn,
    "approved": lambda: _decided(True),
    "denied": lambda: _decided(False),
}


# --- what short scripts save ---------------------------------------------------------------------

SAVED = [
    scenarios.one_tool,
    scenarios.parallel_tools,
    scenarios.thinking,
    numbers_and_nesting,
    lists_in_arguments,
    equal_sibling_calls,
    equal_calls_after_each_other,
    calls_and_then_text,
    scenarios.model_retry,
    scenarios.tool_failed,
]


def session_files() -> Iterator[RecordedRun]:
    """As a script around an agent writes them down: part by part, with a list of the calls beside them."""
    for make in [*SAVED, scenarios.output_tool]:
        play = make()
        result = asyncio.run(play.agent.run(play.prompt))
        messages, calls = _saved_messages(result.all_messages())
        saved = {
            "session_id": make.__name__,
            "timestamp": "2026-02-17T14:23:01Z",
            "user_input": play.prompt,
            "final_output": result.output,
            "model": "openai:gpt-4o",
            "instructions": "You help customers with their orders.",
            "messages": messages,
            "tool_calls": calls,
            "duration_ms": 2341.5,
        }
        content = json.dumps(saved, ensure_ascii=False, default=lambda output: output.model_dump())
        yield RecordedRun(f"session-file/{make.__name__}", content.encode())


def _saved_messages(messages: list[Any]) -> tuple[list[Any], list[Any]]:
    saved: list[Any] = []
    for message in messages:
        parts = [
            {
                "kind": part.part_kind,
                **{
                    key: getattr(part, key)
                    for key in ("content", "tool_name", "args", "tool_call_id")
                    if hasattr(part, key) and part.part_kind != "thinking"
                },
            }
            for part in message.parts
        ]
        saved.append({"type": type(message).__name__, "parts": parts})
    calls = [
        {"tool": part["tool_name"], "args": part["args"]}
        for message in saved
        for part in message["parts"]
        if part["kind"] == "tool-call"
    ]
    return saved, calls


def message_dumps() -> Iterator[RecordedRun]:
    """What `all_messages_json()` gives."""
    for make in [*SAVED, scenarios.multi_turn_with_repeated_ids, scenarios.validation_errors]:
        play = make()
        result = asyncio.run(play.agent.run(play.prompt, **play.arguments))
        yield RecordedRun(f"messages/{make.__name__}", result.all_messages_json())


def item_files() -> Iterator[RecordedRun]:
    """The items that a run of the OpenAI Agents SDK leaves."""
    for name in ("text", "one_tool", "parallel_tools", "equal_sibling_calls", "calls_after_each_other", "failed_tool"):
        result = asyncio.run(Runner.run(_openai_agents()[name](), "Where is it?"))
        items = [
            {
                "type": type(item).__name__,
                "raw": item.raw_item
                if isinstance(item.raw_item, dict)
                else item.raw_item.model_dump(exclude_unset=True, mode="json"),
            }
            for item in result.new_items
        ]
        saved = {
            "run_id": f"items-{name}",
            "input": "Where is it?",
            "final_output": result.final_output,
            "items": items,
        }
        yield RecordedRun(f"items/{name}", json.dumps(saved, ensure_ascii=False).encode())


# --- all of them ---------------------------------------------------------------------------------


def pydantic_ai_runs(ways: tuple[str, ...] = tuple(playing.WAYS)) -> Iterator[RecordedRun]:
    known = [Scenario(make) for make in MORE] + scenarios.SCENARIOS + [Scenario(scenarios.results_of_bytes)]
    for scenario in known:
        for way in ways[:1] if str(scenario) in LONG else ways:
            for number, record in enumerate(playing.recorded(scenario.make(), way)):
                yield RecordedRun(f"pydantic-ai/{scenario}-{way}{f'-{number}' if number else ''}", record)


def openai_agents_runs() -> Iterator[RecordedRun]:
    for name in _openai_agents():
        for way, start in openai.WAYS.items():

            async def play(name: str = name, start: Any = start) -> None:
                await start(_openai_agents()[name]())

            yield from _openai_records(f"{name}-{way}", play)
    for name, whole in OPENAI_PLAYS.items():
        yield from _openai_records(name, whole)


def _openai_records(name: str, play: openai.Play) -> Iterator[RecordedRun]:
    for number, record in enumerate(openai.recorded(play)):
        yield RecordedRun(f"openai-agents/{name}{f'-{number}' if number else ''}", openai.bytes_of(record))


def files() -> Iterator[RecordedRun]:
    for path in FILES:
        yield RecordedRun(f"file/{path.stem}", path.read_bytes())


def all_runs(ways: tuple[str, ...] = tuple(playing.WAYS)) -> list[RecordedRun]:
    """`ways` to start a run of Pydantic AI."""
    return [*pydantic_ai_runs(ways), *openai_agents_runs(), *session_files(), *message_dumps(), *item_files(), *files()]
