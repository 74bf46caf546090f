"""Tool calls that did not end in a recorded answer: today's code refused them or answered them, or the tool ran."""

from __future__ import annotations

import json
from typing import Any

from pydantic import ValidationError
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ToolCallPart, ToolReturn

from sessions_app.agents.loop.transcript import Transcript
from sessions_app.agents.own_code.gate import Gate, plain, raw_arguments
from sessions_app.agents.own_code.recorded_http import RecordedHttp
from sessions_app.agents.own_code.stage import OwnStage
from sessions_app.agents.own_code.state import OwnState
from sessions_app.core.fork.answering import ToolAsk, tool_call_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.run import WAITING, ErrorInfo, Fixture, StepSource


class OwnCalls:
    """Compares them with what was recorded in their place."""

    def __init__(
        self,
        transcript: Transcript,
        stage: OwnStage,
        book: FixtureBook,
        gate: Gate,
        state: OwnState,
        http: RecordedHttp,
    ) -> None:
        self._transcript = transcript
        self._stage = stage
        self._book = book
        self._gate = gate
        self._state = state
        self._http = http
        self.drift: list[JsonObject] = []
        """Where live tools answer another thing than then: `tool`, `step`, `path`, `recorded`, `now`."""
        self.live: dict[str, int] = {}
        """How often each tool ran live."""

    def refused(self, call: ToolCallPart, refusal: Exception) -> None:
        """A check of the team's, or the tool itself, ended this call with an exception."""
        self._count(call)
        fixture = self._take(call)
        if fixture is None:
            return
        outcome, words = _refusal(refusal)
        source: StepSource = "live" if self._gate.is_live(call) else "own_code"
        is_as_then = fixture.call.outcome in (None, outcome) and self._says_the_same(call, fixture, words)
        source = "recorded" if is_as_then and not self._gate.has_run(call) else source
        says = {} if outcome in WAITING | {"crashed"} else {"result": words}
        error = ErrorInfo(type=type(refusal).__name__, message=str(refusal)) if outcome == "crashed" else None
        self._write_down(call, fixture, source, {**says, "outcome": outcome}, error)
        if not is_as_then:
            self._diverged(fixture, words)
        self._check_http(fixture)

    def _says_the_same(self, call: ToolCallPart, fixture: Fixture, words: JsonValue) -> bool:
        """What a check says comes with the next request; what the tool itself says is compared where it says it."""
        if not self._gate.has_run(call) or fixture.call.outcome in WAITING:
            return True
        error = fixture.error
        return words in ([_result(fixture)] if error is None else [error.message, f"{error.type}: {error.message}"])

    def answered(self, call: ToolCallPart, value: Any) -> None:
        """The tool ran, or a hook of the team's answered for it."""
        self._count(call)
        now = plain(value.return_value if isinstance(value, ToolReturn) else value)
        ran, fixture = self._gate.is_live(call), self._take(call)
        self._write_down(call, fixture, "live" if ran else "own_code", {"result": now, "outcome": "success"})
        if fixture is None:
            return
        found = _difference(fixture, now)
        if found is not None and ran:
            place = {"tool": call.tool_name, "step": fixture.step, "path": found.path}
            self.drift.append({**place, "recorded": found.recorded, "now": found.rebuilt})
            self._stage.differed(fixture.step, found)
        elif found is not None:
            self._diverged(fixture, now, found)
        self._check_http(fixture)

    def was_refused_then(self, fixture: Fixture) -> bool:
        """The arguments were refused then and pass today: what the tool would answer is not known."""
        if (fixture.call.retry or {}).get("cause") != "validation_error":
            return False
        self._diverged(fixture, "the arguments are accepted now")
        return True

    def _count(self, call: ToolCallPart) -> None:
        if self._gate.is_live(call):
            self.live[call.tool_name] = self.live.get(call.tool_name, 0) + 1

    def _take(self, call: ToolCallPart) -> Fixture | None:
        found = self._book.find(call.tool_name, call.tool_call_id, raw_arguments(call))
        return found if isinstance(found, Fixture) else None

    def _write_down(
        self,
        call: ToolCallPart,
        fixture: Fixture | None,
        source: StepSource,
        now: JsonObject,
        error: ErrorInfo | None = None,
    ) -> None:
        arguments, step = raw_arguments(call), fixture.step if fixture else 0
        ask = ToolAsk(at=0, name=call.tool_name, call_id=call.tool_call_id, arguments=arguments, key="")
        answer = {} if source == "recorded" else {"answer": tool_call_of(ask, now), "error": error}
        changed = self._state.change()
        self._transcript.call(
            call.tool_call_id,
            call.tool_name,
            arguments,
            step,
            source=source,
            state=changed,
            left=self._state.last,
            **answer,
        )

    def _check_http(self, fixture: Fixture) -> None:
        """What a call answers says more than what it did not send."""
        found = self._http.difference(fixture)
        if found is not None:
            self._stage.differed(fixture.step, found)

    def _diverged(self, fixture: Fixture, now: JsonValue, found: Mismatch | None = None) -> None:
        """`found` is the place within what it answered, where both are answers."""
        recorded = _result(fixture)
        act = {"step": fixture.step, "kind": "tool", "name": fixture.call.tool_name}
        whole = Mismatch(path="result", recorded=recorded, rebuilt=now)
        self._stage.acted({**act, "recorded": recorded, "now": now}, found or whole)


def _result(fixture: Fixture) -> JsonValue:
    if fixture.call.result is not None:
        return fixture.call.result.value
    return fixture.error.message if fixture.error else None


def _difference(fixture: Fixture, now: JsonValue) -> Mismatch | None:
    recorded = _result(fixture)
    return first_mismatch(recorded, now, raw=recorded, path="result", tally=Tally())


def _refusal(error: Exception) -> tuple[str, JsonValue]:
    """The outcome as recordings name it, and its words."""
    cause = getattr(error, "deferral", error)
    match cause:
        case ApprovalRequired():
            return "unapproved", "waits for approval"
        case CallDeferred():
            return "deferred", "waits for an answer from outside"
        case ValidationError():
            return "retried", json.loads(cause.json(include_url=False))
        case ToolRetryError():
            return "retried", plain(cause.tool_retry.content)
        case ModelRetry():
            return "retried", cause.message
        case ToolFailed():
            return "failed", str(cause)
        case ToolFailedError():  # what the library makes of the one above
            return "failed", plain(cause.tool_failed.content)
    return "crashed", f"{type(cause).__name__}: {cause}"
