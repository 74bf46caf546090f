"""The way of a fork's loop to its step: through the recording, as in a replay.

So the loop comes there with all that it keeps for a run: retries, what was used up, tools that it was told of, how
output is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse

from sessions_app.agents.loop.fork_stage import ForkStage
from sessions_app.agents.loop.stage import RecordedStage, Stage
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.fork.answering import ModelGiven
from sessions_app.core.fork.plan import ForkPlan
from sessions_app.core.fork.stops import Stops
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import Fixture


class OtherPast(BaseException):
    """The loop does not come to the fork's step as it did then, so that what it keeps is not what it kept."""


class ReachingStage:
    """Gives what was recorded before the fork's step, and leaves all behind it to the fork's own stage."""

    def __init__(self, plan: ForkPlan, fork: ForkStage, transcript: Transcript, book: FixtureBook) -> None:
        self._plan = plan
        self._fork = fork
        self._past = RecordedStage(transcript, book, Stops(), lambda step: None)
        self._transcript = transcript
        self._book = book
        self._answered = 0
        self.has_begun = False

    def reach(self, *, asks: bool) -> None:
        """The loop is about to ask the model, or to make a call. Raises `OtherPast`."""
        is_there = self._answered >= self._plan.cursor and (asks or not self._plan.begins_with_request)
        if self.has_begun or not is_there:
            return
        if self._transcript.divergence is not None or any(f.step <= self._plan.kept for f in self._book.left_over):
            raise OtherPast
        self._transcript.requests.clear()
        self._transcript.calls.clear()
        self.has_begun = True

    def _stage(self, *, asks: bool) -> Stage:
        self.reach(asks=asks)
        return self._fork if self.has_begun else self._past

    # --- the model

    def asks(self, planned: PlannedAnswer | None, settings: Any) -> None:
        """A rebuilt agent has them from the recording, or from the change."""

    def watch(self, look: Callable[[], tuple[list[ModelMessage], JsonObject]]) -> None:
        self._stage(asks=True).watch(look)

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        if not self.has_begun:
            self._answered += 1
            return self._past.answer(planned, cursor)
        if not self._transcript.requests and self._plan.asks_as_recorded and not self._fork.is_recorded(planned):
            raise OtherPast
        return self._fork.answer(planned, cursor)

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        """While a streamed answer is still read, the calls that it asks for may have begun."""
        is_before = planned is not None and planned.step <= self._plan.kept
        if not (is_before and self.has_begun):
            (self._past if is_before else self._fork).requested(planned, rebuilt, parameters, response)

    # --- tools

    def is_by_hand(self, name: str, call_id: str | None, arguments: JsonValue) -> bool:
        self.reach(asks=False)
        return self.has_begun and self._fork.is_by_hand(name, call_id, arguments)

    def fixture(self, name: str, call_id: str | None, arguments: JsonObject) -> Fixture:
        return self._stage(asks=False).fixture(name, call_id, arguments)

    def called(self, name: str, call_id: str | None, arguments: JsonValue, fixture: Fixture) -> None:
        self._stage(asks=False).called(name, call_id, arguments, fixture)
