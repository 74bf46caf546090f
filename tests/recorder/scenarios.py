"""Real agents with scripted models: every way a run of Pydantic AI can go that a replay must repeat.

Nothing here knows the server, so that it runs beside any version of the library.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelRetry, NativeOutput, PromptedOutput, RunContext, ToolOutput, ToolReturn
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.exceptions import CallDeferred, ToolFailed
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
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied
from pydantic_ai.usage import RequestUsage, UsageLimits

PNG = BinaryContent(data=bytes.fromhex("89504e470d0a1a0a"), media_type="image/png")


class Play:
    """An agent, and how to run it."""

    def __init__(self, agent: Agent[Any, Any], prompt: Any, **arguments: Any) -> None:
        self.agent = agent
        self.prompt = prompt
        self.arguments = arguments


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


class Scripted(Model[Any]):
    """Answers one after the other, streamed or not. An exception in the script is raised."""

    def __init__(self, *script: ModelResponse | Exception) -> None:
        super().__init__()
        self._script = list(script)

    @property
    def model_name(self) -> str:
        return "scripted-1"

    @property
    def system(self) -> str:
        return "scripted"

    @property
    def base_url(self) -> str | None:
        return None

    async def request(self, messages: list[ModelMessage], model_settings: Any, parameters: Any) -> ModelResponse:
        return self._next()

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[CompletedStreamedResponse]:
        parameters = model_request_parameters.with_default_output_mode("tool")
        yield CompletedStreamedResponse(self._next(), model_request_parameters=parameters, replay_events=True)

    def _next(self) -> ModelResponse:
        answer = self._script.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def support_agent(*responses: ModelResponse | Exception, name: str = "agent", **arguments: Any) -> Agent[None, Any]:
    agent = Agent(Scripted(*responses), instructions="You help customers.", name=name, **arguments)

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


def text() -> Play:
    return Play(support_agent(says("Hello.")), "Hi")


def one_tool() -> Play:
    return Play(support_agent(says(call("lookup_order", '{"order_id": "ORD-1"}', "a")), says("Shipped.")), "Where?")


def parallel_tools() -> Play:
    first = says("Looking.", *(call("lookup_order", {"order_id": f"ORD-{i}"}, f"p{i}") for i in range(3)))
    return Play(support_agent(first, says("All shipped.")), "Where are they?")


def model_retry() -> Play:
    bad, good = call("lookup_order", {"order_id": "1"}, "a"), call("lookup_order", {"order_id": "ORD-1"}, "b")
    return Play(support_agent(says(bad), says(good), says("Shipped.")), "Where?")


def validation_errors() -> Play:
    return Play(
        support_agent(
            says(call("search", '{"query": "x {y}", "limit": 500}', "a")),
            says(call("search", '{"query": "x", "lim', "b")),
            says(call("search", '{"query": "x", "limit": 2}', "c")),
            says("Found."),
        ),
        "Find x",
    )


def unknown_tool() -> Play:
    return Play(support_agent(says(call("cancel_all", "{}", "a")), says("I cannot.")), "Cancel everything")


def tool_failed() -> Play:
    return Play(support_agent(says(call("refund", {"order_id": "ORD-1"}, "a")), says("Closed today.")), "Refund")


def tool_crash() -> Play:
    return Play(support_agent(says(call("crm_note", {"text": "called"}, "a"))), "Write a note")


def thinking() -> Play:
    thought = ThinkingPart("hm", id="rs_1", signature="sig==", provider_name="anthropic")
    return Play(support_agent(says(thought, call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Ok.")), "Late?")


def output_tool() -> Play:
    answer = says(call("final_result", {"order_id": "ORD-1", "amount": 5}, "o"))
    return Play(support_agent(answer, output_type=Refund), "Refund?")


def output_tool_retry() -> Play:
    bad = says(call("final_result", {"order_id": "ORD-1", "amount": -5}, "o1"))
    good = says(call("final_result", {"order_id": "ORD-1", "amount": 5}, "o2"))
    return Play(support_agent(bad, good, output_type=Refund), "Refund?")


def several_output_tools() -> Play:
    types = [ToolOutput(Refund, name="refund_now"), ToolOutput(Folder, name="file_it")]
    return Play(support_agent(says(call("file_it", {"name": "inbox"}, "o")), output_type=types), "File it")


def unnamed_output_tools() -> Play:
    answer = says(call("final_result_Folder", {"name": "inbox"}, "o"))
    return Play(support_agent(answer, output_type=[Refund, Folder]), "File it")


def output_that_is_no_object() -> Play:
    return Play(support_agent(says(call("final_result", {"response": True}, "o")), output_type=bool), "Is it paid?")


def list_output() -> Play:
    answer = says(call("final_result", {"response": [{"order_id": "x", "amount": 1}]}, "o"))
    return Play(support_agent(answer, output_type=list[Refund]), "Refund all?")


def choice_output() -> Play:
    answer = says(call("final_result", {"response": "later"}, "o"))
    return Play(support_agent(answer, output_type=Literal["now", "later"]), "When?")


def native_list_output() -> Play:
    return Play(support_agent(says('{"response":[1,2]}'), output_type=NativeOutput(list[int])), "Which?")


def prompted_list_output() -> Play:
    return Play(support_agent(says('{"response":[1,2]}'), output_type=PromptedOutput(list[int])), "Which?")


def native_choice_of_objects() -> Play:
    answer = says('{"result":{"kind":"Folder","data":{"name":"inbox"}}}')
    return Play(support_agent(answer, output_type=NativeOutput([Refund, Folder])), "File it")


def results_of_bytes() -> Play:
    """Texts, other bytes, and bytes inside of a value. The oldest library writes those in another way."""
    agent: Agent[None, str] = Agent(Scripted(says(call("whole", {}, "a"), call("inside", {}, "b")), says("Read.")))

    @agent.tool_plain
    def whole() -> bytes:
        return b"\xff\xfe of a file"

    @agent.tool_plain
    def inside() -> dict[str, bytes]:
        return {"text": b"abc", "other": b"\xff\xfe"}

    return Play(agent, "Read both")


class Mailed(BaseModel):
    base64: str
    media_type: str = "text/plain"


def values_like_bytes() -> Play:
    """Objects of the team that look as bytes do in a record: arguments, answer, metadata and output."""
    answers = (says(call("mail", {"base64": "YWJj"}, "a")), says(call("final_result", {"base64": "ZGVm"}, "o")))
    agent = Agent(Scripted(*answers), output_type=Mailed)

    @agent.tool_plain
    def mail(base64: str) -> ToolReturn:
        return ToolReturn({"base64": base64}, metadata={"base64": "Z2hp", "media_type": "text/plain"})

    return Play(agent, "Mail it")


def recursive_output() -> Play:
    answer = says(call("final_result", {"name": "a", "inside": [{"name": "b"}]}, "o"))
    return Play(support_agent(answer, output_type=Folder), "Make folders")


def tool_beside_output() -> Play:
    both = says(
        call("lookup_order", {"order_id": "ORD-1"}, "a"), call("final_result", {"order_id": "x", "amount": 1}, "o")
    )
    return Play(support_agent(both, output_type=Refund), "Refund?")


def tool_beside_output_early() -> Play:
    both = says(
        call("final_result", {"order_id": "x", "amount": 1}, "o"), call("lookup_order", {"order_id": "ORD-1"}, "a")
    )
    return Play(support_agent(both, output_type=Refund, end_strategy="early"), "Refund?")


def native_output() -> Play:
    return Play(support_agent(says('{"order_id":"x","amount":1}'), output_type=NativeOutput(Refund)), "Refund?")


def native_output_retry() -> Play:
    bad, good = says('{"order_id":"x"}'), says('{"order_id":"x","amount":1}')
    return Play(support_agent(bad, good, output_type=NativeOutput(Refund)), "Refund?")


def prompted_output() -> Play:
    return Play(support_agent(says('{"order_id":"x","amount":1}'), output_type=PromptedOutput(Refund)), "Refund?")


def output_validator_retry() -> Play:
    agent = support_agent(says("too short"), says("long enough now"))

    @agent.output_validator
    def long_enough(output: str) -> str:
        if len(output) < 10:
            raise ModelRetry("Say more.")
        return output

    return Play(agent, "Speak")


def empty_response() -> Play:
    return Play(support_agent(says(), says("Here I am.")), "Hello?")


def system_prompts() -> Play:
    return Play(support_agent(says("Hi."), system_prompt=("Be kind.", "Be short.")), "Hello")


def dynamic_system_prompt() -> Play:
    agent = support_agent(says("Hi."))

    @agent.system_prompt(dynamic=True)
    def today() -> str:
        return "It is Monday."

    return Play(agent, "Hello")


def dynamic_instructions() -> Play:
    agent = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says("Ok."))
    seen: list[int] = []

    @agent.instructions
    def count(ctx: RunContext[None]) -> str:
        seen.append(1)
        return f"Request {len(seen)}."

    return Play(agent, "Where?")


def instructions_of_one_run() -> Play:
    """Which the agent's own code does not know."""
    return Play(support_agent(says("Hi.")), "Hello", instructions="Be short.")


def multimodal_prompt() -> Play:
    prompt = ["What is this?", PNG, ImageUrl(url="https://example.org/a.png")]
    return Play(support_agent(says("A box.")), prompt)


def multimodal_tool_results() -> Play:
    both = says(call("photo", {"order_id": "ORD-1"}, "a"), call("photo", {"order_id": "ORD-2"}, "b"))
    return Play(support_agent(both, says("Crushed.")), "Show me")


def file_in_response() -> Play:
    return Play(support_agent(says("Here.", FilePart(content=PNG))), "Draw")


def built_in_tool_parts() -> Play:
    used = NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="w", provider_name="openai")
    found = NativeToolReturnPart("web_search", {"hits": 1}, tool_call_id="w", provider_name="openai")
    return Play(support_agent(says(used, found, "One hit.")), "Search")


def multi_turn_with_repeated_ids() -> Play:
    first = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "same")), says("Shipped."))
    history = asyncio.run(first.run("Where is 1?")).all_messages()
    second = support_agent(says(call("lookup_order", {"order_id": "ORD-2"}, "same")), says("Shipped too."))
    return Play(second, "And 2?", message_history=history)


def repeated_ids_in_one_run() -> Play:
    again = [says(call("lookup_order", {"order_id": f"ORD-{i}"}, "same")) for i in (1, 2)]
    return Play(support_agent(*again, says("Both shipped.")), "Where?")


def tools_that_appear() -> Play:
    agent = support_agent(
        says(call("lookup_order", {"order_id": "ORD-1"}, "a")), says(call("late", {}, "b")), says("Done.")
    )

    async def only_later(ctx: RunContext[None], tool: ToolDefinition) -> ToolDefinition | None:
        return tool if ctx.run_step > 1 else None

    @agent.tool_plain(prepare=only_later)
    def late() -> str:
        """Comes later."""
        return "late"

    return Play(agent, "Go")


def rewritten_history() -> Play:
    def keep_last_two(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[-2:] if len(messages) > 3 else messages

    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(3)]
    return Play(support_agent(*looks, says("Done."), capabilities=[ProcessHistory(keep_last_two)]), "Search thrice")


def model_error() -> Play:
    return Play(support_agent(TimeoutError("The provider did not answer.")), "Hi")


def approval_first() -> Play:
    return Play(_approving(), "Refund both", output_type=[str, DeferredToolRequests])


def approval_second() -> Play:
    history = asyncio.run(_approving().run("Refund both", output_type=[str, DeferredToolRequests])).all_messages()
    results = DeferredToolResults(approvals={"r1": True, "r2": ToolDenied("No.")})
    agent = _approving(says("One refunded."))
    return Play(
        agent, None, message_history=history, deferred_tool_results=results, output_type=[str, DeferredToolRequests]
    )


def _approving(*then: ModelResponse) -> Agent[None, Any]:
    first = says(call("pay_back", {"order_id": "ORD-1"}, "r1"), call("pay_back", {"order_id": "ORD-2"}, "r2"))
    agent = Agent(Scripted(*(then or (first,))), instructions="You refund.")

    @agent.tool_plain(requires_approval=True)
    def pay_back(order_id: str) -> str:
        """Pay back."""
        return f"paid back {order_id}"

    return agent


def approval_beside_another_call() -> Play:
    """The other tool ran in the first run already."""
    asked = says(call("pay_back", {"order_id": "ORD-1"}, "r1"), call("lookup_order", {"order_id": "ORD-1"}, "l1"))
    kinds: Any = [str, DeferredToolRequests]
    history = asyncio.run(_paying(asked).run("Refund it", output_type=kinds)).all_messages()
    results = DeferredToolResults(approvals={"r1": True})
    agent = _paying(says("Refunded."))
    return Play(agent, None, message_history=history, deferred_tool_results=results, output_type=kinds)


def denial_beside_another_call() -> Play:
    asked = says(call("lookup_order", {"order_id": "ORD-1"}, "l1"), call("pay_back", {"order_id": "ORD-1"}, "r1"))
    kinds: Any = [str, DeferredToolRequests]
    history = asyncio.run(_paying(asked).run("Refund it", output_type=kinds)).all_messages()
    results = DeferredToolResults(approvals={"r1": ToolDenied("No.")})
    agent = _paying(says("Not refunded."))
    return Play(agent, None, message_history=history, deferred_tool_results=results, output_type=kinds)


def _paying(*answers: ModelResponse) -> Agent[None, Any]:
    agent = support_agent(*answers)

    @agent.tool_plain(requires_approval=True)
    def pay_back(order_id: str) -> str:
        """Pay back."""
        return f"paid back {order_id}"

    return agent


def text_beside_a_call() -> Play:
    """With `run_stream` the first text ends the run, and the call beside it is still made."""
    both = says("Looking.", call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(both, says("Shipped.")), "Where?")


def output_retries_exhausted() -> Play:
    bad = says(call("final_result", {"order_id": "ORD-1"}, "o1")), says(call("final_result", {"amount": 1}, "o2"))
    return Play(support_agent(*bad, output_type=Refund), "Refund?")


def text_output_refused_for_good() -> Play:
    agent = support_agent(says("no"), says("still no"))

    @agent.output_validator
    def never(output: str) -> str:
        raise ModelRetry("Say more.")

    return Play(agent, "Speak")


def output_function_crash() -> Play:
    def book(order_id: str) -> str:
        raise CrmDown("the booking failed")

    return Play(support_agent(says(call("final_result", {"order_id": "ORD-1"}, "o")), output_type=book), "Book")


def output_function() -> Play:
    def book(order_id: str) -> str:
        return f"booked {order_id}"

    return Play(support_agent(says(call("final_result", {"order_id": "ORD-1"}, "o")), output_type=book), "Book")


def tool_retries_exhausted() -> Play:
    bad = [says(call("lookup_order", {"order_id": str(i)}, f"a{i}")) for i in range(4)]
    return Play(support_agent(*bad), "Where?")


def validation_retries_exhausted() -> Play:
    bad = [says(call("search", {"query": "x", "limit": 500}, f"a{i}")) for i in range(5)]
    return Play(support_agent(*bad), "Search")


def unknown_tool_retries_exhausted() -> Play:
    """The call beside it is never made."""
    bad = [says(call("lookup_order", {"order_id": "ORD-1"}, f"l{i}"), call("lookup", {}, f"a{i}")) for i in range(3)]
    return Play(support_agent(*bad), "Where?")


def text_in_place_of_output() -> Play:
    return Play(support_agent(says("Five euros."), says("Five."), output_type=Refund), "Refund?")


def filtered() -> Play:
    looks = says(call("lookup_order", {"order_id": "ORD-1"}, "a"))
    return Play(support_agent(looks, replace(says(), finish_reason="content_filter")), "Where?")


def cut_before_an_answer() -> Play:
    cut = replace(says(ThinkingPart("Let me")), finish_reason="length")
    return Play(support_agent(cut, model_settings=ModelSettings(max_tokens=9)), "Where?")


def cut_calls() -> Play:
    """The call in front of the one that breaks off is never made."""
    cuts = [
        says(call("lookup_order", {"order_id": "ORD-1"}, f"l{i}"), call("search", '{"query": "x', f"a{i}"))
        for i in range(5)
    ]
    return Play(support_agent(*(replace(each, finish_reason="length") for each in cuts)), "Search")


def token_limit() -> Play:
    """The calls of the answer that goes beyond it are never made."""
    used = RequestUsage(input_tokens=9, output_tokens=9)
    looks = [replace(says(call("search", {"query": f"q{i}"}, f"s{i}")), usage=used) for i in range(3)]
    return Play(support_agent(*looks), "Search", usage_limits=UsageLimits(total_tokens_limit=20))


def request_limit() -> Play:
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(9)]
    return Play(support_agent(*looks), "Search", usage_limits=UsageLimits(request_limit=3))


def tool_calls_limit() -> Play:
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(9)]
    return Play(support_agent(*looks), "Search", usage_limits=UsageLimits(tool_calls_limit=2))


def outside_result_first() -> Play:
    return Play(_asking_outside(), "Ship it", output_type=[str, DeferredToolRequests])


def outside_result_second() -> Play:
    first = _asking_outside().run("Ship it", output_type=[str, DeferredToolRequests])
    history = asyncio.run(first).all_messages()
    results = DeferredToolResults(calls={"x1": {"tracking": "T-9"}})
    return Play(
        _asking_outside(says("Shipped as T-9.")),
        None,
        message_history=history,
        deferred_tool_results=results,
        output_type=[str, DeferredToolRequests],
    )


def _asking_outside(*then: ModelResponse) -> Agent[None, Any]:
    agent = Agent(Scripted(*(then or (says(call("ship", {"order_id": "ORD-1"}, "x1")),))), instructions="You ship.")

    @agent.tool_plain
    def ship(order_id: str) -> str:
        """Ship."""
        raise CallDeferred

    return agent


def crash_beside_a_running_tool() -> Play:
    agent = support_agent(says(call("wait", {}, "slow"), call("crm_note", {"text": "x"}, "crash")))

    @agent.tool_plain
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return "late"

    return Play(agent, "Both")


def sixty_requests() -> Play:
    looks = [says(call("search", {"query": f"q{i}", "limit": 1}, f"s{i}")) for i in range(60)]
    return Play(support_agent(*looks, says("Done.")), "Search", usage_limits=UsageLimits(request_limit=None))


@dataclass(frozen=True)
class Scenario:
    make: Callable[[], Play]

    def __str__(self) -> str:
        return self.make.__name__


SCENARIOS = [
    Scenario(make)
    for make in (
        text, one_tool, parallel_tools, model_retry, validation_errors, unknown_tool, tool_failed, tool_crash,
        thinking, output_tool, output_tool_retry, several_output_tools, unnamed_output_tools,
        output_that_is_no_object, list_output, choice_output, native_list_output, prompted_list_output,
        native_choice_of_objects, recursive_output, values_like_bytes, tool_beside_output,
        tool_beside_output_early, native_output, native_output_retry, prompted_output, output_validator_retry,
        empty_response, system_prompts, dynamic_system_prompt,
        dynamic_instructions, multimodal_prompt, multimodal_tool_results,
        file_in_response, built_in_tool_parts, multi_turn_with_repeated_ids, repeated_ids_in_one_run,
        tools_that_appear, rewritten_history, model_error, approval_first, approval_second,
        approval_beside_another_call, denial_beside_another_call, sixty_requests,
        text_beside_a_call, output_retries_exhausted, text_output_refused_for_good, output_function_crash,
        output_function, tool_retries_exhausted, validation_retries_exhausted, request_limit, tool_calls_limit,
        unknown_tool_retries_exhausted, text_in_place_of_output, filtered, cut_calls, token_limit,
        outside_result_first, outside_result_second,
        crash_beside_a_running_tool,
    )
]  # fmt: skip
