"""Where a replay stops with the debugger of the terminal that it runs in."""

from __future__ import annotations

import bdb
import functools
import inspect
import pdb
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


class _Debugger(pdb.Pdb):
    """The debugger keeps it to itself that somebody left it; a replay has to end then."""

    has_left = False

    def set_quit(self) -> None:
        self.has_left = True
        super().set_quit()

    def leave_if_asked(self) -> None:
        if self.has_left:
            raise bdb.BdbQuit


@dataclass(frozen=True)
class Stops:
    """Numbers of model steps and names of tools."""

    steps: frozenset[int] = frozenset()
    tools: frozenset[str] = frozenset()

    @classmethod
    def of(cls, places: list[str]) -> Stops:
        """As they are typed: `5` is a step, anything else the name of a tool."""
        steps = frozenset(int(place) for place in places if place.isdecimal())
        return cls(steps, frozenset(place for place in places if not place.isdecimal()))

    def is_at_tool(self, name: str) -> bool:
        return name in self.tools

    def before_model(self, step: int, messages: Any, parameters: Any) -> None:
        """With `messages` and `parameters` of the request in scope."""
        if step in self.steps:
            _stop_with({"step": step, "messages": messages, "parameters": parameters}, f"before model step {step}")

    def before_call(self, name: str, arguments: Mapping[str, Any]) -> None:
        """With the arguments in scope, where the tool's own function does not run or is not to be had."""
        if name in self.tools:
            self.now(name, arguments)

    def now(self, name: str, arguments: Mapping[str, Any]) -> None:
        _stop_with(dict(arguments), f"before {name}")

    def stopping_in(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function; the debugger stops at its first line, with its arguments in scope."""
        if inspect.iscoroutinefunction(function):
            return _stopping_coroutine(function)

        @functools.wraps(function)
        def stopped(*args: Any, **named: Any) -> Any:
            debugger = _Debugger()
            result = debugger.runcall(function, *args, **named)
            debugger.leave_if_asked()
            return result

        return stopped


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
