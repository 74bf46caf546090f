"""Real agents with scripted models: every way a run of Pydantic AI can go that a replay must repeat."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, RunContext, ToolOutput, ToolReturn
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied
from pydantic_ai.usage import UsageLimits

from sessions_app.core.run import Run
from tests.agents.recording import record

PNG = BinaryContent(data=bytes.fromhex("89504e470d0a1a0a"), media_type="image/png")


class Refund(BaseModel):
    order_id: str
    amount: float = Field(ge=0)


class Folder(BaseModel):
    name: str
    inside: list[Folder] = []


class CrmDown(Exception):
    pass


def call(name: str, arguments: Any, call_id: str) -> ToolCallPart:
    return ToolCallPart(name, arguments, tool_call_id=call_id)


def says(*parts: Any) -> ModelResponse:
    return ModelResponse(parts=[TextPart(part) if isinstance(part, str) else part for part in parts])


def scripted(*responses: ModelResponse) -> FunctionModel:
    """Answers one after the other; streamed requests get the same."""
    waiting = list(responses)

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return waiting.pop(0)

    async def stream(messages: list[ModelMessage], info: AgentInfo) -> Any:
        for part in waiting.pop(0).parts:
            if isinstance(part, TextPart):
                yield part.content
            elif isinstance(part, ToolCallPart):
                yield {0: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}

    return FunctionModel(answer, stream_function=stream)


def support_agent(*responses: ModelResponse, **arguments: Any) -> Agent[None, Any]:
    agent = Agent(scripted(*responses), instructions="You help customers.", name="agent", **arguments)

    @agent.tool_plain(retries=2)
    def lookup_order(order_id: str) -> dict[str, Any]:
        """Find one order by its id."""
        if not order_id.startswith("ORD-"):
            raise ModelRetry(f"No order {order_id!r}. Ids look like ORD-1234.")
        return {"id": order_id, "status": "shipped", "price": 19.9}

    @agent.tool_plain(retries=3)
    def search(query: str, limit: int = Field(5, le=20)) -> list[str]:
        """Search orders."""
        return [f"{query} {i}" for i in range(limit)]

    @agent.tool_plain
    def crm_note(text: str) -> str:
        """Write a note."""
        raise CrmDown("the CRM is down")

    @agent.tool_plain
    def refund(order_id: str) -> str:
        """Refund."""
        raise ToolFailed("Refunds are closed today.")

    @agent.tool_plain
    def photo(order_id: str) -> ToolReturn:
        """Fetch a photo."""
        return ToolReturn(return_value="attached", content=["The photo:", PNG], metadata={"chunks": [{"id": "c1"}]})

    return agent


def text() -> Run:
    return record(support_agent(says("Hello.")), "Hi")


def one_tool() -> Run:
    return record(support_agent(says(call("lookup_order", '{"order_id": "ORD-1"}', "a")), says("Shipped.")), "Where?")


def parallel_tools() -> Run:
    first = says("Looking.", *(call("lookup_order", {"order_id": f"ORD-{i}"}, f"p{i}") for i in range(3)))
    return record(support_agent(first, says("All shipped.")), "Where are they?")


def model_retry() -> Run:
    bad, good = call("lookup_order", {"order_id": "1"}, "a"), call("lookup_order", {"order_id": "ORD-1"}, "b")
    return record(support_agent(says(bad), says(good), says("Shipped.")), "Where?")


def validation_errors() -> Run:
    return record(
        support_agent(
            says(call("search", '{"query": "x {y}", "limit": 500}', "a")),
            says(call("search", '{"query": "x", "lim', "b")),
            says(call("search", '{"query": "x", "limit": 2}', "c")),
            says("Found."),
        ),
        "Find x",
    )


def unknown_tool() -> Run:
    return record(support_agent(says(call("cancel_all", "{}", "a")), says("I cannot.")), "Cancel everything")


def tool_failed() -> Run:
    return record(support_agent(says(call("refund", {"order_id": "ORD-1"}, "a")), says("Closed today.")), "Refund")


def tool_crash() -> Run:
    return record(support_agent(says(call("crm_note", {"text": "called"}, "a"))), "Write a note")


def thinking() -> Run:
    thought = ThinkingPart("hm", id="rs_1", signature="sig==", provider_name="anthropic")
    return record(support_agent(says(thought, call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Ok.")), "Late?")


def output_tool() -> Run:
    answer = says(call("final_result", {"order_id": "ORD-1", "amount": 5}, "o"))
    return record(support_agent(answer, output_type=Refund), "Refund?")


def output_tool_retry() -> Run:
    bad = says(call("final_result", {"order_id": "ORD-1", "amount": -5}, "o1"))
    good = says(call("final_result", {"order_id": "ORD-1", "amount": 5}, "o2"))
    return record(support_agent(bad, good, output_type=Refund), "Refund?")


def several_output_tools() -> Run:
    types = [ToolOutput(Refund, name="refund_now"), ToolOutput(Folder, name="file_it")]
    return record(support_agent(says(call("file_it", {"name": "inbox"}, "o")), output_type=types), "File it")


def recursive_output() -> Run:
    answer = says(call("final_result", {"name": "a", "inside": [{"name": "b"}]}, "o"))
    return record(support_agent(answer, output_type=Folder), "Make folders")


def tool_beside_output() -> Run:
    both = says(
        call("lookup_order", {"order_id": "ORD-1"}, "a"), call("final_result", {"order_id": "x", "amount": 1}, "o")
    )
    return record(support_agent(both, output_type=Refund), "Refund?")


def tool_beside_output_early() -> Run:
    both = says(
        call("final_result", {"order_id": "x", "amount": 1}, "o"), call("lookup_order", {"order_id": "ORD-1"}, "a")
    )
    return record(support_agent(both, output_type=Refund, end_strategy="early"), "Refund?")


def native_output() -> Run:
    return record(support_agent(says('{"order_id":"x","amount":1}'), output_type=NativeOutput(Refund)), "Refund?")


def native_output_retry() -> Run:
    bad, good = says('{"order_id":"x"}'), says('{"order_id":"x","amount":1}')
    return record(support_agent(bad, good, output_type=NativeOutput(Refund)), "Refund?")


def prompted_output() -> Run:
    return record(support_agent(says('{"order_id":"x","amount":1}'), output_type=PromptedOutput(Refund)), "Refund?")


def output_validator_retry() -> Run:
    agent = support_agent(says("too short"), says("long enough now"))

    @agent.output_validator
    def long_enough(output: str) -> str:
        if len(output) < 10:
            raise ModelRetry("Say more.")
        return output

    return record(agent, "Speak")


def empty_response() -> Run:
    return record(support_agent(says(), says("Here I am.")), "Hello?")


def system_prompts() -> Run:
    return record(support_agent(says("Hi."), system_prompt=("Be kind.", "Be short.")), "Hello")


def dynamic_instructions() -> Run:
    agent = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Ok."))
    seen: list[int] = []

    @agent.instructions
    def count(ctx: RunContext[None]) -> str:
        seen.append(1)
        return f"Request {len(seen)}."

    return record(agent, "Where?")


def multimodal_prompt() -> Run:
    prompt = ["What is this?", PNG, ImageUrl(url="https://example.org/a.png")]
    return record(support_agent(says("A box.")), prompt)


def multimodal_tool_results() -> Run:
    both = says(call("photo", {"order_id": "ORD-1"}, "a"), call("photo", {"order_id": "ORD-2"}, "b"))
    return record(support_agent(both, says("Crushed.")), "Show me")


def file_in_response() -> Run:
    return record(support_agent(says("Here.", FilePart(content=PNG))), "Draw")


def built_in_tool_parts() -> Run:
    used = NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="w", provider_name="openai")
    found = NativeToolReturnPart("web_search", {"hits": 1}, tool_call_id="w", provider_name="openai")
    return record(support_agent(says(used, found, "One hit.")), "Search")


def multi_turn_with_repeated_ids() -> Run:
    first = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "same")), says("Shipped."))
    history = asyncio.run(first.run("Where is 1?")).all_messages()
    second = support_agent(says(call("lookup_order", {"order_id": "ORD-2"}, "same")), says("Shipped too."))
    return record(second, "And 2?", message_history=history)


def repeated_ids_in_one_run() -> Run:
    again = [says(call("lookup_order", {"order_id": f"ORD-{i}"}, "same")) for i in (1, 2)]
    return record(support_agent(*again, says("Both shipped.")), "Where?")


def tools_that_appear() -> Run:
    agent = support_agent(
        says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says(call("late", {}, "b")), says("Done.")
    )

    async def only_later(ctx: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
        return tool if ctx.run_step > 1 else None

    @agent.tool_plain(prepare=only_later)
    def late() -> str:
        """Comes later."""
        return "late"

    return record(agent, "Go")


def rewritten_history() -> Run:
    def keep_last_two(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[-2:] if len(messages) > 3 else messages

    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(3)]
    return record(support_agent(*looks, says("Done."), capabilities=[ProcessHistory(keep_last_two)]), "Search thrice")


def model_error() -> Run:
    def fails(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise TimeoutError("The provider did not answer.")

    agent = Agent(FunctionModel(fails), instructions="x")
    return record(agent, "Hi")


def approval_first() -> Run:
    return record(_approving(), "Refund both", output_type=[str, DeferredToolRequests])


def approval_second() -> Run:
    history = asyncio.run(_approving().run("Refund both", output_type=[str, DeferredToolRequests])).all_messages()
    results = DeferredToolResults(approvals={"r1": True, "r2": ToolDenied("No.")})
    agent = _approving(says("One refunded."))
    return record(
        agent, None, message_history=history, deferred_tool_results=results, output_type=[str, DeferredToolRequests]
    )


def _approving(*then: ModelResponse) -> Agent[None, Any]:
    first = says(call("pay_back", {"order_id": "ORD-1"}, "r1"), call("pay_back", {"order_id": "ORD-2"}, "r2"))
    agent = Agent(scripted(*(then or (first,))), instructions="You refund.")

    @agent.tool_plain(requires_approval=True)
    def pay_back(order_id: str) -> str:
        """Pay back."""
        return f"paid back {order_id}"

    return agent


def streamed() -> Run:
    answers = says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Shipped.")
    return record(support_agent(*answers), "Where?", stream=True)


def streamed_text_beside_a_call() -> Run:
    """With `run_stream` the first text ends the run, and the call beside it is still made."""
    return record(
        support_agent(says("Looking.", call("lookup_order", {"order_id": "ORD-1"}, "a"))), "Where?", stream=True
    )


def sixty_requests() -> Run:
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(60)]
    return record(support_agent(*looks, says("Done.")), "Search", usage_limits=UsageLimits(request_limit=None))


@dataclass(frozen=True)
class Scenario:
    make: Callable[[], Run]

    def __str__(self) -> str:
        return self.make.__name__


SCENARIOS = [
    Scenario(make)
    for make in (
        text, one_tool, parallel_tools, model_retry, validation_errors, unknown_tool, tool_failed, tool_crash,
        thinking, output_tool, output_tool_retry, several_output_tools, recursive_output, tool_beside_output,
        tool_beside_output_early, native_output, native_output_retry, prompted_output, output_validator_retry,
        empty_response, system_prompts, dynamic_instructions, multimodal_prompt, multimodal_tool_results,
        file_in_response, built_in_tool_parts, multi_turn_with_repeated_ids, repeated_ids_in_one_run,
        tools_that_appear, rewritten_history, model_error, approval_first, approval_second, sixty_requests,
        streamed, streamed_text_beside_a_call,
    )
]  # fmt: skip
