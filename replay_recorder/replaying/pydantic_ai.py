"""Replays of Pydantic AI agents (2.62 and later): a model that gives recorded answers, and tools that do not run."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, SkipToolExecution, ToolFailed
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    ModelResponseStreamEvent,
    ToolCallPart,
    ToolReturn,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolApproved, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_ai.usage import UsageLimits
from pydantic_core import InitErrorDetails, PydanticCustomError

from replay_recorder.hooks.pydantic_ai import RecordRuns
from replay_recorder.hooks.pydantic_ai_given import asked_arguments, given_fields
from replay_recorder.hooks.pydantic_ai_messages import message_text
from replay_recorder.hooks.pydantic_ai_reading import settings_value
from replay_recorder.replaying.comparing import Difference, first_difference, settings_difference
from replay_recorder.replaying.errors import RequestDiffers
from replay_recorder.replaying.failures import recorded_failure
from replay_recorder.replaying.hooks_behind import HooksBehind
from replay_recorder.replaying.matching import CallBook
from replay_recorder.replaying.notes import AnotherRequest, OnDifference
from replay_recorder.replaying.recording import Json, RecordedAnswer, RecordedCall, Recording
from replay_recorder.replaying.stops import Stops
from replay_recorder.replaying.tool_http import ToolHttp
from replay_recorder.replaying.turns import Turns
from replay_recorder.tools.tool_files import RecordingExhausted

_PARAMETERS: TypeAdapter[ModelRequestParameters] = TypeAdapter(ModelRequestParameters)
_PROMPT: TypeAdapter[UserPromptPart] = TypeAdapter(UserPromptPart)


# --- the model ---------------------------------------------------------------------------------


class ReplayModel(Model[Any]):
    """Gives the recorded answers in order, each to the request that it was recorded for. One run uses it up."""

    def __init__(
        self,
        recording: Recording,
        on_difference: OnDifference = "stop",
        stops: Stops | None = None,
        *,
        name: str | None = None,
        settings: Any = None,
    ) -> None:
        """`name` and `settings` are those of the model in whose place it stands, where that is known."""
        super().__init__(settings=settings, profile=_profile(recording))
        self.notes: list[AnotherRequest] = []
        """Requests that were not the recorded ones and were given the recorded answer all the same."""
        self._recording = recording
        self._on_difference = on_difference
        self._stops = stops or Stops()
        self._conversation = _Conversation()
        self._given = 0
        self._name = str(recording.record.get("model") or "recorded") if name is None else name

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return str(self._recording.record.get("provider") or "recorded")

    @property
    def base_url(self) -> str | None:
        return None

    @property
    def left_over(self) -> list[RecordedAnswer]:
        """Recorded answers that nobody asked for."""
        return self._recording.answers[self._given :]

    def prepare_messages(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters | None = None
    ) -> list[ModelMessage]:
        """They are compared as the agent's loop holds them, and not as some provider wants them."""
        return messages

    async def request(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        return self._answer(messages, model_request_parameters, model_settings)[1]

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        recorded, response = self._answer(messages, model_request_parameters, model_settings)
        is_broken = response.state == "interrupted"
        if is_broken:
            response.state = "complete"
        # As a model does before it sends: a text before a call that carries the output is not the output then.
        parameters = model_request_parameters.with_default_output_mode(self.profile["default_structured_output_mode"])
        yield _Streamed(response, parameters, recorded.error if is_broken else None)

    def _answer(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters, settings: Any
    ) -> tuple[RecordedAnswer, ModelResponse]:
        answers = self._recording.answers
        if self._given >= len(answers):
            raise RecordingExhausted(
                f"{self._recording.run_id} holds {len(answers)} answers of the model, and one more was asked for. "
                "Nothing is made up. A model made by replay_model serves one run."
            )
        recorded = answers[self._given]
        self._check(recorded, messages, parameters, settings)
        self._stops.before_model(recorded.step, messages, parameters)
        self._given += 1
        if recorded.response is None:
            raise recorded_failure(recorded.error, f"the answer of step {recorded.step} was not recorded")
        given = recorded.raw_response or recorded.response  # hooks run again
        return recorded, _loaded([given])[0]  # type: ignore[return-value]  # an answer was recorded

    def _check(
        self, recorded: RecordedAnswer, messages: list[ModelMessage], parameters: ModelRequestParameters, settings: Any
    ) -> None:
        told = None if recorded.was_sent_otherwise else recorded.messages
        found = (
            self._conversation.difference(told, messages)
            or _parameter_difference(recorded.parameters, parameters)
            or settings_difference(recorded.settings, json.loads(settings_value(settings)))
        )
        if found is None:
            return
        if self._on_difference == "stop":
            raise RequestDiffers(recorded.step, *found)
        self.notes.append(AnotherRequest(recorded.step, *found))


class _Streamed(CompletedStreamedResponse):
    """A recorded answer as a stream; one that broke off then breaks off again."""

    def __init__(self, response: ModelResponse, parameters: ModelRequestParameters, error: Json | None) -> None:
        super().__init__(response, model_request_parameters=parameters, replay_events=True)
        self._error = error

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        async for event in super()._get_event_iterator():
            yield event
        if self._error is not None:
            raise recorded_failure(self._error, "the stream broke off")


def _profile(recording: Recording) -> ModelProfile:
    """What `auto` output was resolved to shows in how the output came."""
    modes = {(answer.parameters or {}).get("output_mode") for answer in recording.answers}
    has_tool = "tool" in modes or any(call.is_output for call in recording.calls)
    return ModelProfile(
        default_structured_output_mode="tool" if has_tool else "native",
        supports_json_schema_output=True,
        supports_json_object_output=True,
    )


class _Conversation:
    """Compares each request; what was seen to agree is not looked at again."""

    def __init__(self) -> None:
        self._agreed: list[tuple[Json, ModelMessage]] = []

    def difference(self, recorded: list[Json] | None, now: list[ModelMessage]) -> Difference | None:
        """None also where the recording does not hold what was sent."""
        if recorded is None:
            return None
        found = self._first(_as_sent(recorded), now)
        return found and self._first(_repaired(recorded), now) and found

    def _first(self, recorded: list[Json], now: list[ModelMessage]) -> Difference | None:
        same = 0
        for (one, other), left, right in zip(self._agreed, recorded, now, strict=False):
            if one is not left or other is not right:
                break
            same += 1
        for position in range(same, max(len(recorded), len(now))):
            found = _message_difference(recorded[position:][:1], now[position:][:1], f"messages[{position}]")
            if found is not None:
                return found
        self._agreed = list(zip(recorded, now, strict=True))
        return None


def _as_sent(messages: list[Json]) -> list[Json]:
    """The library hands neighbouring requests to a model as one, in which the answers of tools come first."""
    sent: list[Json] = []
    for message in messages:
        if sent and message["kind"] == "request" == sent[-1]["kind"]:
            parts = [*sent.pop()["parts"], *message["parts"]]
            message = {**message, "parts": sorted(parts, key=lambda part: part["part_kind"] not in _RETURNS)}
        sent.append(message)
    return sent


_RETURNS = ("tool-return", "retry-prompt")


def _repaired(messages: list[Json]) -> list[Json]:
    """Calls and answers without each other are left out or made up by the library before it asks."""
    return [_dumped(message) for message in repair_messages(_loaded(messages))]


def _message_difference(recorded: list[Json], now: list[ModelMessage], path: str) -> Difference | None:
    if not recorded or not now:
        return Difference(path, recorded[0] if recorded else None, _dumped(now[0]) if now else None)
    rebuilt = _dumped(now[0])
    found = first_difference(recorded[0], rebuilt, path)
    if found is None:
        return None
    # A recording of another version may say the same in another shape.
    return first_difference(_dumped(_loaded(recorded)[0]), rebuilt, path) and found


def _parameter_difference(recorded: Json | None, parameters: ModelRequestParameters) -> Difference | None:
    if recorded is None:
        return None
    now = json.loads(_PARAMETERS.dump_json(parameters))
    _forget_new_marks(recorded, now)
    return first_difference(recorded, {key: now[key] for key in recorded if key in now}, "parameters")


def _forget_new_marks(recorded: Json, now: Json) -> None:
    """A tool that is marked as one that reads (`metadata={"replay": "read"}`) after the run was recorded is offered to
    the model as before."""
    known = {tool.get("name"): tool.get("metadata") or {} for tool in recorded.get("function_tools") or []}
    for tool in now["function_tools"]:
        marks = tool.get("metadata") or {}
        if "replay" in marks and "replay" not in known.get(tool["name"], marks):
            tool["metadata"] = {name: value for name, value in marks.items() if name != "replay"} or None


def _loaded(messages: list[Json]) -> list[ModelMessage]:
    """Fresh objects each time: the loop writes into what it is given."""
    return ModelMessagesTypeAdapter.validate_json(json.dumps(messages))


def _dumped(message: ModelMessage) -> Json:
    """As the recorder writes it."""
    return dict(json.loads(message_text(message)))


def model_of(agent: Any, arguments: Json) -> tuple[str, Any]:
    """The id of the model that an agent is run with, empty for one that nobody named, and the settings it brings."""
    model = arguments.get("model") or agent.model
    if isinstance(model, str):
        return model.partition(":")[2] or model, None
    return getattr(model, "model_name", ""), getattr(model, "settings", None)


# --- tools -------------------------------------------------------------------------------------

_calling: ContextVar[ToolCallPart] = ContextVar("replay_recorder_calling")


class FrozenTools(AbstractCapability[Any]):
    """In the place of each tool's body the recorded answer is given: `agent.run(…, capabilities=[frozen_tools(run)])`.

    Arguments are checked as they are today, and hooks and checks of the team's run up to the body. A function that
    makes the output does not run either.
    """

    def __init__(
        self,
        recording: Recording,
        on_difference: OnDifference = "stop",
        stops: Stops | None = None,
        *,
        is_observed: bool = False,
    ) -> None:
        """An observed replay is recorded, and what its tools were given is compared there."""
        self._recording = recording
        self._stops = stops or Stops()
        self._is_observed = is_observed
        self.book = CallBook(recording.calls, on_difference)
        self._hooks_behind = HooksBehind()
        self._put_off: dict[str, RecordedCall] = {}
        self._held_back = {call.call_id: call for call in recording.calls if call.was_held_back}

    @property
    def notes(self) -> list[AnotherRequest]:
        """Calls that were not the recorded ones and were given the recorded answer all the same."""
        return self.book.notes

    def get_ordering(self) -> CapabilityOrdering | None:
        """What came from outside is given before anybody is asked for it once more."""
        return CapabilityOrdering(wraps=(HandleDeferredToolCalls,))

    async def for_run(self, ctx: RunContext[Any]) -> FrozenTools:
        return self

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Bodies(toolset, self._given)

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        with _during(_as_sent_by_model(call, ctx.messages)):
            return await handler(args)

    async def wrap_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any) -> Any:
        if not output_context.has_function or ctx.partial_output:
            return await handler(output)
        return self._recorded_output(output_context.tool_call, ctx.run_step)

    def _recorded_output(self, call: ToolCallPart | None, request: int) -> Any:
        refused = next((each for each in self._recording.calls if _is_refused_output(each, call)), None)
        if refused is not None:
            raise ModelRetry(str(refused.result))
        said = self._recording.feedback_behind(request) if call is None else None
        if said is not None:
            raise ModelRetry(said)
        if self._recording.output is None and self._recording.record.get("error") is not None:
            raise recorded_failure(self._recording.record["error"], "the output was not recorded")
        return self._recording.output

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        """What came from outside while the run went on comes as then, behind the calls beside it."""
        results = DeferredToolResults()
        for call in (_as_sent_by_model(each, ctx.messages) for each in requests.calls):
            if call.tool_call_id in self._put_off:
                results.calls[call.tool_call_id] = _reenacted(self._put_off.pop(call.tool_call_id))
        return results if results.calls else None

    async def _given(self, ctx: RunContext[Any], arguments: Json) -> Any:
        call = _calling.get()
        held_back = None if ctx.tool_call_approved else self._held_back.get(call.tool_call_id)
        if held_back is not None:
            raise ApprovalRequired(metadata=held_back.waits_with)
        self._stops.before_call(call.tool_name, call.tool_call_id, arguments)
        self._hooks_behind.look(ctx.root_capability)
        recorded = await self.book.answer(call.tool_name, call.tool_call_id, call.args)
        if not self._is_observed:
            self._compare_given(recorded, asked_arguments(call.args), arguments)
        if recorded.was_put_off:
            self._put_off[call.tool_call_id] = recorded
            raise CallDeferred
        return _reenacted(recorded)

    def _compare_given(self, recorded: RecordedCall, asked: Any, arguments: Json) -> None:
        reached = given_fields(asked, arguments)
        if "ran_with_unknown" not in reached:
            self.book.reached(recorded, reached.get("ran_with", asked))


def _is_refused_output(recorded: RecordedCall, call: ToolCallPart | None) -> bool:
    is_it = call is not None and recorded.is_output and recorded.call_id == call.tool_call_id
    return is_it and recorded.retry.get("cause") == "model_retry"


def _as_sent_by_model(call: ToolCallPart, messages: list[ModelMessage]) -> ToolCallPart:
    """Whoever approves a call may change its arguments, and recordings hold those that the model sent."""
    sent = (part for message in reversed(messages) if isinstance(message, ModelResponse) for part in message.tool_calls)
    return next((part for part in sent if part.tool_call_id == call.tool_call_id), call)


@contextmanager
def _during(call: ToolCallPart) -> Iterator[None]:
    token = _calling.set(call)
    try:
        yield
    finally:
        _calling.reset(token)


def call_under_way() -> ToolCallPart | None:
    """The call in whose course this is asked."""
    return _calling.get(None)


@dataclass
class _Bodies(WrapperToolset[Any]):
    """Stands where the tools themselves would begin."""

    given: Any

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        # A skipped execution counts as a call of the tool, and hooks that run after it do not see the answer a
        # second time: the recorded one is what came out of them.
        raise SkipToolExecution(await self.given(ctx, tool_args))


def _reenacted(call: RecordedCall) -> Any:
    """Let the call end as it ended then: with a value, or by the exception that the loop made its answer of."""
    if call.ended_before_tool:
        _differs_before_tool(call)
    if call.outcome == "deferred":
        raise CallDeferred
    if call.outcome == "unapproved":
        raise ApprovalRequired
    if call.outcome == "failed":
        raise ToolFailed(str(call.result))
    if call.outcome == "retried":
        is_invalid = call.retry.get("cause") == "validation_error"
        raise _validation_error(call) if is_invalid else ModelRetry(str(call.result))
    if call.outcome == "crashed" or (call.error is not None and not call.has_result):
        raise recorded_failure(call.error, f"{call.name} failed")
    if call.metadata is None and call.content is None:
        return call.result
    content = None if call.content is None else _prompt(call.content)
    return ToolReturn(return_value=call.result, content=content, metadata=call.metadata)


def _validation_error(call: RecordedCall) -> ValidationError:
    """The recorded error list as the exception that the loop makes the same list of."""
    items = call.result if isinstance(call.result, list) else [{"msg": str(call.result)}]
    return ValidationError.from_exception_data(call.name, [_error_line(item) for item in items])


def _error_line(item: Json) -> InitErrorDetails:
    error = PydanticCustomError(item.get("type", "value_error"), str(item.get("msg", "")))
    return InitErrorDetails(type=error, loc=tuple(item.get("loc") or ()), input=item.get("input"))


def _differs_before_tool(call: RecordedCall) -> NoReturn:
    """A check or a hook ended the call then, and today it comes to the tool: what that would answer is not known."""
    if call.retry.get("cause") == "validation_error":
        raise RequestDiffers(call.step, f"arguments of {call.name}", call.result, "they are accepted now")
    raise RequestDiffers(call.step, f"call of {call.name}", call.result, "it reaches the tool now")


@dataclass
class _StoppingBodies(WrapperToolset[Any]):
    """Stops with the debugger before the body of a tool that does run."""

    stops: Stops

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        if not self.stops.is_at_tool(ctx.tool_name or name, ctx.tool_call_id):
            return await super().call_tool(name, tool_args, ctx, tool)
        return await super().call_tool(name, tool_args, ctx, self._with_stop(name, tool, tool_args))

    def _with_stop(self, name: str, tool: Any, tool_args: dict[str, Any]) -> Any:
        """The same tool with a stop at the first line of its function, where the toolset keeps one."""
        schema: Any = getattr(getattr(tool, "call_func", None), "__self__", None)
        if not hasattr(schema, "function"):
            self.stops.now(name, tool_args)
            return tool
        return replace(tool, call_func=replace(schema, function=self.stops.stopping_in(schema.function)).call)


class RunningTools(AbstractCapability[Any]):
    """For tools that run: the debugger stops at the first line of the one that was named, HTTP that they send is
    answered from the recording, where there is `http`, and none ends before its turn."""

    def __init__(self, stops: Stops, turns: Turns, http: ToolHttp | None = None) -> None:
        self._stops = stops
        self._turns = turns
        self._http = http

    async def for_run(self, ctx: RunContext[Any]) -> RunningTools:
        return self

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        self._stops.reached_call(call.tool_name, call.tool_call_id, args)
        try:
            with _during(call):
                value = await self._run(ctx, call, lambda: handler(args))
        except Exception:
            await self._turns.before_error(call.tool_call_id)
            raise
        await self._turns.before_answer(call.tool_call_id)
        return value

    async def wrap_output_process(self, ctx: RunContext[Any], *, output_context: Any, output: Any, handler: Any) -> Any:
        """A function that makes the output is a tool in all but name."""
        if self._http is None or not output_context.has_function or ctx.partial_output:
            return await handler(output)
        made, sent_otherwise = await self._http.during_output(ctx.run_step, lambda: handler(output))
        if ctx.root_capability is not None:
            ctx.root_capability.apply(lambda each: each.note(sent_otherwise) if isinstance(each, RecordRuns) else None)
        return made

    async def _run(self, ctx: RunContext[Any], call: ToolCallPart, run: Callable[[], Awaitable[Any]]) -> Any:
        if self._http is None:
            return await run()
        sent = _as_sent_by_model(call, ctx.messages).args
        return await self._http.during(call.tool_name, call.tool_call_id, sent, run)

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Around the toolsets that hold the functions, and not around those that put them together."""
        return toolset.visit_and_replace(self._around)

    def _around(self, leaf: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return leaf if isinstance(leaf, WrapperToolset) else _StoppingBodies(leaf, self._stops)


class LateAnswers(AbstractCapability[Any]):
    """Around the recorder: an answer that it heard, and that came too late for the loop, comes too late again."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost", wraps=(RecordRuns,))

    async def for_run(self, ctx: RunContext[Any]) -> LateAnswers:
        return self

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        value = await handler(args)
        await self._turns.behind_answer(call.tool_call_id)
        return value


# --- how the run began -------------------------------------------------------------------------


def _prompt(content: Any) -> Any:
    """A text, or a list of texts and files."""
    return _PROMPT.validate_json(json.dumps({"content": content, "part_kind": "user-prompt"})).content


def recorded_start(recording: Recording, decisions: Mapping[str, bool]) -> tuple[Any, dict[str, Any]]:
    """The prompt, and the further arguments of `run` with which the recorded run was started, but for these decisions
    on calls, by their ids."""
    arguments: dict[str, Any] = {}
    deferred = recording.record.get("deferred")
    history = [*recording.prior, *([] if isinstance(deferred, dict) else _own_request(recording))]
    if history:
        arguments["message_history"] = _loaded(history)
    if isinstance(deferred, dict):
        results = arguments["deferred_tool_results"] = _deferred(recording, deferred)
        for call_id in decisions.keys() & deferred.keys():
            results.approvals[call_id] = decisions[call_id] or ToolDenied()
    limits = (recording.record.get("agent") or {}).get("usage_limits")
    if limits:
        arguments["usage_limits"] = UsageLimits(**{"request_limit": None, **limits})
    return (None if recording.input is None else _prompt(recording.input)), arguments


def _own_request(recording: Recording) -> list[Json]:
    """Of a run without a prompt what it sent first, where that was the last message of its history."""
    sent = recording.answers[0].messages if recording.input is None and recording.answers else None
    return [message for message in (sent or [])[len(recording.prior) :] if message.get("parts")]


def _deferred(recording: Recording, outcomes: Json) -> DeferredToolResults:
    """Approvals and outside results that the run was continued with."""
    answers = {call.call_id: call for call in recording.calls}
    results = DeferredToolResults()
    for call_id, outcome in outcomes.items():
        if outcome == "denied" and call_id in answers:
            results.approvals[call_id] = ToolDenied(str(answers[call_id].result))
        else:
            changed = answers[call_id].approved_arguments if call_id in answers else None
            results.approvals[call_id] = ToolApproved(override_args=changed)
    return results
