"""Replays of the OpenAI Agents SDK: a model that gives the recorded answers, and tools that do not run."""

from __future__ import annotations

import copy
import dataclasses
import functools
import json
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import CellType, FunctionType
from typing import Any

from agents import Agent, FunctionTool, Handoff, ModelResponse, RunConfig, Usage, WebSearchTool
from agents.exceptions import AgentsException
from agents.models.default_models import get_default_model
from agents.models.interface import Model
from agents.run import AgentRunner
from agents.tool import CodeInterpreterTool, FileSearchTool, HostedMCPTool, ImageGenerationTool
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputItem, ResponseUsage
from pydantic import TypeAdapter

from replay_recorder.hooks.openai_agents_items import Conversation
from replay_recorder.hooks.openai_agents_reading import parameters_value, settings_value
from replay_recorder.replaying.comparing import first_difference, settings_difference
from replay_recorder.replaying.errors import NoAnswerRecorded, RequestDiffers
from replay_recorder.replaying.failures import RecordedFailure, recorded_failure
from replay_recorder.replaying.matching import CallBook
from replay_recorder.replaying.notes import AnotherRequest, OnDifference
from replay_recorder.replaying.openai_items import rows_of_message, rows_of_messages
from replay_recorder.replaying.recording import Json, RecordedAnswer, RecordedCall, Recording, read_arguments
from replay_recorder.replaying.stops import Stops
from replay_recorder.replaying.tool_http import ToolHttp
from replay_recorder.tools.tool_files import RecordingExhausted

_OUTPUT: TypeAdapter[list[ResponseOutputItem]] = TypeAdapter(list[ResponseOutputItem])
_ANSWERED_BY_PROVIDER = (CodeInterpreterTool, FileSearchTool, HostedMCPTool, ImageGenerationTool, WebSearchTool)
"""Nothing of these runs in the team's process."""


class _Differs(RequestDiffers, AgentsException):
    """What is no exception of the SDK's own, the SDK puts into other words."""


class _NoAnswer(NoAnswerRecorded, AgentsException):
    """Likewise."""


class _Exhausted(RecordingExhausted, AgentsException):
    """Likewise."""


for _error in (_Differs, _NoAnswer, _Exhausted):
    # Under the names that people know; a recording of the replay says them as well.
    _error.__name__ = _error.__qualname__ = _error.__bases__[0].__name__


# --- the model ---------------------------------------------------------------------------------


class ReplayModel(Model):
    """Gives the recorded answers in order, each to the request that it was recorded for. One run uses it up."""

    def __init__(
        self,
        recording: Recording,
        on_difference: OnDifference = "stop",
        stops: Stops | None = None,
        *,
        own: Any = None,
    ) -> None:
        """`own` is the model of the team's that its runs name."""
        self._own = own
        self.model = recording.record.get("model") or "recorded"
        self.notes: list[AnotherRequest] = []
        """Requests that were not the recorded ones and were given the recorded answer all the same."""
        self.differed: RequestDiffers | None = None
        """The difference that ended the run."""
        self._recording = recording
        self._on_difference = on_difference
        self._stops = stops or Stops()
        self._conversation = Conversation(is_kept_by_provider=False)
        self._messages: list[Json] = []
        self._given = 0

    @property
    def left_over(self) -> list[RecordedAnswer]:
        """Recorded answers that nobody asked for."""
        return self._recording.answers[self._given :]

    def in_place_of(self, agents_own: Any) -> Any:
        """The model that would be asked, by its id or as an object; `agents_own` is what the agent names."""
        return self._own or agents_own or get_default_model()

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> ModelResponse:
        more |= {"tools": tools, "output_schema": output_schema, "handoffs": handoffs}
        recorded = self._answer(system_instructions, input, model_settings, more)
        return ModelResponse(output=_items(recorded), usage=_usage(recorded), response_id=_response_id(recorded))

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: Any,
        tools: list[Any],
        output_schema: Any,
        handoffs: list[Any],
        tracing: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        more |= {"tools": tools, "output_schema": output_schema, "handoffs": handoffs}
        recorded = self._answer(system_instructions, input, model_settings, more)
        yield ResponseCompletedEvent(
            type="response.completed", sequence_number=0, response=_whole_response(recorded, self.model)
        )

    def _answer(self, instructions: str | None, items: Any, settings: Any, more: Json) -> RecordedAnswer:
        answers = self._recording.answers
        if self._given >= len(answers):
            raise _Exhausted(
                f"{self._recording.run_id} holds {len(answers)} answers of the model, and one more was asked for. "
                "Nothing is made up. A model made by replay_model serves one run."
            )
        recorded = answers[self._given]
        self._conversation.is_kept_by_provider = _is_kept_by_provider(more)
        messages = self._asked(items, instructions)
        parameters = parameters_value(more)
        self._check(recorded, messages, parameters, settings_value(settings))
        self._stops.before_model(recorded.step, messages, parameters)
        self._given += 1
        if recorded.response is None:
            raise recorded_failure(recorded.error, f"the answer of step {recorded.step} was not recorded")
        self._conversation.answered(recorded.step, rows_of_message(recorded.response))
        self._messages = [*messages, recorded.response]
        return recorded

    def _asked(self, items: Any, instructions: str | None) -> list[Json]:
        """Everything that goes into this request, in the shape of the recording."""
        asked = self._conversation.ask(items, instructions)
        before = self._messages if asked.prior is None and asked.after is not None else asked.prior or []
        return [*before, *asked.messages]

    def _check(self, recorded: RecordedAnswer, messages: list[Json], parameters: Json, settings: Json) -> None:
        found = None
        if recorded.messages is not None:
            found = first_difference(_plain(recorded.messages), _plain(messages), "messages")
        if found is None and recorded.parameters is not None:
            now = {key: parameters[key] for key in recorded.parameters if key in parameters}
            found = first_difference(recorded.parameters, now, "parameters")
        found = found or settings_difference(recorded.settings, json.loads(json.dumps(settings, default=str)))
        if found is None:
            return
        if self._on_difference == "stop":
            self.differed = _Differs(recorded.step, *found)
            raise self.differed
        self.notes.append(AnotherRequest(recorded.step, *found))


def _is_kept_by_provider(more: Json) -> bool:
    """Whether a request goes on from what the provider has, and holds nothing but what is new."""
    return bool(more.get("conversation_id") or more.get("previous_response_id"))


def _plain(messages: list[Json]) -> list[Json]:
    """What the model reads: an answer that is sent back lacks who gave it, and what a call came to is told to nobody.

    Items have no messages around them, and where one message ends is the recorder's word; neighbours are one.
    """
    plain: list[Json] = []
    for message in map(_said, messages):
        if plain and message["kind"] == plain[-1]["kind"]:
            before = plain.pop()
            message = {**before, **message, "parts": [*before["parts"], *message["parts"]]}
        plain.append(message)
    return plain


def _said(message: Json) -> Json:
    said: Json = {key: message[key] for key in ("kind", "instructions") if key in message}
    return {**said, "parts": [_part(part) for part in message.get("parts") or []]}


def _part(part: Json) -> Json:
    return {key: value for key, value in part.items() if key in _READ and value is not None}


_READ = ("part_kind", "content", "tool_name", "args", "tool_call_id")


def _items(recorded: RecordedAnswer) -> list[Any]:
    return _OUTPUT.validate_python([_typed(row) for row in rows_of_message(recorded.response or {})])


def _typed(row: Json) -> Json:
    """Without ids that the recording does not have; null in any other field is what the provider said."""
    return {key: value for key, value in row.items() if value is not None or key not in ("id", "call_id")}


def _usage(recorded: RecordedAnswer) -> Usage:
    said = (recorded.response or {}).get("usage") or {}
    into, out = said.get("input_tokens") or 0, said.get("output_tokens") or 0
    return Usage(requests=1, input_tokens=into, output_tokens=out, total_tokens=into + out)


def _response_id(recorded: RecordedAnswer) -> str | None:
    return (recorded.response or {}).get("provider_response_id")


def _whole_response(recorded: RecordedAnswer, model: str) -> Response:
    used = _usage(recorded)
    counts = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens, "total_tokens": used.total_tokens}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return Response(
        id=_response_id(recorded) or "recorded",
        created_at=time.time(),
        model=model,
        object="response",
        output=_items(recorded),
        status="completed",
        tool_choice="auto",
        tools=[],
        parallel_tool_calls=True,
        usage=ResponseUsage.model_validate({**counts, **details}),
    )


# --- tools -------------------------------------------------------------------------------------


class _Copies:
    """Makes a copy of an agent with other tools, and of every agent that it hands over to."""

    def __init__(self) -> None:
        self._copies: dict[int, tuple[Agent[Any], Agent[Any]]] = {}
        """By the id of the original, which is kept with it, so that no other object gets that id."""

    def __call__(self, agent: Agent[Any]) -> Agent[Any]:
        if id(agent) not in self._copies:
            made = self._copy(agent)
            self._copies[id(agent)] = agent, made  # before the handoffs, which may lead back here
            made.handoffs = [self._handed_over(each) for each in agent.handoffs]
        return self._copies[id(agent)][1]

    def _copy(self, agent: Agent[Any]) -> Agent[Any]:
        raise NotImplementedError

    def _handed_over(self, handoff: Agent[Any] | Handoff[Any, Any]) -> Any:
        if isinstance(handoff, Agent):
            return self(handoff)

        async def invoke(*arguments: Any) -> Any:
            return self(await handoff.on_invoke_handoff(*arguments))

        made = copy.copy(handoff)
        made.on_invoke_handoff = invoke
        target = _target_of(handoff)
        if target is not None:  # by which a state that is read again finds its agents
            made._agent_ref = weakref.ref(self(target))
        return made


def _target_of(handoff: Handoff[Any, Any]) -> Agent[Any] | None:
    """Known of what the SDK's `handoff` made."""
    target = getattr(handoff, "_agent_ref", None)
    agent = None if target is None else target()
    return agent if isinstance(agent, Agent) else None


class FrozenTools(_Copies):
    """Makes a copy of an agent whose tools give recorded answers: `Runner.run_sync(frozen_tools(run)(agent), …)`.

    Agents that it hands over to are copied as well. Tools of MCP servers are those of the recording; the servers are
    not asked. Raises `ValueError` for an agent with a tool that cannot be frozen.
    """

    def __init__(self, recording: Recording, on_difference: OnDifference = "stop", stops: Stops | None = None) -> None:
        super().__init__()
        self._recording = recording
        self._stops = stops or Stops()
        self.book = CallBook(recording.calls, on_difference)

    @property
    def notes(self) -> list[AnotherRequest]:
        """Calls that were not the recorded ones and were given the recorded answer all the same."""
        return self.book.notes

    def _copy(self, agent: Agent[Any]) -> Agent[Any]:
        tools = [self._frozen(tool) for tool in agent.tools]
        made = agent.clone(tools=tools, mcp_servers=[])
        if agent.mcp_servers:
            made.tools = [*self._recorded_tools(made), *tools]
        return made

    def _frozen(self, tool: Any) -> Any:
        if isinstance(tool, _ANSWERED_BY_PROVIDER):
            return tool
        if not isinstance(tool, FunctionTool):
            raise ValueError(f"{type(tool).__name__} {tool.name!r} cannot be kept from running; leave it out.")
        frozen = copy.copy(tool)
        frozen.on_invoke_tool = self._answering(frozen)
        return frozen

    def _answering(self, tool: FunctionTool) -> Callable[[Any, str], Awaitable[Any]]:
        async def invoke(context: Any, sent: str) -> Any:
            self._stops.before_call(tool.name, context.tool_call_id, _named(sent))
            try:
                call = await self.book.answer(tool.name, context.tool_call_id, sent)
            except RequestDiffers as found:
                raise _Differs(found.step, found.path, found.recorded, found.now) from None
            except NoAnswerRecorded as found:
                raise _NoAnswer(str(found)) from None
            try:
                return _reenacted(call)
            except RecordedFailure as error:
                return await _told(tool, context, error, call)

        return invoke

    def _recorded_tools(self, agent: Agent[Any]) -> list[FunctionTool]:
        """Those that neither the agent nor its handoffs offer: they came from its MCP servers."""
        offered = {tool.name for tool in agent.tools}
        found: dict[str, Json] = {}
        for answer in self._recording.answers:
            for definition in (answer.parameters or {}).get("function_tools") or []:
                if definition["name"] not in offered and not definition["name"].startswith("transfer_to_"):
                    found.setdefault(definition["name"], definition)
        return [self._recorded_tool(definition) for definition in found.values()]

    def _recorded_tool(self, definition: Json) -> FunctionTool:
        async def nothing(context: Any, sent: str) -> Any:
            return None

        tool = FunctionTool(
            name=definition["name"],
            description=definition.get("description") or "",
            params_json_schema=definition.get("parameters_json_schema") or {},
            on_invoke_tool=nothing,
            strict_json_schema=False,
        )
        tool.strict_json_schema = bool(definition.get("strict"))
        tool.on_invoke_tool = self._answering(tool)
        return tool


def _named(sent: str) -> Json:
    read = read_arguments(sent)
    return read if isinstance(read, dict) else {"arguments": read}


def _reenacted(call: RecordedCall) -> Any:
    """Let the call end as it ended then."""
    error = call.error or {}
    if str(error.get("type")).endswith("TripwireTriggered"):
        raise _NoAnswer(f"Step {call.step}: a guardrail ended the run, and what {call.name} answered was not recorded.")
    if call.outcome in ("crashed", "failed") or (call.error is not None and not call.has_result):
        raise recorded_failure(error.get("cause") or call.error, f"{call.name} failed")
    if not call.has_result:
        raise _NoAnswer(f"Step {call.step}: what {call.name} answered was not recorded.")
    # Words are what the model was told; files and the like are made of what the tool gave.
    return call.result if isinstance(call.result, str) or call.returned is None else call.returned


async def _told(tool: FunctionTool, context: Any, error: Exception, call: RecordedCall) -> Any:
    """A failure in the words that the model is told it in; where it is told nothing, the run ends with it.

    The recorded error is none of the team's classes, so what their function makes of it says nothing: the words are
    the recorded ones.
    """
    import agents.tool

    tell = getattr(agents.tool, "maybe_invoke_function_tool_failure_error_function", None)
    if call.outcome != "failed" or tell is None:
        raise error
    words = await tell(function_tool=tool, context=context, error=error)
    if words is None:
        raise error
    return call.result if call.has_result else words


class RunningTools(_Copies):
    """Makes a copy of an agent whose tools run: the debugger stops in the ones that were named, and HTTP that they
    send is answered from the recording, where there is `http`."""

    def __init__(
        self, stops: Stops, http: ToolHttp | None = None, inner: Mapping[str, list[Recording]] | None = None
    ) -> None:
        """`inner` are the recordings of agents that ran inside of a tool, by the id of its call."""
        super().__init__()
        self._stops = stops
        self._http = http
        self._inner = inner or {}

    def _copy(self, agent: Agent[Any]) -> Agent[Any]:
        return agent.clone(tools=[self._running(tool) for tool in agent.tools])

    def _running(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool):
            return tool

        async def invoke(context: Any, sent: str) -> Any:
            self._stops.reached_call(tool.name, context.tool_call_id, _named(sent))
            inner = InnerRuns(tool.name, self._inner.get(context.tool_call_id, []))
            original = inner.within(self._invoked(tool, context.tool_call_id, sent))
            if self._http is None:
                return await original(context, sent)
            return await self._http.during(tool.name, context.tool_call_id, sent, lambda: original(context, sent))

        running = copy.copy(tool)
        running.on_invoke_tool = invoke
        return running

    def _invoked(self, tool: FunctionTool, call_id: str, sent: str) -> Callable[[Any, str], Awaitable[Any]]:
        """With a stop at the first line of its function; where that is not to be had, right before it."""
        if not self._stops.is_at_tool(tool.name, call_id):
            return tool.on_invoke_tool
        stopping = _with_function(tool.on_invoke_tool, self._stops.stopping_in)
        if stopping is None:
            self._stops.now(tool.name, _named(sent))
        return stopping or tool.on_invoke_tool


_inner_runs: ContextVar[InnerRuns | None] = ContextVar("inner_runs", default=None)
"""Those of the tool's call under way."""


class InnerRuns:
    """The agents that run inside of one call of a tool: each is given the recorded answers of its own run, in the order
    in which they begin, and each answer to the recorded request alone: what they are asked is compared nowhere else."""

    def __init__(self, tool: str, recordings: list[Recording]) -> None:
        self._tool = tool
        self._recordings = iter(recordings)
        self._models: list[ReplayModel] = []
        self._failure: Exception | None = None

    def within(self, original: Callable[[Any, str], Awaitable[Any]]) -> Callable[[Any, str], Awaitable[Any]]:
        async def invoke(context: Any, sent: str) -> Any:
            token = _inner_runs.set(self)
            try:
                answer = await original(context, sent)
            finally:
                _inner_runs.reset(token)
            self._check()
            return answer

        return invoke

    def answered(self, config: Any) -> Any:
        """The configuration of a run that begins, with a model that has its answers."""
        recording = next(self._recordings, None)
        if recording is None:
            self._failure = _NoAnswer(f"{self._tool} runs an agent, and the recording holds no run of one there.")
            raise self._failure
        config = RunConfig(**config) if isinstance(config, dict) else config or RunConfig()
        self._models.append(ReplayModel(recording, own=config.model))
        return dataclasses.replace(config, model=self._models[-1], tracing_disabled=True)

    def _check(self) -> None:
        """The tool may have put what went wrong into words of its own."""
        failed = self._failure or next((model.differed for model in self._models if model.differed), None)
        if failed is not None:
            raise failed
        left = sum(len(model.left_over) for model in self._models)
        left += sum(len(recording.answers) for recording in self._recordings)
        if left:
            raise _NoAnswer(f"{self._tool}: {left} recorded answers of the agents that it ran were not asked for.")


@contextmanager
def inner_runs_answered() -> Iterator[None]:
    """Runs that the tools of an agent begin ask the models that `InnerRuns` gives them."""
    originals = AgentRunner.run, AgentRunner.run_streamed
    AgentRunner.run, AgentRunner.run_streamed = map(_answering_inner, originals)  # type: ignore[method-assign]
    try:
        yield
    finally:
        AgentRunner.run, AgentRunner.run_streamed = originals  # type: ignore[method-assign]


def _answering_inner(original: Any) -> Any:
    """Of `run`, which gives an awaitable, and of `run_streamed`, which does not."""

    @functools.wraps(original)
    def begun(self: Any, starting_agent: Any, input: Any, **options: Any) -> Any:
        inner = _inner_runs.get()
        if inner is not None:
            options["run_config"] = inner.answered(options.get("run_config"))
        return original(self, starting_agent, input, **options)

    return begun


_FUNCTION = "the_func"
"""How the SDK names the function of a tool that `function_tool` made, inside of what invokes it."""


def _with_function(invoker: Any, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    """A copy of what invokes a tool, with another function in it; None for what `function_tool` did not make."""
    invoke = getattr(invoker, "_invoke_tool_impl", None)
    if not isinstance(invoke, FunctionType) or _FUNCTION not in invoke.__code__.co_freevars:
        return None
    cells = dict(zip(invoke.__code__.co_freevars, invoke.__closure__ or (), strict=True))
    cells[_FUNCTION] = CellType(change(cells[_FUNCTION].cell_contents))
    made = copy.copy(invoker)
    made._invoke_tool_impl = FunctionType(invoke.__code__, invoke.__globals__, closure=tuple(cells.values()))
    return made


# --- how the run began -------------------------------------------------------------------------


def recorded_start(recording: Recording) -> tuple[Any, Json]:
    """The input, and the further arguments with which the recorded run was started."""
    record = recording.record
    kept = _kept_by_provider(record)
    if isinstance(record.get("input_items"), list):
        return record["input_items"], kept
    asked = recording.input
    new = [{"role": "user", "content": asked}] if isinstance(asked, str) else list(asked or [])
    return ([*rows_of_messages(recording.prior), *new] if recording.prior else asked), kept


def _kept_by_provider(record: Json) -> Json:
    """What the run went on from, and whether each of its requests went on from the answer before."""
    given = {key: record[key] for key in ("previous_response_id", "conversation_id") if record.get(key)}
    began_with = record.get("previous_response_id")
    went_on = {step.get("previous_response_id") for step in record.get("steps") or []} - {None, began_with}
    return {**given, "auto_previous_response_id": True} if went_on else given
