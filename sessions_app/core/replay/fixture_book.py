"""Frozen tool answers: by call id, else by name and arguments in recorded order.

The id decides. A call whose id was recorded gets the answer to that call or none: with other arguments it is another
call, and the answer to an equal call beside it is kept for that one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import JsonObject, JsonValue, Payload, canonical_json, compact_json
from sessions_app.core.replay.tool_http import RequestMiss
from sessions_app.core.run import TOLD_TO_THE_MODEL, WAITING, Fixture, ToolCall

_NEAREST = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class FixtureMiss:
    """A call that no recorded answer fits, with the recorded calls of the same tool."""

    tool_name: str
    call_id: str | None
    arguments: JsonValue
    nearest: tuple[Fixture, ...]
    request: RequestMiss | None = None
    """The request that the tool sent, where its own function runs and this is what has no answer."""
    is_of_agent: bool = False
    """Whether another agent that the code ran asked for it."""
    is_recorded_call: bool = False
    """Whether a recorded answer of the model asked for this very call, so that no other one is its measure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedOutput:
    """An output that the run was asked to give again."""

    words: JsonValue
    retry: JsonObject | None
    """As `ToolCall.retry`."""


class FixtureBook:
    """Each recorded answer is given once."""

    def __init__(
        self,
        fixtures: tuple[Fixture, ...],
        asked: frozenset[str] = frozenset(),
        refused: Mapping[str, Sequence[ToolCall]] | None = None,
        denied: Mapping[str, Fixture] | None = None,
    ) -> None:
        """`asked` are the ids of the calls that the recorded model answers ask for, `refused` those whose
        output was refused, by their ids, and `denied` calls of which the tool asked for an approval that nobody gave.
        """
        self._denied = denied or {}
        self._unused = list(fixtures)
        self._asked = asked
        self._refused = {call_id: list(calls) for call_id, calls in (refused or {}).items()}

    def find(self, tool_name: str, call_id: str | None, arguments: JsonValue) -> Fixture | FixtureMiss:
        """The answer for this call, or what comes nearest. Arguments are the validated ones."""
        fixture = self.look_up(tool_name, call_id, arguments)
        if fixture is None:
            candidates = self._candidates(call_id)
            miss = missing(tool_name, call_id, arguments, candidates or self._unused)
            return replace(miss, is_recorded_call=call_id in self._asked and not candidates)
        self._unused.remove(fixture)
        return fixture

    def look_up(self, tool_name: str, call_id: str | None, arguments: JsonValue) -> Fixture | None:
        """The answer that `find` would give next, which stays to be given."""
        candidates = self._candidates(call_id)
        return next((each for each in candidates if matches(each, tool_name, arguments)), None)

    def awaited_approval(self, tool_name: str, call_id: str | None, arguments: JsonValue) -> Fixture | None:
        """This call as it was denied, or approved, behind its tool that had asked for an approval."""
        found = self.look_up(tool_name, call_id, arguments)
        if found is not None:
            return found if found.awaited == "approval" else None
        return self.denied(tool_name, call_id, arguments)

    def denied(self, tool_name: str, call_id: str | None, arguments: JsonValue) -> Fixture | None:
        """This call as it was denied then, behind its tool that had asked for an approval."""
        is_answered = self.look_up(tool_name, call_id, arguments) is not None
        return None if call_id is None or is_answered else self._denied.get(call_id)

    def _candidates(self, call_id: str | None) -> list[Fixture]:
        by_id = [f for f in self._unused if call_id is not None and f.call.call_id == call_id]
        if by_id:  # an id that comes again belongs to another answer
            return [f for f in by_id if f.parent == by_id[0].parent]
        if call_id not in self._asked:
            return self._unused
        return [f for f in self._unused if f.call.call_id not in self._asked]

    def take_refused(self, call_id: str, tool_name: str) -> Fixture | None:
        """The recorded answer to this call, if it is that its arguments did not validate; the id may come again."""
        of_call = (each for each in self._unused if (each.call.call_id, each.call.tool_name) == (call_id, tool_name))
        fixture = next(of_call, None)
        if fixture is None or (fixture.call.retry or {}).get("cause") != "validation_error":
            return None
        self._unused.remove(fixture)
        return fixture

    def was_refused(self, call_id: str) -> bool:
        """Whether the next recorded step of this output says that it was refused."""
        return bool(self._refused.get(call_id))

    def refused_output(self, call_id: str) -> RefusedOutput | None:
        """How the recorded step of this output was refused; None where it says nothing."""
        refused = self._refused.get(call_id) or []
        return _refused(refused.pop(0)) if refused else None

    def refused_alike(self, tool_name: str, arguments: bytes) -> RefusedOutput | None:
        """How the recording refused the same output of another call; `arguments` are in their canonical spelling."""
        for calls in self._refused.values():
            for call in calls:
                if call.tool_name == tool_name and call.arguments and call.arguments.canonical == arguments:
                    calls.remove(call)
                    return _refused(call)
        return None

    def awaits_beside(self, fixture: Fixture) -> bool:
        """Whether answers to other calls of the same answer, which the loop heard, are still to be given."""
        beside = (each for each in self._unused if each.parent == fixture.parent and each is not fixture)
        return any(each.call.result is not None and not each.is_unheard for each in beside)

    @property
    def left_over(self) -> list[Fixture]:
        """Answers and errors that were recorded and never asked for."""
        return [fixture for fixture in self._unused if fixture.has_ended]


def _refused(call: ToolCall) -> RefusedOutput | None:
    words = None if call.result is None else _as_told(call.result.value)
    return None if words is None else RefusedOutput(words=words, retry=call.retry)


def _as_told(words: JsonValue) -> JsonValue:
    """The library takes a list of errors or a text."""
    is_list = isinstance(words, list) and all(isinstance(each, dict) for each in words)
    return words if is_list or isinstance(words, str) else str(words)


def missing(tool_name: str, call_id: str | None, arguments: JsonValue, fixtures: Iterable[Fixture]) -> FixtureMiss:
    """A call that none of these answers, with those of the same tool."""
    of_call = [fixture for fixture in fixtures if fixture.call.tool_name == tool_name or _is_of(fixture, call_id)]
    nearest = tuple(sorted(of_call, key=lambda fixture: not _is_of(fixture, call_id)))[:_NEAREST]
    return FixtureMiss(tool_name=tool_name, call_id=call_id, arguments=arguments, nearest=nearest)


def _is_of(fixture: Fixture, call_id: str | None) -> bool:
    return call_id is not None and fixture.call.call_id == call_id


def was_never_answered(fixture: Fixture) -> bool:
    """A recorded call without an end, as when the run broke off. What waits or crashed has one of its own."""
    call = fixture.call
    has_failed = fixture.error is not None and call.outcome not in TOLD_TO_THE_MODEL
    return call.result is None and not has_failed and call.outcome not in WAITING | {"crashed"}


def matches(fixture: Fixture, tool_name: str, arguments: JsonValue) -> bool:
    """Arguments that were not captured can be any."""
    if fixture.call.tool_name != tool_name:
        return False
    recorded = fixture.call.arguments
    return recorded is None or _canonical(recorded) == canonical_json(arguments)


def is_same_call(call: ToolCall, arguments: JsonValue) -> bool:
    """Whether its arguments were these to the letter, as far as they were captured: `matches` takes other orders and
    numbers too."""
    asked = recorded_arguments(Payload.of_json(arguments))
    return call.arguments is None or same_json(recorded_arguments(call.arguments), asked)


def _canonical(arguments: Payload) -> bytes:
    return canonical_json(recorded_arguments(arguments))


def recorded_arguments(arguments: Payload | None) -> JsonValue:
    """No arguments and an empty text both mean an empty object to the loop."""
    if arguments is None or arguments.parsed in (None, ""):
        return {}
    return sayable(arguments.parsed)


def sayable(arguments: JsonValue) -> JsonValue:
    """Numbers that the loop reads and JSON does not know, such as NaN, leave only a text to keep and to compare."""
    read = _read_as_python(arguments)
    try:
        _strictly(read)
    except ValueError:
        return compact_json(read).decode()
    except RecursionError:
        pass
    return arguments


def _read_as_python(arguments: JsonValue) -> JsonValue:
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments


_strictly = json.JSONEncoder(allow_nan=False).encode


NO_LONGER_WAITS = "it no longer waits: the call reaches the tool now"
"""Of a call that was left open for somebody outside of the run."""


def reached_words(fixture: Fixture) -> str:
    """What became of a call that nothing ends in front of its tool any more."""
    is_of_arguments = (fixture.call.retry or {}).get("cause") == "validation_error"
    return "the arguments are accepted now" if is_of_arguments else "the call reaches the tool now"
