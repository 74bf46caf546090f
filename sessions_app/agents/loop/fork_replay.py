"""The fork: Pydantic AI's real loop goes on from a recorded step with something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolRetryError
from pydantic_ai.messages import ModelMessage, ModelRequest, SystemPromptPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.fork_stage import ForkStage
from sessions_app.agents.loop.frozen_tools import RawArguments, said_in
from sessions_app.agents.loop.library import load_messages, load_response
from sessions_app.agents.loop.observer import Observer, as_refused
from sessions_app.agents.loop.reaching_stage import OtherPast, ReachingStage
from sessions_app.agents.loop.rebuild import Start, rebuild_agent, recorded_start
from sessions_app.agents.loop.recording_replay import (
    Progress,
    Ticker,
    observations_of,
    observer_of,
    played_by_rebuilt,
    replay_model,
    requests_at_the_end,
    run_loop,
    unreadable,
)
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.stage import Stage, text_of
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.fork.answering import Answering, Elsewhere, LiveModelFailed
from sessions_app.core.fork.conclude import conclude_fork
from sessions_app.core.fork.order import Course, Order
from sessions_app.core.fork.plan import CannotFork, ForkPlan, plan_fork
from sessions_app.core.fork.state import ForkState
from sessions_app.core.fork.stops import Stops
from sessions_app.core.history import messages as messages_of
from sessions_app.core.history import nodes
from sessions_app.core.payload import Payload
from sessions_app.core.replay.fixture_book import FixtureBook, recorded_arguments
from sessions_app.core.replay.observed import Result
from sessions_app.core.replay.played import Ending
from sessions_app.core.run import Run


class ForkObserver(Observer):
    """Lets happen again what only the framework can do, as long as everything is as it was recorded."""

    fork: ForkPlan
    before: Sequence[ModelMessage] | None = None
    """The messages with which it begins where the loop does not come there by itself, or not with these: they are sent
    as they stand, also where the library would repair them. Behind those that end with an answer the loop adds what
    the calls came to."""
    has_past = False
    """Whether the loop comes through the recording to where the fork begins."""
    _stage: ForkStage | ReachingStage

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self._has_begun and not self._transcript.requests and self.before is not None:
            added = ctx.messages[-1:] if self.fork.begins_with_calls else []
            ctx.messages[:] = request_context.messages[:] = [*self.before, *added]
            if self.has_past:
                self._transcript.check_anew()
        context = await super().before_model_request(ctx, request_context)
        for messages in (ctx.messages, context.messages):
            self._instruct(messages)
        return context

    @property
    def _has_begun(self) -> bool:
        return not isinstance(self._stage, ReachingStage) or self._stage.has_begun

    def _instruct(self, messages: list[ModelMessage]) -> None:
        prompt = self.fork.instructions
        if prompt is None or not prompt.is_system_prompt or self._model.cursor < prompt.since:
            return
        place = next((at for at, message in enumerate(messages) if _system_prompts(message)), None)
        if place is not None and _system_prompts(messages[place]) != [prompt.text]:
            messages[place] = _with_system_prompt(messages[place], prompt.text)
            self._transcript.check_anew()

    async def wrap_tool_validate(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Arguments that were refused then are not, where somebody says what the call is answered."""
        said = said_in(call.args)
        if not self._stage.is_by_hand(call.tool_name, call.tool_call_id, recorded_arguments(Payload.of(call.args))):
            return await super().wrap_tool_validate(ctx, call=call, tool_def=tool_def, args=args, handler=handler)
        return said if isinstance(said, dict) else RawArguments(said)

    def _retry_as_recorded(self, output_context: Any) -> None:
        """What the check of the recorded run refused, it refuses again, whoever gives it."""
        call = getattr(output_context, "tool_call", None)
        if self._is_as_recorded or (call is None and self._says_the_same):
            super()._retry_as_recorded(output_context)
        elif call is not None:
            self._refuse_alike(call)

    def _refuse_alike(self, call: ToolCallPart) -> None:
        refused = self._book.refused_alike(call.tool_name, Payload.of(call.args or {}).canonical)
        if refused is not None:
            told = ToolReturnPart(call.tool_name, "", call.tool_call_id, outcome="retried")
            raise ToolRetryError(as_refused(told, refused))

    @property
    def _says_the_same(self) -> bool:
        """Whether the newest answer has the words of the recorded one in its place."""
        given = self._transcript.requests[-1].response if self._transcript.requests else None
        then = self._model.newest.response
        return given is not None and then is not None and text_of(given.value) == text_of(then.value)

    def _is_rewritten(self, planned: Any) -> bool:
        goes_on = self.has_past or self.fork.begins_with_calls or bool(self._transcript.requests)
        return self._is_as_recorded and goes_on and super()._is_rewritten(planned)

    @property
    def _is_as_recorded(self) -> bool:
        requests = self._transcript.requests
        return self._transcript.divergence is None and all(each.source == "recorded" for each in requests)


@cache
def _of_fork(observer: type[Observer]) -> type[ForkObserver]:
    """What the loop of the recorded run does otherwise than Pydantic AI's, it does in its forks as well."""
    return type(f"Fork{observer.__name__}", (ForkObserver, observer), {})


async def replay_fork(
    run: Run,
    run_id: str,
    order: Order,
    course: Course,
    *,
    elsewhere: Elsewhere,
    on_progress: Progress,
    clock: PinnedClock,
) -> tuple[Result, Run | None]:
    """Fork a run with the world off. The second value is the run that the fork made, as far as it came."""
    try:
        forking = _Forking(plan_fork(run, order), run_id, order, course, elsewhere, on_progress, clock)
        return await forking.fork()
    except ValidationError as error:
        return Result(verdict="could_not_run", error=unreadable(error)), None
    except (CannotFork, LiveModelFailed) as error:
        return Result(verdict="could_not_run", error=str(error)), None


@dataclass(frozen=True, slots=True)
class _Forking:
    plan: ForkPlan
    run_id: str
    order: Order
    course: Course
    elsewhere: Elsewhere
    on_progress: Progress
    clock: PinnedClock

    async def fork(self) -> tuple[Result, Run]:
        """The loop comes to the fork's step through the recording, as far as that leads there; else it begins there,
        with the messages that there were."""
        if self.plan.kept > 0 and not self.plan.lint:
            try:
                return await self._through_the_past()
            except OtherPast:
                pass
        return await self._from_there()

    async def _through_the_past(self) -> tuple[Result, Run]:
        replay, transcript = self.plan.replay, Transcript()
        book = FixtureBook(replay.fixtures, replay.asked, replay.refused_outputs, replay.denied)
        state = ForkState(self.plan.run, self.order, self.plan.kept)
        fork = self._stage(transcript, book, state)
        stage = ReachingStage(self.plan, fork, transcript, book)
        model = replay_model(replay, stage, name=self.plan.model)
        observer = self._observer(model, stage, transcript, book)
        observer.has_past = True
        if not self.plan.is_unedited:
            observer.before = load_messages(messages_of(self.plan.history))
        start = replace(recorded_start(replay), instructions=self.plan.instructions)
        ending, messages = await run_loop(rebuild_agent(replay, model, stage, observer, start), start, self.plan.run)
        stage.reach(asks=False)
        if not stage.has_begun:
            raise OtherPast
        return self._concluded(fork, transcript, state, ending, messages)

    async def _from_there(self) -> tuple[Result, Run]:
        replay, transcript = self.plan.replay, Transcript()
        fixtures = tuple(f for f in replay.fixtures if f.step > self.plan.kept)
        book = FixtureBook(fixtures, replay.asked, replay.refused_behind(self.plan.kept), replay.denied)
        state = ForkState(self.plan.run, self.order, self.plan.kept)
        stage = self._stage(transcript, book, state)
        model = replay_model(replay, stage, cursor=self.plan.cursor, name=self.plan.model)
        observer = self._observer(model, stage, transcript, book)
        start = start_of_fork(self.plan, transcript)
        if self.plan.is_unedited and self.plan.cursor > 0:
            observer.before = start.history
        ending, messages = await run_loop(rebuild_agent(replay, model, stage, observer, start), start, self.plan.run)
        if observer.before and not transcript.requests:
            messages = [*observer.before, *requests_at_the_end(messages)]
        return self._concluded(stage, transcript, state, ending, messages)

    def _stage(self, transcript: Transcript, book: FixtureBook, state: ForkState) -> ForkStage:
        return ForkStage(
            self.plan,
            self.order,
            answering=Answering(self.order, self.course, book, self.elsewhere),
            transcript=transcript,
            stops=Stops(self.order.breakpoints, self.course),
            state=state,
            clock=self.clock,
            on_progress=Ticker(len(self.plan.run.steps) - self.plan.kept, self.on_progress).step,
        )

    def _observer(self, model: ReplayModel, stage: Stage, transcript: Transcript, book: FixtureBook) -> ForkObserver:
        observer = _of_fork(observer_of(self.plan.run))(self.plan.replay, model, stage, transcript, book)
        observer.fork = self.plan
        return observer

    def _concluded(
        self, stage: ForkStage, transcript: Transcript, state: ForkState, ending: Ending, messages: list[ModelMessage]
    ) -> tuple[Result, Run]:
        if ending.miss is not None:
            ending = Ending(stopped=stage.stop_within(ending.miss.call_id))
        seen = observations_of(transcript, transcript.end(None, messages, step=0), ending)
        played = played_by_rebuilt(self.plan.replay, transcript, seen, ending)
        result, made = conclude_fork(self.plan, self.order, played, state, run_id=self.run_id)
        return replace(result, facts={**result.facts, "clock": self.clock.told}), made


def start_of_fork(plan: ForkPlan, transcript: Transcript) -> Start:
    """From the run's own beginning as it was started, from any later step with the history up to there."""
    if plan.cursor == 0 and plan.is_unedited:
        return replace(recorded_start(plan.replay), instructions=plan.instructions)
    loaded = load_messages(messages_of(plan.history))
    transcript.tally.counts_anew = True
    transcript.begin(loaded, plan.history, checked=_as_recorded(plan))
    return Start(prompt=None, history=loaded, deferred=None, instructions=plan.instructions, usage=_used_before(plan))


def _used_before(plan: ForkPlan) -> RunUsage:
    """As limits count it."""
    usage = RunUsage()
    for answer in plan.replay.answers[: plan.cursor]:
        usage.requests += 1
        if answer.response is not None:
            usage.incr(load_response(answer.response).usage)
    kept = (fixture for fixture in plan.replay.fixtures if fixture.step <= plan.kept)
    usage.tool_calls = sum(fixture.call.outcome in (None, "success") for fixture in kept)
    return usage


def _as_recorded(plan: ForkPlan) -> Any:
    """The longest beginning that the edited history has in common with the recorded one."""
    recorded = {node.digest for node in nodes(plan.recorded)}
    return next((node for node in nodes(plan.history) if node.digest in recorded), None)


# --- system prompts ----------------------------------------------------------------------------


def _system_prompts(message: ModelMessage) -> list[str]:
    parts = message.parts if isinstance(message, ModelRequest) else ()
    return [part.content for part in parts if isinstance(part, SystemPromptPart)]


def _with_system_prompt(message: ModelMessage, text: str) -> ModelMessage:
    """One in place of all that there are."""
    request = cast(ModelRequest, message)
    others = [part for part in request.parts if not isinstance(part, SystemPromptPart)]
    return replace(request, parts=[SystemPromptPart(text), *others])
