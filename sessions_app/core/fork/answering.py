"""Who answers after a change, in this order; nothing is ever made up.

    a model's request   by hand · rule · live (samples) · recorded · borrowed · recorded for another request, or live ·
                        unknown
    a tool call         by hand · recorded · borrowed · unknown

Recorded means that the request is the recorded one, borrowed that the same request was answered in another
recorded run. A recorded answer for another request, or that of a live model, is only given where the order says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.changes import Answer, NewModelAnswer, NewToolResult, Rule, ToolFailure
from sessions_app.core.fork.order import Course, HandAnswer, Order
from sessions_app.core.fork.written_answers import response_of, says
from sessions_app.core.payload import JsonObject, JsonValue, Payload, canonical_json, sha256_hex
from sessions_app.core.replay.fixture_book import FixtureBook, FixtureMiss
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import TOLD_TO_THE_MODEL, ErrorInfo, Fixture, StepSource, ToolCall


class LiveModelFailed(BaseException):
    """The live model gave no answer; the text says why. An `Exception` the loop would take for the agent's own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelAsk:
    """A request to the model, as the loop built it."""

    at: int
    planned: PlannedAnswer | None
    """The recorded request at this place; None past the recording's end."""
    is_recorded: bool
    """Whether it is equal to the recorded one."""
    key: str
    seen: JsonObject
    """What rules look at."""
    messages: Callable[[], list[JsonObject]]
    parameters: JsonObject
    model: str | None = None
    settings: JsonObject | None = None
    """Those that the fork asks for: the recorded ones, or its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolAsk:
    """A call of a tool, as the loop makes it."""

    at: int
    name: str
    call_id: str | None
    arguments: JsonValue
    key: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelGiven:
    """An answer of the model, and where it came from."""

    source: StepSource
    response: Payload | None
    error: ErrorInfo | None = None
    link: JsonObject | None = None
    """For a borrowed answer: `run_id` and `step` of the run that it was recorded in."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolGiven:
    """An answer of a tool as a fixture, and where it came from. `step` of the fixture is 0 for one not of this run."""

    source: StepSource
    fixture: Fixture
    link: JsonObject | None = None


class Elsewhere(Protocol):
    """What lies outside of this run; the parent process knows it."""

    def model_answer(self, key: str) -> JsonObject | None:
        """`response`, `run_id`, `step` of an equal request that was answered; None when there is none."""

    def tool_answer(self, name: str, arguments: JsonValue) -> JsonObject | None:
        """`call` (as `tool_call_of` reads it), `run_id`, `step`."""

    def live_answer(self, ask: ModelAsk) -> JsonObject:
        """The response of a live model. Raises `LiveModelFailed`."""


class Answering:
    """Decides for one fork. `book` holds the recorded tool answers that are still to be given."""

    def __init__(self, order: Order, course: Course, book: FixtureBook, elsewhere: Elsewhere) -> None:
        self._order = order
        self._by_hand = {answer.at: answer for answer in course.answers}
        self._book = book
        self._elsewhere = elsewhere
        self._models = {c.step: c.answer for c in order.changes if isinstance(c, NewModelAnswer)}
        self._tools = {c.step: c for c in order.changes if isinstance(c, NewToolResult)}
        self._rules = [c for c in order.changes if isinstance(c, Rule)]

    # --- the model

    def of_model(self, ask: ModelAsk) -> ModelGiven | None:
        """None when nothing knows the answer."""
        written = self._written_answer(ask)
        if written is not None:
            return written
        if self._order.samples is not None and self._has_begun(ask):
            return self._live(ask)
        if ask.is_recorded and ask.planned is not None:
            return self._recorded(ask.planned)
        found = self._elsewhere.model_answer(ask.key)
        if found is None:
            return self._played_on(ask)
        return ModelGiven(source="borrowed", response=Payload.of_json(found["response"]), link=_link(found))

    def _played_on(self, ask: ModelAsk) -> ModelGiven | None:
        if self._order.on_difference == "live":
            return self._live(ask)
        if self._order.on_difference != "play_on" or ask.planned is None:
            return None
        given = self._recorded(ask.planned)
        return None if given is None else replace(given, source="recorded_for_another_request")

    def _written_answer(self, ask: ModelAsk) -> ModelGiven | None:
        given = self._hand_answer(ask.at, ask.key)
        if given is not None and given.answer is not None:
            return _written(ask, given.answer, "by_hand")
        if ask.planned is not None and ask.planned.step in self._models:
            return _written(ask, self._models.pop(ask.planned.step), "by_hand")
        rule = next((rule for rule in self._rules if self._has_begun(ask) and rule.when.holds(ask.seen)), None)
        return None if rule is None else _written(ask, rule.answer, "rule")

    def _recorded(self, planned: PlannedAnswer) -> ModelGiven | None:
        """The answer, or the failure in its place. A fork that begins at a failure, or resumes a run, is there to get
        past it."""
        goes_past = planned.step == self._order.at_step or not self._order.changes
        if planned.response is None and (planned.error is None or goes_past):
            return None
        return ModelGiven(source="recorded", response=planned.response, error=planned.error)

    def _has_begun(self, ask: ModelAsk) -> bool:
        """The team's own code runs from its beginning, which lies before the fork's step."""
        return bool(ask.seen["step"] >= (self._order.at_step or 1))

    def _live(self, ask: ModelAsk) -> ModelGiven:
        return ModelGiven(source="live", response=Payload.of_json(self._elsewhere.live_answer(ask)))

    # --- tools

    def of_tool(self, ask: ToolAsk) -> ToolGiven | FixtureMiss:
        # An answer by hand stands in the place of the recorded one, which serves no later call.
        given, found = self._hand_answer(ask.at, ask.key), self._book.find(ask.name, ask.call_id, ask.arguments)
        if given is not None:
            step = found.step if isinstance(found, Fixture) else 0
            return _by_hand(ask, given.value, given.failure, given.twin, step=step)
        if isinstance(found, Fixture):
            return self._changed(ask, found)
        return self._borrowed(ask) or found

    def is_by_hand(self, ask: ToolAsk) -> bool:
        """Whether an answer by hand or a change stands in the tool's place."""
        found = self._book.look_up(ask.name, ask.call_id, ask.arguments)
        is_changed = found is not None and found.step in self._tools
        return is_changed or self._hand_answer(ask.at, ask.key) is not None

    def _changed(self, ask: ToolAsk, fixture: Fixture) -> ToolGiven:
        change = self._tools.pop(fixture.step, None)
        if change is None or is_as_recorded(change, fixture):
            return ToolGiven(source="recorded", fixture=fixture)
        return _by_hand(ask, change.value, change.failure, None, step=fixture.step)

    def _borrowed(self, ask: ToolAsk) -> ToolGiven | None:
        found = self._elsewhere.tool_answer(ask.name, ask.arguments)
        if found is None:
            return None
        fixture = Fixture(step=0, call=tool_call_of(ask, found["call"]), error=_error(found["call"].get("error")))
        return ToolGiven(source="borrowed", fixture=fixture, link=_link(found))

    def _hand_answer(self, at: int, key: str) -> HandAnswer | None:
        """An answer that was given to something else is not used."""
        given = self._by_hand.get(at)
        return given if given is not None and given.asked == key else None


def is_as_recorded(change: NewToolResult, fixture: Fixture) -> bool:
    """Whether somebody wrote what the tool answered, or how it failed: the model is told of either in its own way."""
    if change.failure is not None:
        return _fails_as_recorded(change.failure, fixture)
    call, has_answered = fixture.call, fixture.error is None and fixture.call.outcome in (None, "success")
    return has_answered and call.result is not None and same_json(call.result.value, change.value)


def _fails_as_recorded(failure: ToolFailure, fixture: Fixture) -> bool:
    call, error = fixture.call, fixture.error or ErrorInfo(type=None, message=None)
    if failure.crashes or call.outcome not in TOLD_TO_THE_MODEL or failure.type not in (None, error.type):
        return False
    return failure.message in (error.message, call.result.value if call.result else None)


def tool_key(name: str, arguments: JsonValue) -> str:
    """Of a tool call that is asked for: SHA-256 of its name and canonical arguments, in hex."""
    return sha256_hex(canonical_json([name, arguments]))


def _written(ask: ModelAsk, answer: Answer, source: StepSource) -> ModelGiven:
    """Whoever writes what was recorded for this request gives the recorded answer: nobody writes ids or tokens."""
    recorded = ask.planned.response if ask.planned is not None and ask.is_recorded else None
    if recorded is not None and says(recorded, answer):
        return ModelGiven(source="recorded", response=recorded)
    return ModelGiven(source=source, response=response_of(answer, ask.at, recorded))


def tool_call_of(ask: ToolAsk, call: JsonObject) -> ToolCall:
    """A tool's answer that crossed from another process: `result`, `outcome`, `retry`, `metadata`, `content`."""
    return ToolCall(
        tool_name=ask.name,
        call_id=ask.call_id,
        arguments=Payload.of_json(ask.arguments),
        result=_payload(call, "result"),
        outcome=call.get("outcome"),
        retry=call.get("retry"),
        metadata=_payload(call, "metadata"),
        content=_payload(call, "content"),
    )


def _payload(call: JsonObject, name: str) -> Payload | None:
    return Payload.of(call[name]) if name in call else None


def _by_hand(
    ask: ToolAsk, value: JsonValue, failure: ToolFailure | None, twin: JsonObject | None, *, step: int = 0
) -> ToolGiven:
    call: JsonObject = {"result": value, "outcome": "success"} if failure is None else _failed(failure)
    error = ErrorInfo(type=failure.type, message=failure.message) if failure and failure.crashes else None
    fixture = Fixture(step=step, call=tool_call_of(ask, call), error=error)
    return ToolGiven(source="by_hand", fixture=fixture, link=None if twin is None else _link(twin))


def _failed(failure: ToolFailure) -> JsonObject:
    if failure.crashes:
        return {"outcome": "crashed"}
    words = failure.message if failure.type is None else f"{failure.type}: {failure.message}"
    return {"result": words, "outcome": "failed"}


def _error(error: JsonObject | None) -> ErrorInfo | None:
    return None if error is None else ErrorInfo(type=error.get("type"), message=error.get("message"))


def _link(found: JsonObject) -> JsonObject:
    return {"run_id": found.get("run_id"), "step": found.get("step")}
