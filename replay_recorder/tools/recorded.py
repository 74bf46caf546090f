"""Recording calls of tools where no framework does it, and knowing which of them change the world.

    @recorded_tool(kind="write")
    def cancel_order(order_id: str) -> str: ...

Tools of an agent whose framework is recorded need none of this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, ParamSpec, TypeVar, overload
from weakref import WeakKeyDictionary

from replay_recorder.context import Place, current_identity, inside, place_for_step
from replay_recorder.fork_lock import ForkLock
from replay_recorder.guard import guard
from replay_recorder.tools.calls import (
    answer_in,
    error_of,
    is_answer,
    is_coroutine_function,
    name_of,
    named_arguments,
    written,
    written_answer,
)
from replay_recorder.tools.tool_files import ToolRecorder
from replay_recorder.writing.json_text import JsonText, jsonable
from replay_recorder.writing.json_text import name as as_name
from replay_recorder.writing.run_writer import RunWriter

P = ParamSpec("P")
T = TypeVar("T")
ToolKind = Literal["read", "write"]
"""A read tool may run again in a replay; a write tool changes the world and must not."""


class ToolRegistry:
    """Tools by name, and of which kind they are. A tool that nobody has registered counts as a write tool."""

    def __init__(self) -> None:
        self._tools: dict[str, tuple[ToolKind, Callable[..., Any]]] = {}
        self._lock = ForkLock()

    def register_read_tool(self, name: str, func: Callable[P, T], *, recorded: bool = False) -> Callable[P, T]:
        """Returns the tool as it is registered; `recorded` wraps it in `recorded_tool`."""
        return self._register("read", name, func, recorded)

    def register_write_tool(self, name: str, func: Callable[P, T], *, recorded: bool = False) -> Callable[P, T]:
        """The same for a tool with side effects."""
        return self._register("write", name, func, recorded)

    def _register(self, kind: ToolKind, name: str, function: Callable[P, T], recorded: bool) -> Callable[P, T]:
        tool = _wrapped(function, kind, name, None) if recorded else function
        self.add(kind, name, tool)
        return tool

    def add(self, kind: ToolKind, name: str, function: Callable[..., Any]) -> None:
        """A tool that was there under this name is replaced; raises `ValueError` for an unknown kind."""
        if kind not in ("read", "write"):
            raise ValueError(f"The kind of a tool is read or write and not {kind!r}.")
        with self._lock:
            self._tools[name] = (kind, function)

    def kind(self, name: str) -> ToolKind | None:
        """None when the tool is not registered."""
        with self._lock:
            found = self._tools.get(name)
        return None if found is None else found[0]

    def is_write_tool(self, name: str) -> bool:
        return self.kind(name) != "read"

    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """All tools by name, in the order in which they were registered."""
        with self._lock:
            return {name: function for name, (_, function) in self._tools.items()}


REGISTRY = ToolRegistry()
"""Where `recorded_tool` notes kinds."""


@overload
def recorded_tool(
    fn: Callable[P, T],
    /,
    *,
    kind: ToolKind | None = None,
    name: str | None = None,
    recorder: ToolRecorder | None = None,
) -> Callable[P, T]: ...
@overload
def recorded_tool(
    *, kind: ToolKind | None = None, name: str | None = None, recorder: ToolRecorder | None = None
) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def recorded_tool(
    fn: Any = None, /, *, kind: ToolKind | None = None, name: str | None = None, recorder: ToolRecorder | None = None
) -> Any:
    """Record every call of a function, sync or async, as a tool step of the run that it happens in.

    `kind` is `read` or `write` and is noted in `REGISTRY`; without it the tool is unknown there, which counts as
    write. `name` is by default the function's. A `ToolRecorder` gets every call, also outside a run. What the
    function answers and raises stays as it is.
    """
    if fn is None:
        return lambda fn: recorded_tool(fn, kind=kind, name=name, recorder=recorder)
    if isinstance(fn, staticmethod | classmethod):
        return type(fn)(recorded_tool(fn.__func__, kind=kind, name=name, recorder=recorder))
    called = name or name_of(fn)
    tool = _wrapped(fn, kind, called, recorder)
    if kind is not None:
        REGISTRY.add(kind, called, tool)
    return tool


class RecordedTool:
    """A tool whose every call, with its answer or exception, goes to a `ToolRecorder`."""

    def __init__(self, tool_func: Callable[..., Any], recorder: ToolRecorder) -> None:
        self.tool_func = tool_func
        self.recorder = recorder
        self._tool = _wrapped(tool_func, None, name_of(tool_func), recorder)
        functools.update_wrapper(self, tool_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._tool(*args, **kwargs)


def _wrapped(
    function: Callable[..., Any], kind: ToolKind | None, name: str, recorder: ToolRecorder | None
) -> Callable[..., Any]:
    def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
        with guard("tool"):
            place = place_for_step()
            if place is not None or recorder is not None:
                return _Call(name, kind, named_arguments(function, args, kwargs), place, recorder)
        return None

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        try:
            with call.inside:
                answer = function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.answered(answer)
        return answer

    @functools.wraps(function)
    async def async_wrapper(*args: Any, **kwargs: Any) -> Any:
        call = begin(args, kwargs)
        if call is None:
            return await function(*args, **kwargs)
        try:
            with call.inside:
                answer = await function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        call.answered(answer)
        return answer

    return async_wrapper if is_coroutine_function(function) else wrapper


class _Call:
    """One call of a tool: a step where there is a run, and a line for a `ToolRecorder`."""

    def __init__(
        self,
        name: str,
        kind: ToolKind | None,
        arguments: dict[str, Any] | None,
        place: Place | None,
        recorder: ToolRecorder | None,
    ) -> None:
        self._name = name
        self._recorder = recorder
        # Now, for the tool may change what it was given.
        self._arguments = None if recorder is None else jsonable(arguments)
        self._step: _ToolStep | None = None
        self.inside: AbstractContextManager[None] = nullcontext()
        with guard("tool_began"):
            if place is not None:
                self._step = _ToolStep(name, kind, None if arguments is None else written(arguments), place)
                self.inside = inside(self._step.place)

    def answered(self, answer: Any) -> None:
        with guard("tool_answered"):
            if self._step is not None:
                self._step.end(outcome="success", result=written_answer(answer))
        with guard("tool_recorder"):
            if self._recorder is not None:
                self._record(answer)

    def _record(self, answer: Any) -> None:
        assert self._recorder is not None
        result, captured = None, False
        with guard("tool_result"):
            captured = is_answer(answer)
            result = jsonable(answer_in(answer)) if captured else None
        self._recorder.record(self._name, self._arguments, result, captured=captured)

    def failed(self, error: BaseException) -> None:
        said = error_of(error)
        with guard("tool_failed"):
            if self._step is not None:
                # Cancelled or interrupted from outside, the tool itself did not fail.
                self._step.end(outcome="crashed" if isinstance(error, Exception) else "interrupted", error=said)
        with guard("tool_recorder"):
            if self._recorder is not None:
                self._recorder.record(self._name, self._arguments, None, error=said)


class _ToolStep:
    """The step of a call that is going on. A call that is the same as one that failed before says so."""

    def __init__(self, name: str, kind: ToolKind | None, arguments: JsonText | None, place: Place) -> None:
        self._run = place.run
        self._attempt = (place.step, name, arguments)
        self._failed_attempts = _failed.setdefault(place.run, {})
        index = place.run.begin(
            "tool",
            name=as_name(name),
            tool_name=as_name(name),
            parent=place.step,
            arguments=arguments,
            tool_kind=kind,
            retry_of=self._failed_attempts.get(self._attempt),
            **current_identity().step_fields(),
        )
        self.place = Place(run=place.run, step=index)

    def end(self, **fields: Any) -> None:
        assert self.place.step is not None
        self._run.end(self.place.step, **fields)
        if "error" in fields:
            self._failed_attempts[self._attempt] = self.place.step
        else:
            self._failed_attempts.pop(self._attempt, None)


_failed: WeakKeyDictionary[RunWriter, dict[tuple[int | None, str, JsonText | None], int]] = WeakKeyDictionary()
"""Steps of calls that failed, by the step around them, the tool and its arguments: the same again is a retry."""
