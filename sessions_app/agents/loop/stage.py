"""What stands around the loop of a replay: it is asked for each answer, and writes down what was given.

`RecordedStage` gives the recorded answers in order. `ForkStage`, in `fork_stage`, gives what holds after a change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from pydantic_ai.messages import ModelMessage, ModelResponse

from sessions_app.agents.loop.outcomes import FixtureNotFound, Paused, RanPastRecording
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.answering import ModelGiven, tool_key
from sessions_app.core.fork.stops import Stop, Stops
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.fixture_book import FixtureBook, FixtureMiss, is_same_call, recorded_arguments
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import Fixture

OnStep = Callable[[int], None]
"""Told the recorded step that an answer was given for."""


class Stage(Protocol):
    """Asked by the model and by the tools of a replay."""

    def asks(self, planned: PlannedAnswer | None, settings: Any) -> None:
        """A request is about to be made with these settings."""

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        """The answer to the request that the loop makes now; `planned` is the recorded one at this place."""

    def fixture(self, name: str, call_id: str | None, arguments: JsonObject) -> Fixture:
        """What the tool answers. Raises `FixtureNotFound`."""

    def called(self, name: str, call_id: str | None, arguments: JsonValue, fixture: Fixture) -> None:
        """The loop was given this."""

    def watch(self, look: Callable[[], tuple[list[ModelMessage], JsonObject]]) -> None:
        """A request begins; `look` gives its messages and parameters as they are now."""

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        """A request has ended, with an answer or without."""


class RecordedStage:
    """The recording and nothing else."""

    def __init__(self, transcript: Transcript, book: FixtureBook, stops: Stops, on_step: OnStep) -> None:
        self._transcript = transcript
        self._book = book
        self._stops = stops
        self._on_step = on_step

    def asks(self, planned: PlannedAnswer | None, settings: Any) -> None:
        """A rebuilt agent has them from the recording."""

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        if planned is None or (planned.response is None and planned.error is None):
            raise RanPastRecording(cursor)
        self._pause(model_stop(planned))
        self._on_step(planned.step)
        return ModelGiven(source="recorded", response=planned.response, error=planned.error)

    def fixture(self, name: str, call_id: str | None, arguments: JsonObject) -> Fixture:
        found = self._book.find(name, call_id, arguments)
        if isinstance(found, FixtureMiss):
            raise FixtureNotFound(found)
        self._check(found, call_id, arguments)
        self._pause(tool_stop(found.step, name, call_id, arguments))
        return found

    def _check(self, found: Fixture, call_id: str | None, arguments: JsonObject) -> None:
        """The answer fits; that it was recorded under another id, or for other words, is a difference all the same."""
        recorded = recorded_arguments(found.call.arguments)
        if None not in (call_id, found.call.call_id) and call_id != found.call.call_id:
            self._transcript.diverged(
                found.step, Mismatch(path="call_id", recorded=found.call.call_id, rebuilt=call_id)
            )
        elif found.call.arguments is not None and not same_json(recorded, arguments):
            self._transcript.diverged(found.step, Mismatch(path="arguments", recorded=recorded, rebuilt=arguments))

    def called(self, name: str, call_id: str | None, arguments: JsonValue, fixture: Fixture) -> None:
        source = self._transcript.repeated_call(is_asked_again=self._is_asked_again(fixture, arguments))
        self._transcript.call(call_id, name, arguments, fixture.step, source=source)
        self._on_step(fixture.step)

    def _is_asked_again(self, fixture: Fixture, arguments: JsonValue) -> bool:
        return is_same_call(fixture.call, arguments)

    def watch(self, look: Callable[[], Any]) -> None:
        """What is asked for is checked afterwards."""

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        self._transcript.request(planned, rebuilt, parameters, response)

    def _pause(self, stop: Stop) -> None:
        stopped = self._stops.reach(stop)
        if stopped is not None:
            raise Paused(stopped)


def model_stop(planned: PlannedAnswer) -> Stop:
    """Before the answer to this request."""
    newest = planned.newest or {}
    return Stop(
        kind="model",
        step=planned.step,
        name="model",
        asked=planned.history.digest if planned.history else "",
        messages=planned.history.length if planned.history else 0,
        seen={"kind": "model", "step": planned.step, "text": text_of(newest)},
    )


def tool_stop(step: int, name: str, call_id: str | None, arguments: JsonObject) -> Stop:
    """Before the answer to this call, which stands at `step` of the recording."""
    return Stop(
        kind="tool",
        step=step,
        name=name,
        asked=tool_key(name, arguments),
        call_id=call_id,
        arguments=arguments,
        seen={"kind": "tool", "step": step, "tool": name, "args": arguments},
    )


def text_of(message: JsonObject) -> str:
    """The texts of a message, for conditions to look at."""
    contents = (part.get("content") for part in message.get("parts") or [])
    return "\n".join(content for content in contents if isinstance(content, str))
