"""What stands around the loop of a team's own agent: its code of today with the answers of then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart

from sessions_app.agents.loop.library import dump_message
from sessions_app.agents.loop.outcomes import RanPastRecording
from sessions_app.agents.loop.stage import OnStep, RecordedStage, tool_stop
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.agents.own_code.gate import plain, raw_arguments
from sessions_app.core.fork.answering import ModelGiven
from sessions_app.core.fork.order import OnDifference
from sessions_app.core.fork.stops import Stops
from sessions_app.core.payload import JsonObject, JsonValue, canonical_json
from sessions_app.core.ran_with import is_told
from sessions_app.core.replay.asked_model import AskedModel
from sessions_app.core.replay.fixture_book import FixtureBook, sayable
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.replay.ran_with import first_other
from sessions_app.core.run import Fixture, ModelCall, StepSource

Look = Callable[[], tuple[list[ModelMessage], JsonObject]]


class OwnStage(RecordedStage):
    """Gives the recorded answers as long as each request is the recorded one.

    What the model would have said to another request is not known: there the replay stops, or plays on with the
    recorded answer of that place, which is labelled as one for another request.
    """

    def __init__(
        self,
        transcript: Transcript,
        book: FixtureBook,
        stops: Stops,
        on_step: OnStep,
        on_difference: OnDifference = "stop",
    ) -> None:
        super().__init__(transcript, book, stops, on_step)
        self.own_acts: list[JsonObject] = []
        """What the team's code of today did by itself: `step`, `kind`, `name`, `recorded`, `now`."""
        self.stopped_before: int | None = None
        """The first model step whose request is another one, where the replay does not play on."""
        self.changed_answer: int | None = None
        """The first answer that a hook changed, where the recording does not hold what the model gave."""
        self._acted: Divergence | None = None
        self._on_difference = on_difference
        self._look: Look | None = None
        self._was_asked = False
        self._asked_at = 0
        """The step of the request that was answered last."""
        self._model: str | None = None
        self._sent: Callable[[], Iterable[str]] = frozenset

    @property
    def divergence(self) -> Divergence | None:
        """The first thing that went another way: what the code did by itself comes before the request that shows it."""
        acted, asked = self._acted, self._transcript.divergence
        if acted is None or asked is None:
            return acted or asked
        return acted if (acted.step or 0) <= (asked.step or 0) else asked

    def watch(self, look: Look, sent: Callable[[], Iterable[str]] = frozenset) -> None:
        """`sent` says how hooks made other messages of the loop's."""
        self._look, self._sent, self._was_asked = look, sent, False

    def is_by_hand(self, call: ToolCallPart) -> bool:
        """A replay changes no answer."""
        return False

    def runs(self, call: ToolCallPart) -> None:
        """Before a tool's own function: a place to pause, at the step of the call then, or at the request before it.
        It runs at the time that was recorded for it."""
        arguments = raw_arguments(call)
        fixture = self._book.look_up(call.tool_name, call.tool_call_id, arguments)
        step = fixture.step if fixture else self._asked_at
        self._pause(tool_stop(step, call.tool_name, call.tool_call_id, sayable(arguments)))
        if fixture is not None:
            self._on_step(step)

    def chose(self, model: str | None) -> None:
        """The id of the model that the team's code sends its next request to."""
        self._model = model

    def asks(self, planned: PlannedAnswer | None, settings: Any) -> None:
        given, sent = plain(dict(settings or {})), frozenset(self._sent())
        self._transcript.asks(planned, AskedModel(name=self._model, settings=given, sent_otherwise=sent))

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        self._was_asked, self._asked_at = True, planned.step if planned else self._asked_at
        if planned is not None and self._on_difference == "stop" and not self._is_recorded(planned):
            self.stopped_before = planned.step
            raise RanPastRecording(cursor)
        return super().answer(planned, cursor)

    def _is_recorded(self, planned: PlannedAnswer) -> bool:
        return self._look is None or self._transcript.is_recorded(planned, *self._look())

    def requested(
        self,
        planned: PlannedAnswer | None,
        rebuilt: list[ModelMessage],
        parameters: JsonObject,
        response: ModelResponse | None,
    ) -> None:
        source: StepSource = "recorded" if self._was_asked or response is None else "own_code"
        if response is None and self.stopped_before is not None:
            source = "unknown"
        self._transcript.request(planned, rebuilt, parameters, response, source=source)
        if response is None or planned is None:
            return  # past the recording's end there is nothing that it could differ from
        if source == "own_code":
            self._on_step(planned.step)
        self._compare_answer(planned, dump_message(response))

    def _is_asked_again(self, fixture: Fixture, arguments: JsonValue) -> bool:
        return not self.is_given_otherwise(fixture) and super()._is_asked_again(fixture, arguments)

    def is_given_otherwise(self, fixture: Fixture) -> bool:
        """Whether the tool of the call under way is given other arguments than then; that is a difference."""
        recorded, heard = self._transcript.recorded, self._transcript.heard()
        if recorded is None or heard is None or not is_told(recorded):
            return False
        found = first_other(recorded.steps[fixture.step - 1], heard, self._transcript.tally)
        if found is not None:
            self.differed(fixture.step, found)
        return found is not None

    def acted(self, act: JsonObject, found: Mismatch) -> None:
        """The team's code did something by itself that is not what was recorded at this place."""
        self.own_acts.append(act)
        self.differed(act["step"], found)

    def differed(self, step: int, found: Mismatch) -> None:
        """Calls of one answer may end in any order, so the earliest step counts."""
        if self._acted is None or step < (self._acted.step or 0):
            self._acted = Divergence(step=step, path=found.path, recorded=found.recorded, replayed=found.rebuilt)

    @property
    def has_own_answers(self) -> bool:
        return any(act["kind"] == "model" for act in self.own_acts)

    def _compare_answer(self, planned: PlannedAnswer, made: JsonObject) -> None:
        """What today's code answered itself, or made of the answer that it was given."""
        recorded, given = self._recorded_answer(planned), planned.response.value if planned.response else None
        if _said(recorded) == _said(made):
            return
        if self._was_asked and _said(given) != _said(made) and not self._has_raw_answers:
            self.changed_answer = self.changed_answer or planned.step
            return
        said = {"recorded": _answer(recorded), "now": _answer(made)}
        act = {"step": planned.step, "kind": "model", "name": "model", **said}
        self.acted(act, Mismatch(path="response", recorded=said["recorded"], rebuilt=said["now"]))

    def _recorded_answer(self, planned: PlannedAnswer) -> JsonValue:
        """With what the hooks of then had made of it."""
        run = self._transcript.recorded
        call = run.steps[planned.step - 1].call if run is not None else None
        return call.response.value if isinstance(call, ModelCall) and call.response else None

    @property
    def _has_raw_answers(self) -> bool:
        run = self._transcript.recorded
        return run is not None and is_told(run)


def _said(response: JsonValue) -> bytes:
    """What an answer says, without the marks of who gave it and when."""
    parts = response.get("parts") or [] if isinstance(response, dict) else []
    return canonical_json([_part(part) for part in parts])


def _part(part: JsonObject) -> JsonObject:
    return {name: part.get(name) for name in ("part_kind", "content", "tool_name", "args")}


def _answer(response: JsonValue) -> JsonObject | None:
    """An answer as people write it: `text` and `tool_calls`; None when none was recorded."""
    if response is None:
        return None
    parts = response.get("parts") or []
    texts = [str(part.get("content")) for part in parts if part.get("part_kind") == "text"]
    calls = [part for part in parts if part.get("part_kind") == "tool-call"]
    asked = [{"name": call.get("tool_name"), "arguments": call.get("args")} for call in calls]
    return {"text": "\n".join(texts) or None, "tool_calls": asked}
