"""The code replay: the team's own agent of today with the recorded answers, its tools frozen or run."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError
from pydantic_ai.messages import ModelMessage, ToolCallPart
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.tools import DeferredToolRequests, RunContext, ToolApproved

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.library import dump_output, load_messages, load_prompt
from sessions_app.agents.loop.observer import Observer
from sessions_app.agents.loop.rebuild import Start, decided_before, recorded_start
from sessions_app.agents.loop.recording_replay import (
    Progress,
    Ticker,
    expected_end,
    observations_of,
    readable,
    replay_model,
    run_loop,
    unreadable_from,
)
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.sub_agents import Misses, every_run_frozen
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.agents.own_code.calls import OwnCalls
from sessions_app.agents.own_code.frozen_leaves import Leaves
from sessions_app.agents.own_code.gate import Ask, Gate, ToolCannotRun, plain
from sessions_app.agents.own_code.live_tools import outcome_of, question_of
from sessions_app.agents.own_code.outputs import OwnOutputs
from sessions_app.agents.own_code.policy import FrozenPolicy
from sessions_app.agents.own_code.recorded_http import RecordedHttp
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.agents.own_code.stage import OwnStage
from sessions_app.agents.own_code.state import NoStateToBeginWith, OwnState
from sessions_app.agents.own_code.turns import Turns
from sessions_app.core.fork.order import Order
from sessions_app.core.fork.stops import Stops
from sessions_app.core.history import messages
from sessions_app.core.judge.outcome import MESSAGE_FROM_CODE
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.verdict import judge_code
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import APPROVED, is_told
from sessions_app.core.replay.budgets import Budgets
from sessions_app.core.replay.ending import cannot_begin, conclude_code
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.observed import Observations, Result
from sessions_app.core.replay.plan import ReplayPlan, make_plan
from sessions_app.core.replay.played import Ending, Played
from sessions_app.core.replay.raw_answers import not_raw, with_raw_answers
from sessions_app.core.replay.rewriting import was_rewritten_in_place
from sessions_app.core.run import SPANS, Run


async def replay_with_own_agent(
    run: Run,
    own: OwnAgent,
    *,
    order: Order,
    ask: Ask,
    on_progress: Progress,
    clock: PinnedClock,
    stops: Stops | None = None,
) -> Result:
    """Nothing is made up: where today's code leads elsewhere, the replay ends with what is known, or plays on with
    answers that say for what they were recorded."""
    judged = judge_code(run, runs_tools=order.tools.run)
    if judged.verdict == "cold":
        return cannot_begin(judged)
    try:
        replay = OwnReplay(make_plan(readable(run, judged)), own, order, ask, on_progress, clock, stops or Stops())
        return await replay.run(judged.reasons)
    except ValidationError as error:
        return unreadable_from(judged, error)
    except (ToolCannotRun, NoStateToBeginWith) as refusal:
        return Result(verdict="could_not_run", error=str(refusal))


class OwnReplay:
    """The parts of one replay, put together."""

    stage_type: type[OwnStage] = OwnStage

    def __init__(
        self,
        plan: ReplayPlan,
        own: OwnAgent,
        order: Order,
        ask: Ask,
        on_progress: Progress,
        clock: PinnedClock,
        stops: Stops,
    ) -> None:
        ticker, reached = Ticker(plan.total, on_progress), set[int]()

        def on_step(step: int) -> None:
            clock.move_to(plan.run.steps[step - 1].started_at)
            if step not in reached:  # a tool that began may still give its recorded answer
                reached.add(step)
                ticker.step()

        self.plan, self.own, self.clock = plan, own, clock
        self.transcript = Transcript(plan.run, watches_changes=_holds_what_was_sent(plan.run), is_of_code=True)
        self.book = FixtureBook(plan.fixtures, plan.asked, plan.refused_outputs, plan.held_back)
        self.stage = self.stage_type(self.transcript, self.book, stops, on_step, order.on_difference)
        raw = with_raw_answers(plan)
        self.model = replay_model(raw, self.stage, name=own.model_id or "", settings=own.model_settings)
        self.http = RecordedHttp(plan.run, self.book)
        self.gate = Gate(
            order.tools,
            plan.fixtures,
            decided_before(plan),
            around=self.http.during,
            by_hand=self.stage.is_by_hand,
            on_run=self.stage.runs,
        )
        self.ask = ask
        self.state = OwnState(own, self._first_state(), has_run_tools=order.tools.run)
        self.transcript.taken = self.state.taken
        self.transcript.heard = self.gate.given_now
        self.calls = OwnCalls(self.transcript, self.stage, self.book, self.gate, self.http, plan.run)

    def _first_state(self) -> JsonValue:
        recorded = self.plan.run.initial_state
        return None if recorded is None else recorded.value

    async def run(self, limits: Sequence[Reason]) -> Result:
        start = as_approved(_as_asked(recorded_start(self.plan), self.plan.run), self.plan)
        with every_run_frozen() as misses:
            self.calls.ran_agent = misses.has_begun_in
            ending, messages = await self.loop(start, misses)
        if ending.error is not None and not self.transcript.requests:
            words = f"{ending.error.type}: {ending.error.message}"
            return Result(verdict="could_not_run", error=words, facts=self.facts())  # it never came to a request
        unused, left_over = self.plan.answers[self.model.cursor :], self.book.left_over
        limit = next((each for each in limits if each.code != MESSAGE_FROM_CODE), None)
        expected = None if unused or left_over else expected_end(self.plan, limit, ending)
        final = self.transcript.end(expected, messages, step=self._last_step())
        seen = self._observed(observations_of(self.transcript, final, ending))
        if ending.stopped is not None:
            stopped = ending.stopped.to_json()
            return Result(
                verdict="paused", facts={**self.facts(), "sources": self._sources()}, observations=seen, stopped=stopped
            )
        played = replace(self._played(seen, ending), unused=unused, left_over=left_over)
        result = conclude_code(played, limits, self.facts(), doubtful=self._doubtful())
        return replace(result, facts={**result.facts, "sources": self._sources()})

    def _observed(self, seen: Observations) -> Observations:
        return replace(
            seen,
            hears_arguments=True,
            states=self.state.states,
            first_state=self.state.first,
            hooks_not_run=tuple(sorted(self.calls.hooks_not_run)),
            has_run_tools=self.gate.policy.run,
        )

    def _played(self, seen: Observations, ending: Ending) -> Played:
        return Played(
            plan=self.plan,
            observations=seen,
            ending=ending,
            divergence=self.stage.divergence,
            not_captured=frozenset(self.transcript.tally.not_captured or ()),
            has_taken_feedback=self.transcript.has_taken_feedback,
        )

    def _doubtful(self) -> Reason | None:
        changed = self.stage.changed_answer
        return None if changed is None else not_raw(self.plan.run, changed)

    async def loop(self, start: Start, misses: Misses) -> tuple[Ending, list[Any]]:
        policy = self._policy()
        agent = PreparedAgent(self.own, self.state.deps, self.model, policy)
        try:
            with self.http.in_the_clients() if self.gate.policy.run else nullcontext():
                ending, messages = await run_loop(agent, start, self.plan.run)
        except BaseExceptionGroup:
            if not misses:
                raise
            ending, messages = Ending(), []
        if misses and ending.is_regular:
            ending = Ending(miss=misses[0].miss)  # the team's code swallowed what should have ended the run
        if ending.output is not None and policy.output is not None:
            ending = replace(ending, output=Payload.of(dump_output(_plain_output(policy.output))))
        return ending, messages

    def _policy(self) -> FrozenPolicy:
        observer = Observer(self.plan, self.model, self.stage, self.transcript, self.book)
        outputs = OwnOutputs(self.plan.run, observer, self.stage, self.model, self.http)
        leaves = Leaves(self.model, Budgets(self.plan.run), self.gate, self._run_live)
        return FrozenPolicy(
            self.model,
            self.stage,
            self.gate,
            leaves,
            self.calls,
            outputs,
            Turns(self.book),
            self.plan.decisions,
            is_of_spans=self.plan.run.source_format == SPANS,
        )

    def _run_live(
        self, call: ToolCallPart, name: str, toolset: str | None, arguments: Any, ctx: RunContext[Any]
    ) -> Any:
        """This process has no network: the tool runs in one that has."""
        now = self.clock.now
        question = question_of(
            ctx, tool=call.tool_name, name=name, toolset=toolset, arguments=plain(arguments), now=now
        )
        return outcome_of(dict(self.ask(question) or {}), call.tool_name)

    def _last_step(self) -> int:
        return self.plan.answers[min(self.model.cursor, len(self.plan.answers)) - 1].step if self.model.cursor else 1

    def _sources(self) -> JsonObject:
        requests = self.transcript.requests
        answered = [each.source for each in requests if each.response is not None or each.source == "unknown"]
        return dict(Counter([*answered, *(call.source for call in self.transcript.calls)]))

    def facts(self) -> JsonObject:
        tally = self.transcript.tally
        return {
            "fields_compared": tally.compared,
            "volatile_fields": tally.volatile,
            "not_captured": sorted(tally.not_captured or ()),
            "clock": self.clock.told,
            "drift": self.calls.drift,
            "live_tools": self.calls.live,
            "own_code": self.stage.own_acts,
            "stopped_before": self.stage.stopped_before,
            "lint": [_kept_frozen(name) for name in sorted(self.gate.kept_frozen)],
        }


def _as_asked(start: Start, run: Run) -> Start:
    """With the prompt that the run was started with: of what else is in the first request the code makes its own."""
    if start.prompt is not None or start.deferred is not None or run.input is None or not is_told(run):
        return start
    return replace(start, prompt=load_prompt(run.input.value), history=load_messages(messages(run.prior)))


def _holds_what_was_sent(run: Run) -> bool:
    """Whether older messages of a request can be held against the loop's: of spans only the newest is put into the form
    in which it was sent, and what code changed in its place was not recorded."""
    return run.source_format != SPANS and not was_rewritten_in_place(run)


def as_approved(start: Start, plan: ReplayPlan) -> Start:
    """Whoever approves a call may change its arguments, with which the team's own tools and checks run. A fork may
    decide otherwise."""
    if start.deferred is None:
        return start
    calls = ((step, call.call_id) for step, call in plan.run.tool_calls)
    changed = {call_id: step.extra.get(APPROVED) for step, call_id in calls if call_id not in plan.decisions}
    approvals = {
        call_id: ToolApproved(override_args=arguments)
        if is_approved is True and isinstance(arguments := changed.get(call_id), dict)
        else is_approved
        for call_id, is_approved in start.deferred.approvals.items()
    }
    return replace(start, deferred=replace(start.deferred, approvals=approvals))


def _kept_frozen(name: str) -> str:
    return f'{name} was asked for live and stayed frozen: it does not say metadata={{"replay": "read"}}.'


@dataclass(frozen=True, slots=True)
class _Ended:
    output: Any


class _Streamed:
    def __init__(self, streamed: Any) -> None:
        self._streamed = streamed

    async def get_output(self) -> Any:
        return _plain_output(await self._streamed.get_output())

    def all_messages(self) -> list[ModelMessage]:
        return list(self._streamed.all_messages())


class PreparedAgent:
    """The team's agent with all that a replay adds to its runs; outputs come as JSON. What it is registered with takes
    the place of what the run was started with."""

    def __init__(self, own: OwnAgent, deps: Any, model: ReplayModel, policy: FrozenPolicy) -> None:
        self._agent = own.agent
        capabilities = [*(own.arguments.get("capabilities") or ()), policy]
        self._added = {**own.arguments, "deps": deps, "model": model, "capabilities": capabilities}

    async def run(self, prompt: Any, **given: Any) -> _Ended:
        return _Ended(_plain_output((await self._agent.run(prompt, **{**given, **self._added})).output))

    @asynccontextmanager
    async def run_stream(self, prompt: Any, **given: Any) -> AsyncIterator[_Streamed]:
        async with self._agent.run_stream(prompt, **{**given, **self._added}) as streamed:
            yield _Streamed(streamed)

    @asynccontextmanager
    async def run_stream_events(self, prompt: Any, **given: Any) -> AsyncIterator[AsyncIterator[Any]]:
        async with self._agent.run_stream_events(prompt, **{**given, **self._added}) as events:
            yield _with_plain_output(events)


async def _with_plain_output(events: Any) -> AsyncIterator[Any]:
    async for event in events:
        if isinstance(event, AgentRunResultEvent):
            yield AgentRunResultEvent(result=_Ended(_plain_output(event.result.output)))  # type: ignore[arg-type]
        else:
            yield event


def _plain_output(output: Any) -> Any:
    return output if isinstance(output, DeferredToolRequests) else plain(dump_output(output))
