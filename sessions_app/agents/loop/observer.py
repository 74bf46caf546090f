"""Watches the loop from inside: checks each request against the recording and re-enacts what only
the framework can do (validation errors, output retries, rewritten histories)."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any, cast

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import CallDeferred, ModelRetry, ToolFailed, ToolRetryError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryInfo,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDefinition, ToolDenied

from sessions_app.agents.loop.decisions import Decisions, decided_by_hand
from sessions_app.agents.loop.frozen_tools import give_recorded, hold_back, validation_error
from sessions_app.agents.loop.library import dump_parameters, load_messages, load_parameters
from sessions_app.agents.loop.native_tools import FirstNativeTools
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.stage import Stage
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.history import History, messages
from sessions_app.core.judge.reading import is_of_recorder
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.fixture_book import FixtureBook, RefusedOutput
from sessions_app.core.replay.outputs import hides_output_tools, typed_output
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan
from sessions_app.core.replay.request_form import instructions_in
from sessions_app.core.run import SPANS, WAITING


class Observer(AbstractCapability[None]):
    """One for each replay; see `Transcript` for what it writes down."""

    def __init__(
        self, plan: ReplayPlan, model: ReplayModel, stage: Stage, transcript: Transcript, book: FixtureBook
    ) -> None:
        self._run = plan.run
        self._decisions: Decisions = plan.decisions
        self._model = model
        self._stage = stage
        self._transcript = transcript
        self._book = book
        self._first = _FirstSchemas(model.answers)
        self._native = FirstNativeTools(model.answers)

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: RunContext[None]) -> Observer:
        return self

    @property
    def _is_told(self) -> bool:
        """Whether whoever recorded it says where code rewrote the past; elsewhere that is guessed from the messages."""
        return is_of_recorder(self._run)

    @property
    def _prior(self) -> History | None:
        """The earlier turns, where code that changed them before the first request does not run."""
        return self._run.prior

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        planned = self._model.current
        if planned is None:
            return request_context
        if self._is_rewritten(planned) or self._has_other_turns(ctx, planned):
            self._reapply(ctx, planned)
            request_context.messages[:] = ctx.messages
        self._put_recorded_schemas(planned, request_context)
        return request_context

    async def wrap_model_request(
        self, ctx: RunContext[None], *, request_context: ModelRequestContext, handler: Any
    ) -> ModelResponse:
        planned, nearest, response = self._model.current, self._model.nearest, None

        def look() -> tuple[list[ModelMessage], JsonObject]:
            _spell_instructions(ctx.messages, planned)
            asked_with = dump_parameters(request_context.model_request_parameters)
            return list(ctx.messages), self._beside_loop(asked_with, nearest)

        self._stage.watch(look)
        try:
            response = cast(ModelResponse, await handler(request_context))
        finally:
            # Only now: the hooks before the request run inside the handler and may change it.
            self._stage.requested(planned, *look(), response)
        return response

    def _beside_loop(self, asked_with: JsonObject, nearest: PlannedAnswer) -> JsonObject:
        """The parameters that the loop made, with what it has no part in."""
        return self._native.beside(asked_with, nearest)

    async def prepare_tools(self, ctx: RunContext[None], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """The calls that a run is resumed with are answered before its first request, as a tool's own. The library
        does not let a tool be called that is run elsewhere."""
        if ctx.run_step > 0 or self._model.cursor > 0:
            return tool_defs
        return [replace(tool, kind="function") if tool.kind == "external" else tool for tool in tool_defs]

    async def prepare_output_tools(
        self, ctx: RunContext[None], tool_defs: list[ToolDefinition]
    ) -> list[ToolDefinition]:
        asked = self._model.offered_at(ctx.run_step)
        recorded = self._first.tools_of(asked)
        if not recorded:
            return [] if self._first.are_hidden(asked) else tool_defs
        by_name = {tool.name: tool for tool in load_parameters({"output_tools": recorded}).output_tools}
        return [by_name.get(tool.name, tool) for tool in tool_defs]

    async def wrap_tool_validate(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        refused = self._book.take_refused(call.tool_call_id, call.tool_name)
        if refused is not None and refused.call.result is not None:
            self._stage.called(call.tool_name, call.tool_call_id, _raw_arguments(call), refused)
            raise validation_error(call.tool_name, refused.call.result.value)
        return await handler(args)

    async def wrap_tool_execute(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """What was put off is answered behind the calls beside it."""
        recorded = self._book.look_up(call.tool_name, call.tool_call_id, args)
        if recorded is not None and recorded.was_put_off:
            raise CallDeferred
        hold_back(self._book, ctx, call, args)
        return await handler(args)

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[None], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """What the team's own code decided while the run went on; calls that it left open stay open."""
        decided = {part.tool_call_id: part for part in self._next_request() or [] if isinstance(part, ToolReturnPart)}
        results = decided_by_hand(requests, self._decisions)
        for call in requests.approvals:
            answer = decided.get(call.tool_call_id)
            if answer is not None and call.tool_call_id not in results.approvals:
                was_denied = answer.outcome == "denied"
                results.approvals[call.tool_call_id] = ToolDenied(cast(Any, answer.content)) if was_denied else True
        for call in requests.calls:
            if call.tool_call_id in decided:
                results.calls[call.tool_call_id] = await self._given_outside(call)
        return results if results.approvals or results.calls else None

    async def _given_outside(self, call: ToolCallPart) -> Any:
        """A recording of it that still waits holds no answer."""
        given = call.tool_name, call.tool_call_id, call.args_as_dict()
        try:
            return await give_recorded(self._stage, *given, is_refused=lambda found: found.call.outcome in WAITING)
        except (ToolFailed, ModelRetry) as said:
            return said

    async def wrap_output_validate(
        self, ctx: RunContext[None], *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        self._retry_as_recorded(output_context)
        return await handler(output)

    async def wrap_output_process(
        self, ctx: RunContext[None], *, output_context: Any, output: Any, handler: Any
    ) -> Any:
        self._retry_as_recorded(output_context)
        made = await handler(output)
        return made if ctx.partial_output else self._typed(output_context, made)

    def _typed(self, output_context: Any, made: Any) -> Any:
        """What the team's type makes of it, as its recorded schema tells."""
        call, asked = output_context.tool_call, self._model.newest
        parameters = asked.asked_with
        if call is None and not parameters.get("output_object"):
            return made
        spelled = Payload.of_text(made).parsed if call is None and isinstance(made, str) else made
        name = call.tool_name if call is not None else None
        return typed_output(parameters, name, spelled, is_unchecked=bool(self._run.agent.output_unchecked))

    # --- re-enactments

    def _retry_as_recorded(self, output_context: Any) -> None:
        """The recorded run refused this output: refuse it again with the same words."""
        call = getattr(output_context, "tool_call", None)
        if call is None and self._model.cursor and self._model.newest.has_refused_text:
            raise ToolRetryError(RetryFeedbackPart(content="", retry=RetryInfo(cause="validation_error")))
        following = self._next_request()
        if following is None:
            return
        for part in following:
            if isinstance(part, RetryFeedbackPart) and call is None:
                self._transcript.has_taken_feedback = True
                raise ToolRetryError(part)
            if isinstance(part, ToolReturnPart) and call is not None and self._refuses(part, call):
                named = replace(part, tool_name=call.tool_name, tool_call_id=call.tool_call_id, outcome="retried")
                raise ToolRetryError(as_refused(named, self._book.refused_output(call.tool_call_id)))

    def _refuses(self, part: ToolReturnPart, call: ToolCallPart) -> bool:
        """An answer to a call that nobody made stands for this one, and differs from it. Spans tell of the outcome in
        the call's own step alone."""
        asked = self._model.newest.asked
        is_of_call = part.tool_call_id == call.tool_call_id or part.tool_call_id not in asked
        return (part.outcome == "retried" or self._book.was_refused(part.tool_call_id)) and is_of_call

    def _next_request(self) -> list[Any] | None:
        """The parts of all that came after the answer given last, until the next one; it need not have been sent."""
        is_recorded = 0 < self._model.cursor <= len(self._model.answers)
        after = self._model.newest.after if is_recorded else None
        nodes = takewhile(_is_request, _newest_nodes(after) if after is not None else ())
        told = load_messages([node.message for node in nodes])
        return [part for message in reversed(told) for part in message.parts] if told else None

    def _is_rewritten(self, planned: PlannedAnswer) -> bool:
        """Whether something of the recorded run changed messages that had been there before."""
        if planned.rewriting is not None:
            return True
        if self._is_told or self._model.cursor == 0 or planned.history is None:
            return False
        before = self._model.newest
        return self._told_of(before) not in _newest_nodes(planned.history)

    def _told_of(self, answer: PlannedAnswer) -> History | None:
        """What the next request must hold to go on from this answer. A loop of one's own, and the middleware of a
        graph, may tell the answer itself otherwise than it came."""
        is_heard = self._run.is_told_by_others and self._run.source_format != SPANS
        if not is_heard or answer.response is None:
            return answer.history
        return History(answer.history, answer.response)

    def _has_other_turns(self, ctx: RunContext[None], planned: PlannedAnswer) -> bool:
        """Whether the first request tells of other earlier turns than the run was started with. The library itself puts
        some in order before it begins."""
        if self._is_told or self._model.cursor > 0 or self._prior is None or planned.history is None:
            return False
        return bool(load_messages(messages(planned.history))[:-1] != ctx.messages[:-1])

    def _reapply(self, ctx: RunContext[None], planned: PlannedAnswer) -> None:
        """History processors are the team's code; their recorded effect is put in place."""
        recorded = load_messages(messages(planned.history))
        newest: ModelMessage = ctx.messages[-1]
        if self._transcript.rewrite(planned, list(ctx.messages), is_past_known=not self._goes_on_from_unknown()):
            ctx.messages[:] = [*recorded[:-1], newest]

    def _goes_on_from_unknown(self) -> bool:
        """Whether the request before was not captured: nobody knows what of the past was new then."""
        return self._model.cursor > 0 and self._model.newest.history is None

    def _put_recorded_schemas(self, planned: PlannedAnswer, request_context: ModelRequestContext) -> None:
        """Output schemas cannot be rebuilt from JSON in general, so they are taken from the request that had them
        first; a later change shows."""
        recorded = planned.asked_with
        if recorded.get("output_object") is not None:
            loaded = load_parameters({"output_object": self._first.object_of(planned)})
            request_context.model_request_parameters.output_object = loaded.output_object
        _divide_instructions(request_context.model_request_parameters, recorded.get("instruction_parts"))


class _FirstSchemas:
    """The output schemas of each agent, as its first request with any holds them."""

    def __init__(self, answers: tuple[PlannedAnswer, ...]) -> None:
        self._tools: dict[tuple[str | None, str], JsonObject] = {}
        self._objects: dict[str | None, JsonValue] = {}
        self._offers_from = next((each.step for each in answers if each.asked_with.get("output_tools")), 0)
        for answer in answers:
            parameters = answer.asked_with
            for tool in parameters.get("output_tools") or []:
                self._tools.setdefault((answer.agent, tool["name"]), tool)
            if parameters.get("output_object") is not None:
                self._objects.setdefault(answer.agent, parameters["output_object"])

    def tools_of(self, planned: PlannedAnswer) -> list[JsonObject]:
        tools = planned.asked_with.get("output_tools") or []
        return [self._tools.get((planned.agent, tool["name"]), tool) for tool in tools]

    def are_hidden(self, planned: PlannedAnswer) -> bool:
        """Whether the run's own code offers them from a later request on."""
        return hides_output_tools(planned.asked_with) and planned.step < self._offers_from

    def object_of(self, planned: PlannedAnswer) -> JsonValue:
        return self._objects[planned.agent]


def as_refused(told: ToolReturnPart, refused: RefusedOutput | None) -> ToolReturnPart:
    """In the words of the recorded step. Spans tell of the retry there alone."""
    if refused is None:
        return told
    retry = told.retry or (RetryInfo(**cast(Any, refused.retry)) if refused.retry else None)
    return replace(told, content=cast(Any, refused.words), retry=retry)


def _spell_instructions(seen: list[ModelMessage], planned: PlannedAnswer | None) -> None:
    """As recorded, where they differ in white space at their ends alone: the loop that rebuilds a run takes it away,
    and other frameworks than its own do not. What the recorded parameters say is not held to be something else."""
    newest = seen[-1] if seen else None
    recorded = (planned.newest or {}).get("instructions") if planned else None
    if planned is not None and isinstance(newest, ModelRequest) and isinstance(recorded, str):
        is_same = recorded.strip() == (newest.instructions or "") and recorded in _spellings(planned, recorded)
        newest.instructions = recorded if is_same else newest.instructions


def _spellings(planned: PlannedAnswer, recorded: str) -> tuple[str | None, ...]:
    """How the recorded parameters let the instructions be written; in any way where they do not hold them."""
    whole = instructions_in(planned.asked_with)
    if whole is None:
        return (recorded,)
    parts = [part for part in planned.asked_with["instruction_parts"] if isinstance(part, dict)]
    return whole, "\n\n".join(str(part.get("content")) for part in parts)


def _divide_instructions(parameters: Any, recorded: JsonValue) -> None:
    """As recorded, where the text is the same: it does not tell what of it the agent gave, the run or a toolset."""
    loaded = load_parameters({"instruction_parts": recorded}).instruction_parts if recorded else None
    if loaded and _joined(loaded) == _joined(parameters.instruction_parts):
        parameters.instruction_parts = loaded


def _joined(parts: Any) -> str:
    return "\n\n".join(part.content for part in parts or ())


def _raw_arguments(call: ToolCallPart) -> JsonValue:
    """As the model sent them: they did not pass validation."""
    return call.args


def _is_request(node: History) -> bool:
    return bool(node.message.value.get("kind") == "request")


def _newest_nodes(history: History, limit: int = 8) -> list[History]:
    """An answer and the request after it add a few messages, never many."""
    found: list[History] = []
    node: History | None = history
    while node is not None and len(found) < limit:
        found.append(node)
        node = node.parent
    return found
