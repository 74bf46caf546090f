"""A fork with the team's own code: it builds its own past from the recorded answers, and goes on with what holds after
the change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.decisions import Decisions
from sessions_app.agents.loop.elsewhere import AskParent
from sessions_app.agents.loop.fork_replay import start_of_fork
from sessions_app.agents.loop.fork_stage import ForkStage
from sessions_app.agents.loop.recording_replay import Progress, Ticker, observations_of
from sessions_app.agents.loop.sub_agents import every_run_frozen
from sessions_app.agents.own_code.agent import OwnReplay, as_approved
from sessions_app.agents.own_code.gate import Ask, raw_arguments
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.agents.own_code.stage import Look, OwnStage
from sessions_app.agents.own_code.state import NoStateToBeginWith
from sessions_app.core.fork.answering import Answering, LiveModelFailed, ModelGiven
from sessions_app.core.fork.changes import NewInstructions, NewMessage, NewModel
from sessions_app.core.fork.conclude import conclude_fork
from sessions_app.core.fork.order import Course, Order
from sessions_app.core.fork.plan import CannotFork, ForkPlan, plan_fork
from sessions_app.core.fork.state import ForkState
from sessions_app.core.fork.stops import Stops
from sessions_app.core.judge.verdict import judge_code
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.registrations import IGNORES_STATE
from sessions_app.core.replay.ending import changed_unseen, limit_of_code
from sessions_app.core.replay.fixture_book import sayable
from sessions_app.core.replay.observed import Observations, Result
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.played import Played
from sessions_app.core.run import Fixture, Run


class OwnForkStage(OwnStage):
    """What the team's code does by itself is its own; all else is answered as in any fork."""

    fork: ForkStage

    def watch(self, look: Look, sent: Callable[[], Iterable[str]] = frozenset) -> None:
        super().watch(look, sent)
        self.fork.watch(look)

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        self._was_asked = True
        return self.fork.answer(planned, cursor)

    def is_by_hand(self, call: ToolCallPart) -> bool:
        return self.fork.is_by_hand(call.tool_name, call.tool_call_id, sayable(raw_arguments(call)))

    def runs(self, call: ToolCallPart) -> None:
        self.fork.runs(call.tool_name, call.tool_call_id, sayable(raw_arguments(call)))

    def fixture(self, name: str, call_id: str | None, arguments: JsonObject) -> Fixture:
        return self.fork.fixture(name, call_id, arguments)

    def called(self, name: str, call_id: str | None, arguments: JsonValue, fixture: Fixture) -> None:
        is_of_run = fixture.step > 0
        is_otherwise = is_of_run and self.is_given_otherwise(fixture)
        self.fork.called(name, call_id, arguments, fixture, is_given_otherwise=is_otherwise)

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        if response is not None and not self._was_asked:
            super().requested(planned, rebuilt, parameters, response)
        else:
            self.fork.requested(planned, rebuilt, parameters, response)


async def fork_with_own_agent(
    run: Run,
    run_id: str,
    own: OwnAgent,
    order: Order,
    course: Course,
    *,
    ask: Ask,
    on_progress: Progress,
    clock: PinnedClock,
) -> tuple[Result, Run | None]:
    try:
        plan = _plan(run, own, order)
        return await _OwnFork(plan, own, order, course, ask, on_progress, clock).fork(run_id)
    except (CannotFork, LiveModelFailed, NoStateToBeginWith) as error:
        return Result(verdict="could_not_run", error=str(error)), None


def _plan(run: Run, own: OwnAgent, order: Order) -> ForkPlan:
    """The code builds its own past, from the beginning of the run. With another state it begins at the checkpoint, with
    the messages that there were and the state that is wanted."""
    for change in order.changes:
        if isinstance(change, NewInstructions | NewMessage | NewModel):
            raise CannotFork("The team's own code decides what it sends to its model; change that in the code.")
    if not order.changes_state:
        return plan_fork(run, replace(order, at_step=1))
    if own.deps_of_state is None:
        raise CannotFork(IGNORES_STATE)
    plan = plan_fork(run, order)
    if plan.history.message.value.get("kind") != "request":
        raise CannotFork(_WITHIN_AN_ANSWER)
    return plan


_WITHIN_AN_ANSWER = (
    "The team's own code is given another state where it asks its model, not between the calls of one answer. "
    "Fork at a step of the model."
)
_OVERRULED = (
    "The agent's own code decided on the call after the fork had: its handler of deferred calls answers for calls that "
    "it is not asked about. Let it answer for those in `requests.approvals` alone."
)


class _OwnFork(OwnReplay):
    stage_type = OwnForkStage
    stage: OwnForkStage

    def __init__(
        self,
        plan: ForkPlan,
        own: OwnAgent,
        order: Order,
        course: Course,
        ask: Ask,
        on_progress: Progress,
        clock: PinnedClock,
    ) -> None:
        stops = Stops(order.breakpoints, course)
        self._plan, self._order = plan, order
        self._state = ForkState(plan.run, order, plan.kept)
        super().__init__(plan.replay, own, order, ask, on_progress, clock, stops)
        self.model.cursor = plan.cursor
        self.stage.fork = ForkStage(
            plan,
            order,
            answering=Answering(order, course, self.book, AskParent(ask)),
            transcript=self.transcript,
            stops=stops,
            state=self._state,
            clock=clock,
            on_progress=Ticker(len(plan.run.steps), on_progress).step,
        )

    def _first_state(self) -> JsonValue:
        if not self._order.changes_state:
            return super()._first_state()
        self._state.reach(self._plan.kept + 1)
        return self._state.value

    def _observed(self, seen: Observations) -> Observations:
        """With a state that somebody changed, no recorded one is left to hold another against."""
        found = super()._observed(seen)
        if not self._order.changes_state:
            return found
        is_taken = self.state.states == "taken"
        return replace(found, states="changed") if is_taken else replace(found, states=seen.states, first_state=None)

    def _limited(self, played: Played) -> Played:
        """As a replay of the same code. What follows from a state that somebody changed is no doubt."""
        limits = judge_code(self._plan.run, runs_tools=self._order.tools.run).reasons
        unseen = None if self._order.changes_state else changed_unseen(played)
        return replace(played, limit=limit_of_code(played, limits, self._doubtful() or unseen))

    async def fork(self, run_id: str) -> tuple[Result, Run]:
        with every_run_frozen() as misses:
            start = as_approved(start_of_fork(self._plan, self.transcript), self.plan)
            ending, messages = await self.loop(start, misses)
        if ending.miss is not None:
            # A function that makes the output, or a hook, is no call that somebody could answer.
            ending = replace(ending, stopped=self.stage.fork.stop_within(ending.miss.call_id))
        final = self.transcript.end(None, messages, step=0)
        seen = self._observed(observations_of(self.transcript, final, ending))
        played = self._limited(self._played(seen, ending))
        result, made = conclude_fork(self._plan, self._order, played, self._state, run_id=run_id)
        if _is_overruled(made, self.plan.decisions):
            raise CannotFork(_OVERRULED)
        return replace(result, facts={**self.facts(), **result.facts}), made


def _is_overruled(made: Run, decisions: Decisions) -> bool:
    """Whether code of the team's decided on a call after the fork had: the library takes the later word."""
    calls = {call.call_id: call.outcome == "denied" for _, call in made.tool_calls}
    return any(calls.get(call_id, denial is not None) != (denial is not None) for call_id, denial in decisions.items())
