"""Tool calls that did not end in a recorded answer: today's code refused them or answered them, or the tool ran."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable
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
from pydantic_ai.messages import ModelRequest, ToolCallPart, ToolReturn, ToolReturnPart, UserPromptPart
from pydantic_ai.tools import RunContext

from sessions_app.agents.loop.frozen_tools import hold_back
from sessions_app.agents.loop.library import dump_message
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.agents.own_code.gate import Gate, plain, raw_arguments
from sessions_app.agents.own_code.recorded_http import RecordedHttp
from sessions_app.agents.own_code.stage import OwnStage
from sessions_app.core.fork.answering import ToolAsk, tool_call_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.ran_with import code_behind, has_run, is_told
from sessions_app.core.replay.fixture_book import FixtureBook, reached_words
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.run import REPEATED, WAITING, ErrorInfo, Fixture, Run, StepSource, agents_in_tools


class OwnCalls:
    """Compares them with what was recorded in their place."""

    def __init__(
        self,
        transcript: Transcript,
        stage: OwnStage,
        book: FixtureBook,
        gate: Gate,
        http: RecordedHttp,
        run: Run,
    ) -> None:
        self._run = run
        self.ran_agent: Callable[[ToolCallPart], bool] = lambda call: True
        """Whether a run of another agent began in this call; where that is not told, none is missed."""
        self._transcript = transcript
        self._stage = stage
        self._book = book
        self._gate = gate
        self._http = http
        self.drift: list[JsonObject] = []
        """Where live tools answer another thing than then: `tool`, `step`, `path`, `recorded`, `now`."""
        self.hooks_not_run: frozenset[str] = frozenset()
        """The team's hooks that stand behind tools which gave their recorded answers."""
        self._agents_then = agents_in_tools(run) if is_told(run) else {}
        self.live: dict[str, int] = {}
        """How often each tool ran live."""

    def refused(self, call: ToolCallPart, refusal: Exception) -> None:
        """A check of the team's, or the tool itself, ended this call with an exception."""
        self._count(call)
        if isinstance(refusal, ApprovalRequired) and self._has_waited(call):
            return  # code approved it then while the run went on; the tool is called again, or the run ends otherwise
        fixture = self._take(call)
        if fixture is None:
            return
        outcome, words = _refusal(refusal)
        source: StepSource = "live" if self._gate.is_live(call) else "own_code"
        self._stage.is_given_otherwise(fixture)
        found = self._waits_otherwise(call, fixture, refusal)
        is_as_then = fixture.call.outcome in (None, outcome) and self._says_the_same(call, fixture, words)
        # What came from outside then is seen where the model is told of it.
        is_as_then = is_as_then or (outcome in WAITING and fixture.was_put_off)
        again = self._transcript.repeated_call(is_asked_again=True)
        source = again if is_as_then and not self._gate.has_run(call) else source
        says = {} if outcome in WAITING | {"crashed"} else {"result": words}
        is_error = outcome == "crashed" or isinstance(refusal, ToolRetryError | ToolFailedError)  # as recorders say
        error = ErrorInfo(type=type(refusal).__name__, message=str(refusal)) if is_error else None
        told = self._told(call, refusal)
        self._write_down(call, fixture, source, {**says, "outcome": outcome}, error, told=told)
        if not is_as_then or found is not None:
            found = found if is_as_then else _other_outcome(fixture, outcome, words)
            self._diverged(fixture, words, found, has_failed=outcome == "crashed")
        self._check_whether_it_ran(call, fixture)
        self._check_http(fixture)

    def _has_waited(self, call: ToolCallPart) -> bool:
        recorded = self.recorded(call)
        return recorded is not None and recorded.awaited is not None

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
        denied = self._book.denied(call.tool_name, call.tool_call_id, raw_arguments(call))
        ran, fixture = self._gate.is_live(call), denied or self._take(call)
        beside = _beside(value)
        told: JsonObject = {} if self._runs_now(call) else {"tool_ran": False}
        says = {"result": now, "outcome": "success", **beside}
        self._write_down(call, fixture, "live" if ran else "own_code", says, told=told)
        if fixture is None:
            return
        self._stage.is_given_otherwise(fixture)
        found = _difference(fixture, now) or (_other_outcome(fixture, "success", now) if denied is None else None)
        if found is None and (other := self._other_beside(fixture, beside)) is not None:
            self._stage.differed(fixture.step, other)
        if found is not None and ran:
            place = {"tool": call.tool_name, "step": fixture.step, "path": found.path}
            self.drift.append({**place, "recorded": found.recorded, "now": found.rebuilt})
            self._stage.differed(fixture.step, found)
        elif found is not None:
            self._diverged(fixture, now, found)
        if denied is None:
            self._check_whether_it_ran(call, fixture)
        self._check_http(fixture)

    def _other_beside(self, fixture: Fixture, beside: JsonObject) -> Mismatch | None:
        """What stands beside a result then or now; our recorder alone says that there was nothing."""
        for name in ("metadata", "content"):
            given = getattr(fixture.call, name)
            recorded, now = None if given is None else given.value, beside.get(name)
            if given is not None or is_told(self._run):
                found = first_mismatch(recorded, now, raw=recorded, path=name, tally=Tally())
                if found is not None:
                    return found
        return None

    def ended_before_tool(self, fixture: Fixture) -> bool:
        """A check or a hook ended the call then, and today it comes to the tool, whose answer is not known."""
        if not fixture.ended_before_tool:
            return False
        self._diverged(fixture, reached_words(fixture))
        return True

    def _check_whether_it_ran(self, call: ToolCallPart, fixture: Fixture) -> None:
        """Now alone, or no more; what is said may be the same, and says more where it is not."""
        ran, runs = has_run(self._run, self._run.steps[fixture.step - 1]), self._runs_now(call)
        if None not in (ran, runs) and ran != runs:
            self._stage.differed(fixture.step, Mismatch(path="tool_ran", recorded=ran, rebuilt=runs))
        self._check_agents_inside(call, fixture)

    def _check_agents_inside(self, call: ToolCallPart, fixture: Fixture) -> None:
        """What another agent asks ends the replay; that none was run any more does not."""
        then = self._agents_then.get(fixture.step)
        if then and self._gate.has_run(call) and not self.ran_agent(call):
            self._stage.differed(fixture.step, Mismatch(path="agents_inside", recorded=then, rebuilt=[]))

    def _runs_now(self, call: ToolCallPart) -> bool:
        """As the recorder says it: what the library has in front of a function belongs to the tool."""
        given = self._gate.given_now()
        return self._gate.has_run(call) or (given is not None and not code_behind(given))

    def _told(self, call: ToolCallPart, refusal: Exception) -> JsonObject:
        """As the recorder says it; nothing of a frozen tool, which ends as it ended then."""
        runs = self._runs_now(call)
        if runs and not self._gate.has_run(call):
            return {}
        metadata = plain(getattr(refusal, "metadata", None))
        return {"tool_ran": runs} | ({} if metadata is None else {"waits_with": metadata})

    def _waits_otherwise(self, call: ToolCallPart, fixture: Fixture, refusal: Exception) -> Mismatch | None:
        """The tool put its call off and says other things to whoever decides; what a recording does not tell of
        is not compared."""
        if not isinstance(refusal, CallDeferred | ApprovalRequired) or not self._gate.has_run(call):
            return None
        recorded, now = fixture.waits_with, plain(refusal.metadata)
        is_told = fixture.tool_ran is not None and fixture.call.outcome in WAITING
        return first_mismatch(recorded, now, raw=recorded, path="waits_with", tally=Tally()) if is_told else None

    def _count(self, call: ToolCallPart) -> None:
        if self._gate.is_live(call):
            self.live[call.tool_name] = self.live.get(call.tool_name, 0) + 1

    def recorded(self, call: ToolCallPart) -> Fixture | None:
        """What this call came to then; it stays to be given."""
        return self._book.look_up(call.tool_name, call.tool_call_id, raw_arguments(call))

    def hold_back(self, ctx: RunContext[Any], call: ToolCallPart) -> None:
        """As the tool itself did then, which does not run."""
        hold_back(self._book, ctx, call, raw_arguments(call))

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
        *,
        told: JsonObject,
    ) -> None:
        arguments, step = raw_arguments(call), fixture.step if fixture else 0
        ask = ToolAsk(at=0, name=call.tool_name, call_id=call.tool_call_id, arguments=arguments, key="")
        answer = {} if source in REPEATED else {"answer": tool_call_of(ask, now), "error": error}
        self._transcript.call(
            call.tool_call_id,
            call.tool_name,
            arguments,
            step,
            source=source,
            told=told,
            **answer,
        )

    def _check_http(self, fixture: Fixture) -> None:
        """What a call answers says more than what it did not send."""
        found = self._http.difference(fixture)
        if found is not None:
            self._stage.differed(fixture.step, found)

    def _diverged(
        self, fixture: Fixture, now: JsonValue, found: Mismatch | None = None, *, has_failed: bool = False
    ) -> None:
        """`found` is the place within what it answered, where both are answers."""
        recorded = _result(fixture)
        act = {"step": fixture.step, "kind": "tool", "name": fixture.call.tool_name}
        act |= {"has_failed": True} if has_failed else {}
        whole = Mismatch(path="result", recorded=recorded, rebuilt=now)
        if found is not None and found.path == _OUTCOME:
            recorded, now = f"{found.recorded}: {recorded}", f"{found.rebuilt}: {now}"
        self._stage.acted({**act, "recorded": recorded, "now": now}, found or whole)


def _result(fixture: Fixture) -> JsonValue:
    result = fixture.call.result
    if result is not None:
        # Bytes as `plain` writes them.
        return result.value if result.is_json or result.is_text else urlsafe_b64encode(result.content).decode()
    return fixture.error.message if fixture.error else None


def _beside(value: Any) -> JsonObject:
    """What a tool gives along with its result, as messages hold it."""
    if not isinstance(value, ToolReturn):
        return {}
    prompt = UserPromptPart(content=value.content or "")
    told = ToolReturnPart(tool_name="-", content="-", tool_call_id="-", metadata=value.metadata)
    first, second = dump_message(ModelRequest(parts=[prompt, told]))["parts"]
    said = {"content": value.content and first["content"], "metadata": second["metadata"]}
    return {name: each for name, each in said.items() if each is not None}


def _difference(fixture: Fixture, now: JsonValue) -> Mismatch | None:
    recorded = _result(fixture)
    return first_mismatch(recorded, now, raw=recorded, path="result", tally=Tally())


def _other_outcome(fixture: Fixture, outcome: str, words: JsonValue) -> Mismatch | None:
    """Where the same words were an answer then and are a failure now, or the other way round."""
    then = fixture.call.outcome
    if then in (None, outcome) or _difference(fixture, words) is not None:
        return None
    return Mismatch(path=_OUTCOME, recorded=then, rebuilt=outcome)


_OUTCOME = "outcome"


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
