"""What stands around the loop of a team's own agent: its code of today with the answers of then."""

from __future__ import annotations

from collections.abc import Callable

from pydantic_ai.messages import ModelMessage, ModelResponse

from sessions_app.agents.conversation import Conversation
from sessions_app.agents.library import dump_message
from sessions_app.agents.outcomes import RanPastRecording
from sessions_app.agents.stage import OnStep, RecordedStage
from sessions_app.agents.transcript import Transcript
from sessions_app.core.fork.answering import ModelGiven
from sessions_app.core.fork.stops import Stops
from sessions_app.core.payload import JsonObject, JsonValue, canonical_json
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.matching import Mismatch
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.plan import PlannedAnswer
from sessions_app.core.run import StepSource

Look = Callable[[], tuple[list[ModelMessage], JsonObject]]


class OwnStage(RecordedStage):
    """Gives the recorded answers as long as the conversation is the recorded one.

    Another prompt or other tools are a difference and no reason to stop: what the model said to the conversation
    stands. Where the conversation differs, what it would have said is not known.
    """

    def __init__(self, transcript: Transcript, book: FixtureBook, stops: Stops, on_step: OnStep) -> None:
        super().__init__(transcript, book, stops, on_step)
        self.own_acts: list[JsonObject] = []
        """What the team's code of today did by itself: `step`, `kind`, `name`, `recorded`, `now`."""
        self.divergence: Divergence | None = None
        """Where it went another way. Another prompt alone is none; the transcript has that."""
        self.stopped_before: int | None = None
        """The first model step whose conversation is another."""
        self._conversation = Conversation()
        self._look: Look | None = None
        self._was_asked = False

    def watch(self, look: Look) -> None:
        self._look, self._was_asked = look, False

    def answer(self, planned: PlannedAnswer | None, cursor: int) -> ModelGiven:
        self._was_asked = True
        if planned is not None and self._look is not None:
            self._keep_to_recording(planned, cursor, self._look()[0])
        return super().answer(planned, cursor)

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
        if source == "own_code" and response is not None:
            self._answered_itself(planned, response)

    def acted(self, act: JsonObject, path: str) -> None:
        """The team's code did something by itself that is not what was recorded at `path`."""
        self.own_acts.append(act)
        self._diverged(act["step"], Mismatch(path=path, recorded=act["recorded"], rebuilt=act["now"]))

    @property
    def has_own_answers(self) -> bool:
        return any(act["kind"] == "model" for act in self.own_acts)

    def _diverged(self, step: int | None, found: Mismatch) -> None:
        if self.divergence is None:
            self.divergence = Divergence(step=step, path=found.path, recorded=found.recorded, replayed=found.rebuilt)

    def _keep_to_recording(self, planned: PlannedAnswer, cursor: int, rebuilt: list[ModelMessage]) -> None:
        found = self._conversation.first_difference(planned.history, rebuilt)
        if found is not None:
            self.stopped_before = planned.step
            self._diverged(planned.step, found)
            raise RanPastRecording(cursor)

    def _answered_itself(self, planned: PlannedAnswer | None, response: ModelResponse) -> None:
        """Past the recording's end there is nothing that it could differ from."""
        if planned is None:
            return
        self._on_step(planned.step)
        recorded, given = planned.response.value if planned.response else None, dump_message(response)
        if _said(recorded) != _said(given):
            said = {"recorded": _answer(recorded), "now": _answer(given)}
            self.acted({"step": planned.step, "kind": "model", "name": "model", **said}, "response")


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
