"""The fork: Pydantic AI's real loop goes on from a recorded step with something changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.output import StructuredOutputMode
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RunUsage

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.fork_stage import ForkStage
from sessions_app.agents.loop.frozen_tools import RawArguments, said_in
from sessions_app.agents.loop.library import load_messages, load_response
from sessions_app.agents.loop.observer import Observer
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

    output_mode: StructuredOutputMode | None = None
    """What the first request of the run made of the output mode `auto`, where the fork begins behind it."""
    begins_with_calls = False
    """Whether the fork begins with the calls of an answer and nothing before them is edited: its first request may tell
    of another past, as the recorded one did."""
    before: Sequence[ModelMessage] = ()
    """The messages with which it begins: as they were sent, also where the library would repair them. Behind those that
    end with an answer the loop adds what the calls came to."""
    _stage: ForkStage

    async def before_model_request(
        self, ctx: RunContext[None], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self.before and not self._transcript.requests:
            added = ctx.messages[-1:] if self.begins_with_calls else []
            ctx.messages[:] = request_context.messages[:] = [*self.before, *added]
        context = await super().before_model_request(ctx, request_context)
        if self.output_mode is not None:
            parameters = context.model_request_parameters
            context.model_request_parameters = parameters.with_default_output_mode(self.output_mode)
        return context

    async def wrap_tool_validate(
        self, ctx: RunContext[None], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Arguments that were refused then are not, where somebody says what the call is answered."""
        said = said_in(call.args)
        if not self._stage.is_by_hand(call.tool_name, call.tool_call_id, recorded_arguments(Payload.of(call.args))):
            return await super().wrap_tool_validate(ctx, call=call, tool_def=tool_def, args=args, handler=handler)
        return said if isinstance(said, dict) else RawArguments(said)

    def _retry_as_recorded(self, output_context: Any) -> None:
        if self._is_as_recorded:
            super()._retry_as_recorded(output_context)

    def _is_rewritten(self, planned: Any) -> bool:
        goes_on = self.begins_with_calls or bool(self._transcript.requests)
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
        plan = plan_fork(run, order)
        return await _fork(plan, run_id, order, course, elsewhere, on_progress, clock)
    except ValidationError as error:
        return Result(verdict="could_not_run", error=unreadable(error)), None
    except (CannotFork, LiveModelFailed) as error:
        return Result(verdict="could_not_run", error=str(error)), None


async def _fork(
    plan: ForkPlan,
    run_id: str,
    order: Order,
    course: Course,
    elsewhere: Elsewhere,
    on_progress: Progress,
    clock: PinnedClock,
) -> tuple[Result, Run]:
    transcript = Transcript()
    fixtures = tuple(f for f in plan.replay.fixtures if f.step > plan.kept)
    book = FixtureBook(fixtures, plan.replay.asked, plan.replay.refused_behind(plan.kept), plan.replay.denied)
    stops, state = Stops(order.breakpoints, course), ForkState(plan.run, order, plan.kept)
    stage = ForkStage(
        plan,
        order,
        answering=Answering(order, course, book, elsewhere),
        transcript=transcript,
        stops=stops,
        state=state,
        clock=clock,
        on_progress=Ticker(len(plan.run.steps) - plan.kept, on_progress).step,
    )
    model = replay_model(plan.replay, stage, cursor=plan.cursor, name=plan.model)
    observer = _of_fork(observer_of(plan.run))(plan.replay, model, stage, transcript, book)
    observer.output_mode = _kept_output_mode(plan)
    observer.begins_with_calls = plan.begins_with_calls
    start = start_of_fork(plan, transcript)
    is_behind = plan.is_unedited and plan.cursor > 0
    observer.before = start.history if is_behind else ()
    ending, messages = await run_loop(rebuild_agent(plan.replay, model, stage, observer, start), start, plan.run)
    if ending.miss is not None:
        ending = Ending(stopped=stage.stop_within(ending.miss.call_id))
    if observer.before and not transcript.requests:
        messages = [*observer.before, *requests_at_the_end(messages)]
    final = transcript.end(None, messages, step=0)
    seen = observations_of(transcript, final, ending)
    played = played_by_rebuilt(plan.replay, transcript, seen, ending)
    result, made = conclude_fork(plan, order, played, state, run_id=run_id)
    return replace(result, facts={**result.facts, "clock": clock.told}), made


def _kept_output_mode(plan: ForkPlan) -> StructuredOutputMode | None:
    """The library decides it once for each run."""
    answers = plan.replay.answers
    told: Any = answers[min(plan.cursor, len(answers) - 1)].asked_with.get("output_mode") if plan.cursor else None
    return told if told in ("tool", "native", "prompted") else None


def start_of_fork(plan: ForkPlan, transcript: Transcript) -> Start:
    """From the run's own beginning as it was started, from any later step with the history up to there."""
    if plan.cursor == 0 and plan.is_unedited and plan.instructions is None:
        return recorded_start(plan.replay)
    loaded = load_messages(messages_of(plan.history))
    transcript.tally.counts_anew = True
    transcript.begin(loaded, plan.history, checked=_as_recorded(plan))
    return Start(
        prompt=None,
        history=loaded,
        deferred=None,
        instructions=plan.instructions,
        usage=_used_before(plan),
    )


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
