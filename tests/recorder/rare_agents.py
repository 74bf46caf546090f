"""Agents that go rarer ways: what they do must replay, or be judged beforehand."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable
from typing import Any

from pydantic_ai import Agent, ModelRetry, NativeOutput, RunContext, ToolReturn
from pydantic_ai.capabilities import (
    AbstractCapability,
    HandleDeferredToolCalls,
    Hooks,
    NativeTool,
    PrepareOutputTools,
    ProcessHistory,
    ReinjectSystemPrompt,
    ToolSearch,
)
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelHTTPError,
    SkipModelRequest,
    SkipToolExecution,
    SkipToolValidation,
    ToolFailed,
)
from pydantic_ai.messages import (
    BinaryImage,
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.native_tools import CodeExecutionTool, MCPServerTool, WebSearchTool
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from tests.recorder.scenarios import PNG, Play, Refund, Scripted, call, says, support_agent

LOOKUP = call("lookup_order", {"order_id": "ORD-1"}, "a")


# --- what the loop tells the model of itself ---------------------------------------------------


def effort_that_changes() -> Play:
    settings: Any = lambda ctx: {"thinking": "low" if ctx.run_step < 2 else "high"}  # noqa: E731
    return Play(support_agent(says(LOOKUP), says("Fine."), model_settings=settings), "Where?")


def instructions_that_are_appended() -> Play:
    agent = support_agent(says(LOOKUP), says("Fine."))

    @agent.instructions(on_change="append", name="step")
    def step(ctx: RunContext[None]) -> str:
        return f"Step {ctx.run_step}."

    return Play(agent, "Where?")


def tool_that_reveals_another() -> Play:
    hidden: FunctionToolset[None] = FunctionToolset()

    @hidden.tool_plain(defer_loading=True)
    def cancel_order(order_id: str) -> str:
        return f"cancelled {order_id}"

    cancel = call("cancel_order", {"order_id": "ORD-1"}, "b")
    agent = support_agent(says(call("unlock", {}, "a")), says(cancel), says("Done."), toolsets=[hidden])

    @agent.tool_plain
    def unlock() -> ToolReturn:
        return ToolReturn("unlocked", tools=["cancel_order"])

    return Play(agent, "Cancel it")


def tool_that_is_called_before_it_is_there() -> Play:
    tools: FunctionToolset[None] = FunctionToolset()

    @tools.tool_plain
    def late(n: int) -> int:
        return n

    @tools.tool_plain
    def early(n: int) -> int:
        return n

    offered = tools.filtered(lambda ctx, tool: tool.name == "early" or ctx.run_step > 1)
    answers = says(call("late", {"n": 1}, "a")), says(call("late", {"n": 2}, "b")), says("Done.")
    return Play(Agent(Scripted(*answers), name="shop", toolsets=[offered]), "Go")


def text_that_is_no_output_between_two_outputs() -> Play:
    bad, good = (call("final_result", {"order_id": "ORD-1", "amount": n}, f"o{n}") for n in ("all", 2))
    answers = says(bad), says("all of it"), says(good)
    return Play(support_agent(*answers, output_type=Refund, retries={"output": 3}), "Refund?")


def nothing_where_an_image_would_do() -> Play:
    return Play(support_agent(says(), says("Fine."), output_type=[str, BinaryImage]), "Draw")


# --- errors and histories ----------------------------------------------------------------------


def connection_error_with_structured_output() -> Play:
    return Play(support_agent(ConnectionError("refused"), output_type=Refund), "Refund?")


def connection_error_behind_a_tool_with_structured_output() -> Play:
    return Play(support_agent(says(LOOKUP), ConnectionError("refused"), output_type=Refund), "Refund?")


def instructions_that_begin_later() -> Play:
    agent = support_agent(says(LOOKUP), says("Fine."))

    @agent.instructions
    def more(ctx: RunContext[None]) -> str | None:
        return "Sum up." if ctx.run_step > 1 else None

    return Play(agent, "Where?")


def instructions_that_come_between_others() -> Play:
    play = instructions_that_begin_later()

    @play.agent.instructions
    def always() -> str:
        return "Be short."

    return play


def _earlier_turn() -> list[ModelMessage]:
    return asyncio.run(support_agent(says(LOOKUP), says("Shipped.")).run("Where?")).all_messages()


def history_that_begins_at_a_tool_return() -> Play:
    return Play(support_agent(says("Fine.")), "And?", message_history=_earlier_turn()[2:])


def history_that_ends_at_a_tool_return() -> Play:
    return Play(support_agent(says("Fine.")), None, message_history=_earlier_turn()[:3])


def history_that_ends_at_a_prompt() -> Play:
    """The loop sends it as its own request, with the agent's instructions."""
    asked = [*_earlier_turn(), ModelRequest(parts=[UserPromptPart("And?")])]
    return Play(support_agent(says(LOOKUP), says("Fine.")), None, message_history=asked)


def history_that_ends_at_a_system_prompt_and_a_prompt() -> Play:
    asked = [*_earlier_turn(), ModelRequest(parts=[SystemPromptPart("Be short."), UserPromptPart("And?")])]
    return Play(support_agent(says(LOOKUP), says("Fine.")), None, message_history=asked)


def history_that_ends_at_two_prompts() -> Play:
    """The loop makes one request of them."""
    asked: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart(text)]) for text in ("Where?", "And?")]
    return Play(support_agent(says(LOOKUP), says("Fine.")), None, message_history=asked)


def history_that_ends_at_a_prompt_behind_answers() -> Play:
    asked = [*_earlier_turn()[:3], ModelRequest(parts=[UserPromptPart("And?")])]
    return Play(support_agent(says(LOOKUP), says("Fine.")), None, message_history=asked)


def history_with_a_system_prompt_behind_the_prompt() -> Play:
    asked = [ModelRequest(parts=[UserPromptPart("Where?"), SystemPromptPart("Be short.")])]
    return Play(support_agent(says(LOOKUP), says("Fine.")), None, message_history=asked)


def history_with_feedback_as_it_was_called_before() -> Play:
    """A `RetryPromptPart` that names no tool, which the library still reads."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        feedback = RetryPromptPart("Say more.")
    asked = [*_earlier_turn(), ModelRequest(parts=[feedback]), says("Shipped today.")]
    return Play(support_agent(says(LOOKUP), says("Fine.")), "And?", message_history=asked)


def hook_that_sends_more_than_the_loop_holds() -> Play:
    async def hurry(ctx: RunContext[None], asked: Any) -> Any:
        asked.messages = [*asked.messages, ModelRequest(parts=[UserPromptPart("Hurry.")])]
        return asked

    agent = support_agent(says(LOOKUP), says("Fine."), capabilities=[Hooks(before_model_request=hurry)])
    return Play(agent, "Where?")


def hook_that_sends_more_behind_an_answer() -> Play:
    async def hurry(ctx: RunContext[None], asked: Any) -> Any:
        if ctx.run_step > 1:
            asked.messages = [*asked.messages, ModelRequest(parts=[UserPromptPart("Hurry.")])]
        return asked

    agent = support_agent(says(LOOKUP), says("Fine."), capabilities=[Hooks(before_model_request=hurry)])
    return Play(agent, "Where?")


def system_prompt_that_a_processor_puts_in_front() -> Play:
    kind = ProcessHistory(lambda messages: [ModelRequest(parts=[SystemPromptPart("Be kind.")]), *messages])
    return Play(support_agent(says(LOOKUP), says("Fine."), capabilities=[kind]), "Where?")


def history_with_a_call_that_was_never_answered() -> Play:
    """Of two calls of one answer; the loop goes on without the other one."""
    return Play(support_agent(says("Fine.")), "And?", message_history=_one_of_two_answered())


def history_that_ends_beside_a_call_that_was_never_answered() -> Play:
    return Play(support_agent(says("Fine.")), None, message_history=_one_of_two_answered())


def _one_of_two_answered() -> list[ModelMessage]:
    prompt, _, answers, _ = _earlier_turn()
    both = ModelResponse(parts=[LOOKUP, call("lookup_order", {"order_id": "ORD-2"}, "b")])
    return [prompt, both, answers]


def history_that_a_processor_shortens() -> Play:
    newest = ProcessHistory(lambda messages: messages[-1:])
    agent = support_agent(says(LOOKUP), says("Fine."), capabilities=[newest])
    return Play(agent, "And?", message_history=_earlier_turn())


def system_prompt_put_back_into_a_history() -> Play:
    agent = support_agent(says(LOOKUP), says("Fine."), system_prompt="Be kind.", capabilities=[ReinjectSystemPrompt()])
    return Play(agent, "And?", message_history=_earlier_turn())


def system_prompt_beside_instructions() -> Play:
    return Play(support_agent(says(LOOKUP), says("Fine."), system_prompt=("Be kind.", "Be short.")), "Where?")


def dynamic_prompt_with_history() -> Play:
    days: list[int] = []

    def made(*answers: Any) -> Agent[Any, Any]:
        agent = support_agent(*answers)

        @agent.system_prompt(dynamic=True)
        def today() -> str:
            days.append(1)
            return f"It is day {len(days)}."

        return agent

    history = asyncio.run(made(says("Hi.")).run("Hello")).all_messages()
    return Play(made(says(LOOKUP), says("Hi again.")), "Again", message_history=history)


def ids_used_again_over_turns() -> Play:
    first = support_agent(says(call("lookup_order", {"order_id": "ORD-1"}, "same")), says("One."))
    history = asyncio.run(first.run("1?")).all_messages()
    second = support_agent(says(call("search", {"query": "x", "limit": 1}, "same")), says("Two."))
    history = asyncio.run(second.run("2?", message_history=history)).all_messages()
    bad, good = call("lookup_order", {"order_id": "bad"}, "same"), call("lookup_order", {"order_id": "ORD-3"}, "same")
    third = support_agent(says(bad, call("lookup_order", {"order_id": "ORD-3"}, "other")), says(good), says("Three."))
    return Play(third, "3?", message_history=history)


# --- outputs and results -----------------------------------------------------------------------


def image_as_output(*, output_type: Any = BinaryImage) -> Play:
    """The first of two, behind a call of a tool."""
    images = [FilePart(BinaryImage(data=data, media_type="image/png")) for data in (PNG.data, b"other")]
    return Play(support_agent(says(LOOKUP), says("Here:", *images), output_type=output_type), "Draw it.")


def image_where_a_text_would_do() -> Play:
    return image_as_output(output_type=[str, BinaryImage])


def extra_keys_in_an_output_tool() -> Play:
    answer = call("final_result", {"order_id": "ORD-1", "amount": 2, "why": "late"}, "o")
    return Play(support_agent(says(answer), output_type=Refund), "Refund?")


def extra_keys_in_native_output() -> Play:
    answer = says('{"order_id":"ORD-1","amount":2,"why":"late"}')
    return Play(support_agent(answer, output_type=NativeOutput(Refund)), "Refund?")


def bytes_in_metadata() -> Play:
    return _returning(ToolReturn("x", metadata={"raw": b"\xff\x00abc", "n": 1.0}))


def bytes_as_metadata() -> Play:
    return _returning(ToolReturn("x", metadata=b"abc"))


def answer_of_many_levels() -> Play:
    return _returning(_nested(120))


def arguments_of_many_levels() -> Play:
    return _returning("ok", arguments={"x": _nested(120)})


def arguments_of_many_levels_as_text() -> Play:
    """The text is kept as it came."""
    return _returning("ok", arguments=json.dumps({"x": _nested(120)}))


def _returning(value: Any, *, arguments: Any = None) -> Play:
    agent = Agent(Scripted(says(call("give", arguments or {}, "a")), says("Done.")))

    @agent.tool_plain
    def give(x: Any = None) -> Any:
        return value

    return Play(agent, "Go")


def _nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


# --- hooks that answer for a tool --------------------------------------------------------------


class Skipping(AbstractCapability[Any]):
    def __init__(self, where: str) -> None:
        self._where = where

    async def before_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        if self._where == "validation":
            raise SkipToolValidation({"order_id": "ORD-7"})
        return args

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        if self._where == "execution":
            raise SkipToolExecution({"skipped": True})
        return args


def skipped_execution() -> Play:
    return Play(support_agent(says(LOOKUP), says("Ok."), capabilities=[Skipping("execution")]), "Where?")


def skipped_validation() -> Play:
    """The tool is run with other arguments than the model sent."""
    return Play(support_agent(says(LOOKUP), says("Ok."), capabilities=[Skipping("validation")]), "Where?")


def approved_while_it_runs() -> Play:
    return _deciding({"r1": True, "r2": True})


def denied_while_it_runs() -> Play:
    return _deciding({"r1": True, "r2": ToolDenied("No.")})


def denied_by_code_that_answers_for_all_calls() -> Play:
    """Also for those that somebody else has decided on."""
    return _deciding({"r1": True, "r2": ToolDenied("No.")}, for_all=True)


def _deciding(approvals: dict[str, Any], *, for_all: bool = False) -> Play:
    async def decide(ctx: Any, requests: Any) -> DeferredToolResults:
        asked = approvals.keys() if for_all else [each.tool_call_id for each in requests.approvals]
        return DeferredToolResults(approvals={call_id: approvals[call_id] for call_id in asked})

    asked = says(*(call("pay_back", {"order_id": f"ORD-{call_id}"}, call_id) for call_id in approvals))
    agent = Agent(Scripted(asked, says("Settled.")), capabilities=[HandleDeferredToolCalls(decide)])

    @agent.tool_plain(requires_approval=True)
    def pay_back(order_id: str) -> str:
        return f"paid back {order_id}"

    return Play(agent, "Refund both")


def held_back_by_its_tool_and_approved_while_it_runs(*, paid: str = "paid") -> Play:
    return _held_back_by_its_tool(True, paid=paid)


def held_back_by_its_tool_and_denied_while_it_runs(*, above: int = 0) -> Play:
    return _held_back_by_its_tool(ToolDenied("Not today."), above=above)


def _held_back_by_its_tool(decided: Any, *, above: int = 0, paid: str = "paid") -> Play:
    async def decide(ctx: Any, requests: Any) -> DeferredToolResults:
        return DeferredToolResults(approvals={each.tool_call_id: decided for each in requests.approvals})

    asked = says(call("pay", {"x": 1}, "c1"), call("look", {}, "c2"))
    agent: Agent[None, str] = Agent(Scripted(asked, says("Done.")), capabilities=[HandleDeferredToolCalls(decide)])

    @agent.tool
    def pay(ctx: RunContext[None], x: int) -> str:
        if not ctx.tool_call_approved and x > above:
            raise ApprovalRequired(metadata={"x": x})
        return f"{paid} {x}"

    @agent.tool_plain
    def look() -> str:
        return "nothing"

    return Play(agent, "Pay")


def two_held_back_and_decided_otherwise(*, refund: Any = "paid back") -> Play:
    """The approved one runs, and tells the model to try again where `refund` is an exception."""

    async def decide(ctx: Any, requests: Any) -> DeferredToolResults:
        decisions: dict[str, Any] = {"c1": True, "c3": ToolDenied("Not today.")}
        return DeferredToolResults(
            approvals={each.tool_call_id: decisions[each.tool_call_id] for each in requests.approvals}
        )

    asked = says(call("pay_back", {"x": 1}, "c1"), call("look", {}, "c2"), call("pay_back", {"x": 3}, "c3"))
    agent: Agent[None, str] = Agent(Scripted(asked, says("Done.")), capabilities=[HandleDeferredToolCalls(decide)])

    @agent.tool
    def pay_back(ctx: RunContext[None], x: int) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        if isinstance(refund, Exception):
            raise refund
        return f"{refund} {x}"

    @agent.tool_plain
    def look() -> str:
        return "nothing"

    return Play(agent, "Pay back both")


def held_back_and_to_be_tried_again() -> Play:
    return two_held_back_and_decided_otherwise(refund=ModelRetry("Not in this currency."))


def answered_from_outside_while_it_runs() -> Play:
    async def answer(ctx: Any, requests: Any) -> DeferredToolResults:
        return DeferredToolResults(calls={each.tool_call_id: {"tracking": "T-9"} for each in requests.calls})

    asked = says(call("ship", {"order_id": "ORD-1"}, "x1"))
    agent = Agent(Scripted(asked, says("Shipped.")), capabilities=[HandleDeferredToolCalls(answer)])

    @agent.tool_plain
    def ship(order_id: str) -> str:
        raise CallDeferred

    return Play(agent, "Ship it")


def put_off_beside_one_to_approve(*, first: str = "ship") -> Play:
    """The library tells of approved calls before those that were answered from outside."""

    async def settle(ctx: Any, requests: Any) -> DeferredToolResults:
        approvals: dict[str, Any] = {each.tool_call_id: True for each in requests.approvals}
        calls: dict[str, Any] = {each.tool_call_id: "on its way" for each in requests.calls}
        return DeferredToolResults(approvals=approvals, calls=calls)

    names = [first, "pay" if first == "ship" else "ship"]
    asked = says(*(call(each, {"order_id": "ORD-1"}, each) for each in names))
    agent = Agent(Scripted(asked, says("Shipped.")), name="agent", capabilities=[HandleDeferredToolCalls(settle)])

    @agent.tool_plain
    def ship(order_id: str) -> str:
        raise CallDeferred

    @agent.tool_plain(requires_approval=True)
    def pay(order_id: str) -> str:
        return f"paid {order_id}"

    return Play(agent, "Ship it")


def one_to_approve_beside_one_put_off() -> Play:
    return put_off_beside_one_to_approve(first="pay")


# --- what code outside of the loop does --------------------------------------------------------


def _resumed(result: Any, prompt: str | None = None) -> Play:
    def asking(*then: Any) -> Agent[None, Any]:
        agent = Agent(Scripted(*(then or (says(call("ship", {"order_id": "ORD-1"}, "x1")),))))

        @agent.tool_plain
        def ship(order_id: str) -> str:
            raise CallDeferred

        return agent

    kinds: Any = [str, DeferredToolRequests]
    history = asyncio.run(asking().run("Ship it", output_type=kinds)).all_messages()
    results = DeferredToolResults(calls={"x1": result})
    agent = asking(says("Shipped."))
    return Play(agent, prompt, message_history=history, deferred_tool_results=results, output_type=kinds)


def result_from_outside_with_a_prompt() -> Play:
    return _resumed({"tracking": "T-9"}, "And hurry")


def approval_with_a_prompt_behind_an_earlier_one() -> Play:
    """The library joins what the earlier approval gave with the answer to the call beside it."""
    first = says(call("pay", {"order_id": "ORD-1"}, "p1"), call("look", {}, "l1"))
    history = asyncio.run(_paying_and_looking(first).run("Pay both")).all_messages()
    second = _paying_and_looking(says(call("pay", {"order_id": "ORD-2"}, "p2")))
    history = asyncio.run(
        second.run(message_history=history, deferred_tool_results=DeferredToolResults(approvals={"p1": True}))
    ).all_messages()
    results = DeferredToolResults(approvals={"p2": True})
    return Play(_paying_and_looking(says("Paid.")), "And hurry", message_history=history, deferred_tool_results=results)


def approval_of_a_call_in_front_of_a_prompt() -> Play:
    """The prompt is one of the messages; the library asks without it."""
    results = DeferredToolResults(approvals={"p1": True})
    return Play(_paying_and_looking(says("Paid.")), None, message_history=_unpaid(), deferred_tool_results=results)


def prompt_behind_a_call_that_nobody_decided() -> Play:
    """The library takes no prompt of its own here."""
    return Play(_paying_and_looking(says("Not yet.")), None, message_history=_unpaid())


def _unpaid() -> list[ModelMessage]:
    asked = says(call("pay", {"order_id": "ORD-1"}, "p1"))
    return [ModelRequest.user_text_prompt("Pay."), asked, ModelRequest.user_text_prompt("And hurry.")]


def _paying_and_looking(*answers: ModelResponse) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(Scripted(*answers), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def pay(order_id: str) -> str:
        return f"paid {order_id}"

    @agent.tool_plain
    def look() -> str:
        return "two orders"

    return agent


def results_for_tools_that_run_elsewhere() -> Play:
    def asking(*then: ModelResponse) -> Agent[None, Any]:
        schema = {"type": "object", "properties": {"order_id": {"type": "string"}}}
        elsewhere = ExternalToolset([ToolDefinition(name="ship", parameters_json_schema=schema)])
        kinds: Any = [str, DeferredToolRequests]
        return Agent(Scripted(*then), toolsets=[elsewhere], output_type=kinds)

    asked = says(*(call("ship", {"order_id": f"ORD-{call_id}"}, call_id) for call_id in ("x1", "x2", "x3")))
    history = asyncio.run(asking(asked).run("Ship them")).all_messages()
    shipped = ToolReturn({"tracking": "T-9"}, content=["The label:", PNG], metadata={"weight": 1.0})
    results = DeferredToolResults(calls={"x1": shipped, "x2": ToolFailed("Lost."), "x3": "sent"})
    agent = asking(says("Two are on their way."))
    return Play(agent, "And hurry", message_history=history, deferred_tool_results=results)


def answered_for_a_tool_that_runs_elsewhere() -> Play:
    async def answer(ctx: Any, requests: Any) -> DeferredToolResults:
        given = ToolReturn({"tracking": "T-9"}, metadata={"weight": 1.0})
        return DeferredToolResults(calls={each.tool_call_id: given for each in requests.calls})

    elsewhere = ExternalToolset([ToolDefinition(name="ship")])
    asked = says(call("ship", {}, "x1"))
    capabilities = [HandleDeferredToolCalls(answer)]
    return Play(Agent(Scripted(asked, says("Shipped.")), toolsets=[elsewhere], capabilities=capabilities), "Ship it")


def retry_from_outside() -> Play:
    return _resumed(ModelRetry("Once more."))


def message_put_into_the_queue() -> Play:
    agent: Agent[None, str] = Agent(Scripted(says(call("note", {}, "a")), says("Noted.")))

    @agent.tool
    def note(ctx: RunContext[None]) -> str:
        ctx.enqueue("One more thing.")
        return "noted"

    return Play(agent, "Note it")


def text_that_a_validator_changes() -> Play:
    agent = support_agent(says("hello"))

    @agent.output_validator
    def louder(output: str) -> str:
        return output.upper()

    return Play(agent, "Speak")


def calls_without_ids() -> Play:
    return Play(support_agent(says(*(call("lookup_order", {"order_id": f"ORD-{n}"}, "") for n in (1, 2)))), "Where?")


# --- toolsets ----------------------------------------------------------------------------------


def _with_hidden_tool(*answers: ModelResponse, **arguments: Any) -> Play:
    agent = support_agent(*answers, **arguments)

    @agent.tool_plain(defer_loading=True)
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        return f"cancelled {order_id}"

    return Play(agent, "Cancel it")


def hidden_tool() -> Play:
    return _with_hidden_tool(says(LOOKUP), says("It is shipped."))


def tools_that_run_at_the_provider() -> Play:
    """One of them from the second request on, beside the library's own search for hidden tools."""
    later = NativeTool(lambda ctx: CodeExecutionTool() if ctx.run_step > 1 else None)
    servers = [NativeTool(MCPServerTool(id=name, url=f"https://{name}.example")) for name in ("docs", "files")]
    script = says(LOOKUP), says(call("lookup_order", {"order_id": "ORD-2"}, "b")), says("Fine.")
    capabilities = [NativeTool(WebSearchTool(max_uses=2)), later, *servers]
    return _with_hidden_tool(*script, capabilities=capabilities)


def tool_that_the_provider_looks_for() -> Play:
    return _with_hidden_tool(says(LOOKUP), says("Done."), capabilities=[ToolSearch(strategy="bm25")])


def hidden_tool_that_a_search_of_the_team_finds() -> Play:
    search = call("search_tools", {"queries": ["end it"]}, "s")
    script = says(search), says(call("cancel_order", {"order_id": "ORD-1"}, "a")), says("Done.")
    return _with_hidden_tool(*script, capabilities=[ToolSearch(strategy=lambda ctx, queries, tools: ["cancel_order"])])


def output_tools_from_the_second_request_on() -> Play:
    async def prepared(ctx: RunContext[None], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        return tools if ctx.run_step > 1 else []

    script = says(LOOKUP), says(call("final_result", {"order_id": "ORD-1", "amount": 1}, "o"))
    kinds: Any = [Refund, str]
    return Play(support_agent(*script, output_type=kinds, capabilities=[PrepareOutputTools(prepared)]), "Refund it")


def fallback_model() -> Play:
    play = Play(support_agent(name="agent"), "Where?")
    broken = Scripted(ModelHTTPError(500, "first"), ModelHTTPError(500, "first"))
    play.agent.model = FallbackModel(broken, Scripted(says(LOOKUP), says("Shipped.")))
    return play


def hidden_tool_that_is_looked_for() -> Play:
    search = call("search_tools", {"queries": ["cancel"]}, "s")
    return _with_hidden_tool(says(search), says(call("cancel_order", {"order_id": "ORD-1"}, "a")), says("Done."))


def one_id_for_two_calls() -> Play:
    """Which the loop refuses before it makes any."""
    return Play(support_agent(says(*(call("lookup_order", {"order_id": f"ORD-{n}"}, "") for n in (1, 2)))), "Where?")


def toolset_made_anew_at_each_request() -> Play:
    agent = support_agent(says(LOOKUP), says("Ok."))

    @agent.toolset
    def made(ctx: RunContext[None]) -> FunctionToolset[None]:
        return FunctionToolset(instructions=f"This is request {ctx.run_step}.")

    return Play(agent, "Where?")


# --- hooks that have a request made again ------------------------------------------------------


class Refusing(AbstractCapability[Any]):
    def __init__(self, *, request: int, before: bool = False) -> None:
        self._left = request
        self._is_before = before

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        if self._is_before:
            self._refuse()
        return request_context

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        if not self._is_before:
            self._refuse()
        return response

    def _refuse(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise ModelRetry("Once more, please.")


def text_that_a_hook_refuses() -> Play:
    return Play(support_agent(says(LOOKUP), says("No."), says("Ok."), capabilities=[Refusing(request=2)]), "Where?")


def output_call_that_a_hook_refuses() -> Play:
    first, then = (call("final_result", {"order_id": "ORD-1", "amount": n}, f"o{n}") for n in (1, 2))
    return Play(support_agent(says(first), says(then), output_type=Refund, capabilities=[Refusing(request=1)]), "Go")


def request_that_a_hook_refuses() -> Play:
    hook = Refusing(request=2, before=True)
    return Play(support_agent(says(LOOKUP), says("Ok."), capabilities=[hook]), "Where?")


class Answering(AbstractCapability[Any]):
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        if ctx.run_step == 2:
            raise SkipModelRequest(says("From a store."))
        return request_context


def hook_that_answers_for_the_model() -> Play:
    return Play(support_agent(says(LOOKUP), capabilities=[Answering()]), "Where?")


REPRODUCED: tuple[Callable[[], Play], ...] = (
    connection_error_with_structured_output, connection_error_behind_a_tool_with_structured_output,
    instructions_that_begin_later, instructions_that_come_between_others,
    history_that_begins_at_a_tool_return, history_that_ends_at_a_tool_return, dynamic_prompt_with_history,
    history_that_ends_at_a_system_prompt_and_a_prompt, history_that_ends_at_two_prompts,
    history_that_ends_at_a_prompt_behind_answers, history_with_a_system_prompt_behind_the_prompt,
    history_with_feedback_as_it_was_called_before,
    history_that_ends_at_a_prompt, history_with_a_call_that_was_never_answered,
    history_that_ends_beside_a_call_that_was_never_answered, history_that_a_processor_shortens,
    system_prompt_put_back_into_a_history, system_prompt_beside_instructions,
    image_as_output, image_where_a_text_would_do,
    ids_used_again_over_turns, extra_keys_in_an_output_tool, extra_keys_in_native_output, bytes_in_metadata,
    bytes_as_metadata, skipped_execution, skipped_validation, approved_while_it_runs, denied_while_it_runs,
    held_back_by_its_tool_and_approved_while_it_runs, held_back_by_its_tool_and_denied_while_it_runs,
    two_held_back_and_decided_otherwise, held_back_and_to_be_tried_again,
    put_off_beside_one_to_approve, one_to_approve_beside_one_put_off,
    answered_from_outside_while_it_runs, result_from_outside_with_a_prompt,
    approval_with_a_prompt_behind_an_earlier_one,
    approval_of_a_call_in_front_of_a_prompt,
    prompt_behind_a_call_that_nobody_decided,
    results_for_tools_that_run_elsewhere, answered_for_a_tool_that_runs_elsewhere, text_that_a_hook_refuses,
    hidden_tool, hidden_tool_that_is_looked_for, tools_that_run_at_the_provider, tool_that_the_provider_looks_for,
    hidden_tool_that_a_search_of_the_team_finds, output_tools_from_the_second_request_on,
    effort_that_changes, tool_that_reveals_another,
    tool_that_is_called_before_it_is_there, text_that_is_no_output_between_two_outputs,
    nothing_where_an_image_would_do, fallback_model, calls_without_ids, one_id_for_two_calls,
    arguments_of_many_levels_as_text,
)  # fmt: skip
JUDGED: dict[Callable[[], Play], tuple[int, str]] = {
    answer_of_many_levels: (1, "value_cut"),
    arguments_of_many_levels: (1, "value_cut"),
    message_put_into_the_queue: (2, "message_from_code"),
    hook_that_sends_more_behind_an_answer: (2, "sent_otherwise"),
    text_that_a_validator_changes: (1, "output_made_by_code"),
    output_call_that_a_hook_refuses: (2, "message_from_code"),
    request_that_a_hook_refuses: (2, "model_answer_missing"),
    toolset_made_anew_at_each_request: (2, "message_from_code"),
    instructions_that_are_appended: (2, "message_from_code"),
}
"""The last step that replays, and the reason."""
