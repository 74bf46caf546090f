"""What stands around the loop of a fork: every answer has a source, and what nothing knows stops it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import takewhile
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.outcomes import Paused
from sessions_app.agents.loop.stage import text_of
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.answering import Answering, ModelAsk, ModelGiven, ToolAsk, ToolGiven, tool_key
from sessions_app.core.fork.changes import NewClock
from sessions_app.core.fork.order import Order
from sessions_app.core.fork.plan import ForkPlan
from sessions_app.core.fork.produce import gave_the_same
from sessions_app.core.fork.state import ForkState
from sessions_app.core.fork.stops import Stop, Stopped, Stops
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.fixture_book import FixtureMiss, is_same_call, was_never_answered
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.replay.observed import ObservedCall
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.request_key import RequestKeys
from sessions_app.core.run import REPEATED, Fixture, ModelCall, ToolCall, main_steps, tools_around

Look = Callable[[], tuple[list[ModelMessage], JsonObject]]


class ForkStage:
    """One for each fork. `answering` decides, `transcript` keeps what was asked and given."""

    def __init__(
        self,
        plan: ForkPlan,
        order: Order,
        *,
        answering: Answering,
        transcript: Transcript,
        stops: Stops,
        state: ForkState,
        clock: PinnedClock,
        on_progress: Callable[[], None],
    ) -> None:
        self._plan = plan
        self._answering = answering
        self._transcript = transcript
        self._stops = stops
        self._state = state
        self._on_progress = on_progress
        before = [s.call for s in main_steps(plan.run) if isinstance(s.call, ToolCall) and s.index <= plan.kept]
        self._calls: Counter[str] = Counter(call.tool_name for call in before)
        self._newest_tool = _as_seen(before[-1]) if before else {}
        self._look: Look = lambda: ([], {})
        self._given: dict[str, Any] = {"source": "unknown"}
        self._tool_given: dict[int, ToolGiven] = {}
        self._tools_around = tools_around(plan.run)
        self._are_repeated: list[bool] = []
        """Of each call so far, whether it was answered as recorded."""
        self._begun: dict[str | None, Stopped] = {}
        """Where the fork stands if a tool that began comes to something that nothing knows, by the call's id."""
        self._keys = RequestKeys()
        self._recorded = {step.index: call for step, call in plan.run.model_calls}
        _set(clock, plan, order)

    # --- the model

    def asks(self, planned: PlannedAnswer | None, settings: Any) -> None:
        """A rebuilt agent has them from the recording, or from the change."""

    def _other_model(self, planned: PlannedAnswer) -> Mismatch | None:
        """What the fork asks of its model that the recorded request did not: then it is another request."""
        recorded, now = self._recorded[planned.step], self._plan.model
        model = recorded.model or self._plan.run.model
        if now is not None and now != model:
            return Mismatch(path="model", recorded=model, rebuilt=now)
        settings = recorded.settings.value if recorded.settings else {}
        is_same = same_json(settings, planned.settings or {})
        return None if is_same else Mismatch(path="settings", recorded=settings, rebuilt=planned.settings)

    def watch(self, look: Look) -> None:
        self._look = look
        self._given = {"source": "unknown"}

    def is_recorded(self, planned: PlannedAnswer | None) -> bool:
        """Whether the request that is about to be made is the recorded one, whoever it goes to."""
        return self._transcript.is_recorded(planned, *self._look())

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        ask, stop = self._asked(planned)
        stopped = self._stops.reach(stop)
        given = None if stopped else self._answering.of_model(ask)
        if given is None:
            self._given = {"source": "unknown", "state": self._state.change(None, is_repeated=False)}
            raise Paused(stopped or self._stops.unknown(stop))
        change = self._state.change(planned.step if planned else None, is_repeated=given.source in REPEATED)
        self._given = {"source": given.source, "link": given.link, "error": given.error, "state": change}
        self._on_progress()
        return given

    def _asked(self, planned: PlannedAnswer | None) -> tuple[ModelAsk, Stop]:
        rebuilt, parameters = self._look()
        self._transcript.extend(rebuilt)
        is_recorded = self._transcript.is_recorded(planned, rebuilt, parameters)
        call = self._call(planned, parameters, is_recorded)
        key = self._keys.of(call, self._plan.run.model).hex()
        seen = self._seen("model", text=text_of(call.history.message.value) if call.history else "")
        other = self._other_model(planned) if planned else None
        if planned is not None:
            self._transcript.parts(planned, other)
        ask = ModelAsk(
            at=self._stops.at + 1,
            planned=planned,
            is_recorded=is_recorded and other is None,
            key=key,
            seen={**seen, **self._newest_tool},
            messages=self._transcript.dumped,
            parameters=parameters,
            model=call.model or self._plan.run.model,
            settings=call.settings.value if call.settings else None,
        )
        return ask, Stop(kind="model", step=seen["step"], name="model", asked=key, messages=len(rebuilt), seen=seen)

    def _call(self, planned: PlannedAnswer | None, parameters: JsonObject, is_recorded: bool) -> ModelCall:
        """The request as a call. One that is equal to the recorded one stands for it with all that was captured."""
        recorded = planned or self._plan.replay.answers[-1]
        sent = recorded.parameters if is_recorded else Payload.of_json(parameters)
        call = ModelCall(
            history=self._transcript.history,
            response=None,
            parameters=sent,
            model=self._plan.model or self._recorded[recorded.step].model,
            settings=None if recorded.settings is None else Payload.of_json(recorded.settings),
        )
        own = self._transcript.asked
        return own.as_recorded(call) if own else call

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        self._transcript.request(planned, rebuilt, parameters, response, **self._given)

    # --- tools

    def fixture(self, name: str, call_id: str | None, arguments: JsonObject) -> Fixture:
        stop = self._tool_stop(name, call_id, arguments)
        stopped = self._stops.reach(stop)
        if stopped is not None:
            self._left_open(stop)
            raise Paused(stopped)
        ask = ToolAsk(at=self._stops.at, name=name, call_id=call_id, arguments=arguments, key=stop.asked)
        given = self._answering.of_tool(ask)
        if isinstance(given, FixtureMiss) or _has_no_end(given.fixture):
            self._left_open(stop)
            raise Paused(self._stops.unknown(stop))
        if given.fixture.call.outcome == "interrupted":
            self._begun[call_id] = self._stops.unknown(stop)
        self._tool_given[id(given.fixture)] = given
        return given.fixture

    def is_by_hand(self, name: str, call_id: str | None, arguments: JsonValue) -> bool:
        """Whether somebody says what this call is answered, which is the next stop if so."""
        key = tool_key(name, arguments)
        ask = ToolAsk(at=self._stops.at + 1, name=name, call_id=call_id, arguments=arguments, key=key)
        return self._answering.is_by_hand(ask)

    def runs(self, name: str, call_id: str | None, arguments: JsonObject) -> None:
        """Before the tool's own function: a place to pause."""
        stop = self._tool_stop(name, call_id, arguments)
        stopped = self._stops.reach(stop)
        self._begun[call_id] = self._stops.unknown(stop)
        if stopped is not None:
            self._left_open(stop)
            raise Paused(stopped)
        self._on_progress()

    def stop_within(self, call_id: str | None) -> Stopped | None:
        """The tool's own function came to something that nothing knows: somebody may answer in its place. None where no
        tool began."""
        stopped = self._begun.get(call_id)
        if stopped is not None:
            self._left_open(stopped.stop)
        return stopped

    def called(
        self,
        name: str,
        call_id: str | None,
        arguments: JsonValue,
        fixture: Fixture,
        *,
        is_given_otherwise: bool = False,
    ) -> None:
        given = self._tool_given.get(id(fixture)) or ToolGiven(source="recorded", fixture=fixture)
        is_asked_again = not is_given_otherwise and is_same_call(fixture.call, arguments)
        again = self._transcript.repeated_call(is_asked_again=is_asked_again)
        self._calls[name] += 1
        self._newest_tool = _as_seen(fixture.call)
        self._transcript.call(
            call_id,
            name,
            arguments,
            fixture.step,
            source=again if given.source in REPEATED else given.source,
            link=given.link,
            answer=fixture.call,
            error=fixture.error,
            state=self._state.change(fixture.step, is_repeated=given.source in REPEATED),
        )
        self._on_progress()

    def _tool_stop(self, name: str, call_id: str | None, arguments: JsonObject) -> Stop:
        seen = {**self._seen("tool", call_id), "tool": name, "args": arguments}
        return Stop(
            kind="tool",
            step=seen["step"],
            name=name,
            asked=tool_key(name, arguments),
            call_id=call_id,
            arguments=arguments,
            seen=seen,
        )

    def _left_open(self, stop: Stop) -> None:
        """The state that the call found may be a changed one. As long as the fork repeats the recording, what was
        recorded before the call stands before it."""
        state = self._state.change(None, is_repeated=False)
        there = self._plan.run.steps[stop.step - 1 : stop.step]
        is_recorded = any(isinstance(each.call, ToolCall) and each.call.call_id == stop.call_id for each in there)
        step = stop.step if is_recorded else 0
        self._transcript.call(stop.call_id, stop.name, stop.arguments, step, source="unknown", state=state)

    # --- both

    def _next_step(self, kind: str, call_id: str | None) -> int:
        """The number in the fork of what comes next. As long as it repeats the recording it is the recorded one, for
        snapshots and other work beside the loop are played back between; behind that, steps are counted."""
        made = [(each.step or 0, each.source in REPEATED) for each in self._transcript.requests]
        made += self._called()
        told = sorted((step, is_repeated) for step, is_repeated in made if step)
        same = [step for step, _ in takewhile(lambda each: each[1], told)]
        last, more = same[-1] if same else self._plan.kept, self._transcript.count - len(same)
        if len(told) > len(same):  # answered otherwise, in its recorded place
            last, more = told[len(same)][0], more - 1
        elif not more and (recorded := self._recorded_step(kind, call_id, behind=last)) is not None:
            return recorded
        more += self._inside(behind=last)
        return last + more + 1 + (self._denied(behind=last) if kind == "model" else 0)

    def _inside(self, *, behind: int) -> int:
        """How many recorded steps behind this one ran inside of tools whose answers were repeated."""
        repeated = {step for step, is_repeated in self._called() if is_repeated}
        return sum(index > behind and tool in repeated for index, tool in self._tools_around.items())

    def _called(self) -> list[tuple[int, bool]]:
        """The recorded step of each call, and whether it was answered as then. A long answer is looked at once."""
        calls = self._transcript.calls
        self._are_repeated += map(self._is_repeated, calls[len(self._are_repeated) :])
        return [(call.step, is_repeated) for call, is_repeated in zip(calls, self._are_repeated, strict=True)]

    def _is_repeated(self, call: ObservedCall) -> bool:
        recorded = self._plan.run.steps[call.step - 1] if call.step else None
        return call.source in REPEATED or gave_the_same(recorded, call.answer)

    def _recorded_step(self, kind: str, call_id: str | None, *, behind: int) -> int | None:
        if kind == "model":
            return self._following()
        calls = ((step.index, call.call_id) for step, call in self._plan.run.tool_calls if step.index > behind)
        return next((index for index, each in calls if call_id is not None and each == call_id), None)

    def _following(self) -> int | None:
        """The recorded step of the request that comes next."""
        replay, asked = self._plan.replay, self._plan.cursor + len(self._transcript.requests)
        return replay.answers[asked].step if asked < len(replay.answers) else None

    def _denied(self, *, behind: int) -> int:
        """Calls before the request that comes next for which no tool was asked."""
        return self._plan.replay.denied_between(behind, self._following())

    def _seen(self, kind: str, call_id: str | None = None, **more: Any) -> JsonObject:
        step = self._next_step(kind, call_id)
        self._state.reach(step)
        return {
            "kind": kind,
            "step": step,
            "state": self._state.value,
            "calls": dict(self._calls),
            **more,
        }


def _set(clock: PinnedClock, plan: ForkPlan, order: Order) -> None:
    """The time of the fork's step, or the one that the fork wants."""
    steps = plan.run.steps
    recorded = steps[min(plan.kept, len(steps) - 1)].started_at or plan.run.started_at
    change = next((c for c in order.changes if isinstance(c, NewClock)), NewClock())
    if change.at is not None:
        clock.move_to(change.at)
    elif recorded is not None:
        clock.move_to(recorded + change.shift if change.shift else recorded)
    clock.pinned_at = clock.now


def _has_no_end(fixture: Fixture) -> bool:
    """Of a call that something beside it interrupted, that ends the run again, or nobody knows the answer."""
    return was_never_answered(fixture) and fixture.call.outcome != "interrupted"


def _as_seen(call: ToolCall) -> JsonObject:
    """The newest answer of a tool, as rules look at it."""
    result: Payload | None = call.result
    return {"tool": call.tool_name, "result": None if result is None else result.parsed}
