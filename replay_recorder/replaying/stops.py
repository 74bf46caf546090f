"""Where a replay stops: with the debugger of the terminal that it runs in, or for whoever watches it."""

from __future__ import annotations

import bdb
import functools
import inspect
import pdb
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replay_recorder.replaying.recording import RecordedCall, Recording

_one_after_the_other = threading.Lock()
"""Calls of one answer run in threads of their own, and there is one terminal."""


class _Debugger(pdb.Pdb):
    """The debugger keeps it to itself that somebody left it; a replay has to end then."""

    has_left = False

    def __init__(self) -> None:
        super().__init__(skip=["bdb"])  # `s` at the end of a tool goes on, and not through the debugger itself

    def set_quit(self) -> None:
        self.has_left = True
        super().set_quit()

    def leave_if_asked(self) -> None:
        if self.has_left:
            raise bdb.BdbQuit


@dataclass(frozen=True)
class Stops:
    """Numbers of model steps, names of tools, and single calls."""

    steps: frozenset[int] = frozenset()
    tools: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    """Their ids."""
    reached_model: Callable[[int], None] = lambda step: None
    """Told of each model step before it is answered. What it raises ends the replay."""
    reached_call: Callable[[str, str | None, Mapping[str, Any]], None] = lambda name, call_id, arguments: None
    """Likewise of each call that comes to a tool."""

    @classmethod
    def of(cls, places: list[str], recording: Recording) -> Stops:
        """As they are typed: `5` is a step, anything else the name of a tool. Raises `ValueError` for a place that the
        replay of this recording never comes to."""
        numbers = frozenset(int(place) for place in places if place.isdecimal())
        names = frozenset(place for place in places if not place.isdecimal())
        calls = [call for call in recording.calls if call.is_answered_by_tool]
        models = frozenset(answer.step for answer in recording.answers)
        by_id = {call.step: call.call_id for call in calls if call.call_id is not None}
        for place in [*(numbers - models - by_id.keys()), *(names - {call.name for call in calls})]:
            raise ValueError(f"--break {place}: {recording.run_id} {_where_it_can_stop(models, calls)}")
        return cls(numbers & models, names, frozenset(by_id[number] for number in numbers - models))

    def is_at_tool(self, name: str, call_id: str | None) -> bool:
        return name in self.tools or call_id in self.calls

    def before_model(self, step: int, messages: Any, parameters: Any) -> None:
        """With `messages` and `parameters` of the request in scope."""
        self.reached_model(step)
        if step in self.steps:
            _stop_with({"step": step, "messages": messages, "parameters": parameters}, f"before model step {step}")

    def before_call(self, name: str, call_id: str | None, arguments: Mapping[str, Any]) -> None:
        """With the arguments in scope, for a tool whose own function does not run."""
        self.reached_call(name, call_id, arguments)
        if self.is_at_tool(name, call_id):
            self.now(name, arguments)

    def now(self, name: str, arguments: Mapping[str, Any]) -> None:
        _stop_with(dict(arguments), f"before {name}")

    def stopping_in(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; the debugger stops at its first line, with its arguments in scope."""
        if inspect.iscoroutinefunction(function):
            return _stopping_coroutine(function)

        @functools.wraps(function)
        def stopped(*args: Any, **named: Any) -> Any:
            with _one_after_the_other:
                debugger = _Debugger()
                result = debugger.runcall(function, *args, **named)
                debugger.leave_if_asked()
                return result

        return stopped


def _where_it_can_stop(models: frozenset[int], calls: list[RecordedCall]) -> str:
    tools = ", ".join(f"{call.name} (step {call.step})" for call in calls) or "none"
    return f"has model steps {', '.join(map(str, sorted(models))) or 'none'} and calls of tools: {tools}."


def _stopping_coroutine(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def stopped(*args: Any, **named: Any) -> Any:
        debugger = _Debugger()
        debugger.reset()
        work = function(*args, **named)
        sys.settrace(debugger.trace_dispatch)
        return await work

    return stopped


def _stop_with(names: dict[str, Any], where: str) -> None:
    """A prompt whose local names are these; `continue` goes on."""
    print(f"Stopped {where}. In scope: {', '.join(names) or 'nothing'}.")
    debugger = _Debugger()
    debugger.runctx(f"'{where}'", {"__name__": "__replay__"}, names)
    debugger.leave_if_asked()
