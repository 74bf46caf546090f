"""Records runs of Pydantic AI agents (2.62 and later): `install()` does it for every agent, `RecordRuns` for one.

The capability sits outermost in the loop and sees what no list of messages keeps: the history and the parameters
of each request as they were, what each tool was given and gave back and when, and runs that crashed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import SkipModelRequest, SkipToolExecution, SkipToolValidation
from pydantic_ai.models import Model
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.result import StreamedRunResult
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset

from replay_recorder.context import current_place, placed_from_now
from replay_recorder.guard import guard
from replay_recorder.hooks.pydantic_ai_given import code_between
from replay_recorder.hooks.pydantic_ai_run import RunLog, function_called, stream_handed_over
from replay_recorder.recorder import active

# Entered at every step, and made once.
_MODEL_ASKED, _MODEL_ANSWERED = guard("model_asked"), guard("model_answered")
_MODEL_GAVE = guard("model_gave")
_TOOL_CALLED, _TOOL_STARTED, _TOOL_ANSWERED = guard("tool_called"), guard("tool_started"), guard("tool_answered")
_TOOL_REACHED, _FUNCTION_CALLED = guard("tool_reached"), guard("function_called")
_OUTPUT_PROCESSED = guard("output_processed")
ENTRY_POINTS = frozenset({"run", "run_sync", "run_stream", "run_stream_sync", "run_stream_events", "iter"})


def patch(module: ModuleType) -> None:
    """Add `RecordRuns` to every run of every agent: all ways to start one go through `Agent.iter`."""
    _follow_streams()
    _follow_functions()
    original = module.Agent.iter
    if hasattr(original, "replay_recorder"):
        return

    @functools.wraps(original)
    def iter(self: Any, *arguments: Any, **named: Any) -> Any:
        with guard("iter"):
            if active() is not None:
                recording = RecordRuns(
                    entry_point=_entry_point(sys._getframe(1)), given=named.get("deferred_tool_results")
                )
                named = {**named, "capabilities": [*(named.get("capabilities") or ()), recording]}
        return original(self, *arguments, **named)

    iter.replay_recorder = True  # type: ignore[attr-defined]
    module.Agent.iter = iter


def _follow_streams() -> None:
    """Hear of each `StreamedRunResult`: it alone knows what the tools beside a streamed final answer gave."""
    original = StreamedRunResult.__init__
    if hasattr(original, "replay_recorder"):
        return

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        with guard("stream_handed_over"):
            stream_handed_over(self)

    init.replay_recorder = True  # type: ignore[attr-defined]
    StreamedRunResult.__init__ = init  # type: ignore[method-assign]


def _follow_functions() -> None:
    """Hear what a tool's function is given behind toolsets of the team's own, which may hand on something else."""
    original = FunctionToolset.call_tool
    if hasattr(original, "replay_recorder"):
        return

    @functools.wraps(original)
    async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        with _FUNCTION_CALLED:
            function_called(ctx, tool_args)
        return await original(self, name, tool_args, ctx, tool)

    call_tool.replay_recorder = True  # type: ignore[attr-defined]
    FunctionToolset.call_tool = call_tool  # type: ignore[method-assign]


def _entry_point(frame: FrameType | None) -> str | None:
    """The method of the library that the team called; streaming with `run_stream` follows rules of its own."""
    for _ in range(6):
        if frame is None or "pydantic_ai" not in frame.f_code.co_filename:
            return "iter"
        if frame.f_code.co_name in ENTRY_POINTS and frame.f_code.co_name != "iter":
            return frame.f_code.co_name
        frame = frame.f_back
    return None


class RecordRuns(AbstractCapability[Any]):
    """Records the runs of the agent that has it: `Agent(…, capabilities=[RecordRuns()])`.

    Needs an installed recorder; without one it does nothing.
    """

    def __init__(self, *, entry_point: str | None = None, given: DeferredToolResults | None = None) -> None:
        """`given` is what somebody outside gave and decided for the calls that the run is resumed with."""
        self._entry_point = entry_point
        self._given = given
        self._log: RunLog | None = None
        self._model: HeardModel | None = None

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(position="outermost")

    async def for_run(self, ctx: Any) -> RecordRuns:
        """A fresh one for each run: it holds what is open in that run."""
        return RecordRuns(entry_point=self._entry_point, given=self._given)

    def get_wrapper_model(self, model: Model[Any]) -> Model[Any] | None:
        """One for all requests to a model: what surrounds them is encoded again for another model."""
        if self._log is None:
            return None
        if self._model is None or self._model.wrapped is not model:
            self._model = HeardModel(model, self._log)
        return self._model

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any] | None:
        return HeardTools(toolset, self._tool_reached)

    def _tool_reached(self, ctx: Any, given: dict[str, Any], behind: tuple[str, ...]) -> None:
        if self._log is not None:
            self._log.calls.reached(ctx.tool_call_id, given, behind)

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        # Not in `for_run`: a run that is never begun, as another capability fails, would be open for good.
        with guard("open"):
            self._log = RunLog.open(ctx, entry_point=self._entry_point, parent=current_place())
        if self._log is None:
            return await handler()
        with guard("run_began"):
            self._log.run_began(ctx, self._given or DeferredToolResults())
        try:
            result = await handler()
        except BaseException as error:
            with guard("run_failed"):
                self._log.run_failed(error)
            raise
        with guard("run_ended"):
            self._log.run_ended(result)
        return result

    async def wrap_model_request(self, ctx: Any, *, request_context: Any, handler: Any) -> Any:
        if self._log is None:
            return await handler(request_context)
        place, response, failure = None, None, None
        with _MODEL_ASKED:
            self._log.model_asked(ctx, request_context)
            place = self._log.place
        try:
            with placed_from_now(place):
                response = await handler(request_context)
        except SkipModelRequest:
            raise  # a hook answers; what the model would have said is not known
        except BaseException as error:
            failure = error
            raise
        finally:
            # Only now: the hooks before the request run inside the handler and may change it.
            with _MODEL_ANSWERED:
                self._log.model_answered(ctx, request_context, response, failure)
        return response

    async def wrap_tool_validate(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        if self._log is None:
            return await handler(args)
        with _TOOL_CALLED:
            self._log.tool_called(ctx, call)
        try:
            return await handler(args)
        except SkipToolValidation:
            raise  # a hook has its own arguments for the tool
        except BaseException as error:
            with guard("tool_failed"):
                self._log.tool_failed(ctx, call, error)
            raise

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        if self._log is None:
            return await handler(args)
        place = None
        with _TOOL_STARTED:
            self._log.tool_started(ctx, call)
            place = self._log.place_of(call)
        try:
            with placed_from_now(place):
                result = await handler(args)
        except SkipToolExecution as skipped:
            # A hook of the team's, or a replay, answers in the tool's place.
            with _TOOL_ANSWERED:
                self._log.tool_answered(ctx, call, skipped.result)
            raise
        except BaseException as error:
            with guard("tool_failed"):
                self._log.tool_failed(ctx, call, error)
            raise
        with _TOOL_ANSWERED:
            self._log.tool_answered(ctx, call, result)
        return result

    def note(self, fields: dict[str, Any]) -> None:
        """What a replay says of the run that it observes."""
        if self._log is not None:
            self._log.run.put(**fields)

    async def wrap_output_process(self, ctx: Any, *, output_context: Any, output: Any, handler: Any) -> Any:
        place = None
        if self._log is not None:
            with _OUTPUT_PROCESSED:
                self._log.output_processed(ctx, output_context)
                place = self._log.place_of_output(ctx, output_context)
        try:
            with placed_from_now(place):
                processed = await handler(output)
        finally:
            if self._log is not None and place is not None:
                self._log.output_made(place)
        if self._log is not None and isinstance(output, str) and not output_context.has_function:
            with guard("text_changed"):
                self._log.text_processed(output, processed)
        return processed


@dataclass
class HeardTools(WrapperToolset[Any]):
    """Hears of each call that comes through the checks and hooks in front of its tool."""

    on_call: Callable[[Any, dict[str, Any], tuple[str, ...]], None]
    """Told the context, the arguments, and the team's own code that stands between here and the tool."""

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        with _TOOL_REACHED:
            self.on_call(ctx, tool_args, tuple(code_between(self.wrapped, tool)))
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)


class HeardModel(WrapperModel):
    """Hears what the model gives before any hook does, and when a streamed answer began."""

    def __init__(self, wrapped: Model[Any], log: RunLog) -> None:
        super().__init__(wrapped)
        self._log = log

    async def request(self, *arguments: Any, **named: Any) -> Any:
        response = await self.wrapped.request(*arguments, **named)
        with _MODEL_GAVE:
            self._log.model_gave(response)
        return response

    @asynccontextmanager
    async def request_stream(self, *arguments: Any, **named: Any) -> Any:
        """The stream is opened in another task than the hooks run in."""
        place = None
        with guard("request_stream"):
            place = self._log.place
        with placed_from_now(place):
            async with self.wrapped.request_stream(*arguments, **named) as stream:
                self._log.stream = stream
                yield stream
        with _MODEL_GAVE:
            self._log.model_gave(stream.get())
