"""Recording a function as a run: `@record`, for agents without a framework and for code around one.

    @record
    async def support(question: str) -> str: ...

The run holds what the function was asked and what it answered, the requests that its code sends to models, and the
tools, searches and snapshots in between; see `function_scope` for when it is opened.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import nullcontext
from typing import Any, ParamSpec, TypeVar, overload

from replay_recorder.function_scope import FunctionScope
from replay_recorder.guard import guard
from replay_recorder.raw_http.tee import patch_transports, tee_clients
from replay_recorder.recorder import Recorder, active
from replay_recorder.tools.calls import bound_arguments, is_coroutine_function, name_of, written, written_answer
from replay_recorder.writing.json_text import JsonText
from replay_recorder.writing.run_writer import NULL

P = ParamSpec("P")
T = TypeVar("T")
Facts = Mapping[str, Any] | Callable[..., Mapping[str, Any] | None] | None
Enter = Callable[[tuple[Any, ...], dict[str, Any]], "FunctionScope | None"]
"""Gets the arguments of a call; None when nothing is recorded."""


@overload
def record(function: Callable[P, T], /) -> Callable[P, T]: ...
@overload
def record(*, name: str | None = None, context: Facts = None) -> Callable[[Callable[P, T]], Callable[P, T]]: ...
def record(function: Any = None, /, *, name: str | None = None, context: Facts = None) -> Any:
    """Record every call of a function as a run: functions, coroutine functions, generators of both kinds.

    `name` is the agent's name, by default the function's. `context` is what `replay_recorder.context` takes: a
    mapping, or a callable that gets the function's arguments. What the function answers and raises stays as it is.
    """
    if function is None:
        return lambda function: _recorded(function, name, context)
    return _recorded(function, name, context)


def _recorded(function: Any, name: str | None, context: Facts) -> Any:
    if isinstance(function, staticmethod | classmethod):
        return type(function)(_recorded(function.__func__, name, context))

    def enter(args: tuple[Any, ...], kwargs: dict[str, Any]) -> FunctionScope | None:
        with guard("record"):
            recorder = active()
            if recorder is not None:
                _hear_clients(recorder)
                facts = _facts(context, args, kwargs)
                return FunctionScope(recorder, name or name_of(function), facts, _input(function, args, kwargs))
        return None

    return functools.wraps(function)(_wrapper(function)(function, enter))


def _hear_clients(recorder: Recorder) -> None:
    """Once for each recorder, and then only those that came past our finder of modules."""
    if recorder.hears_clients:
        patch_transports()
    else:
        recorder.hears_clients = True
        tee_clients()


def _facts(context: Facts, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    with guard("record_context"):
        return dict((context(*args, **kwargs) if callable(context) else context) or {})
    return {}


def _input(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonText | None:
    """A single text or bytes as it is, else all that was passed."""
    with guard("input"):
        named = bound_arguments(function, args, kwargs)
        only = next(iter(named.values())) if len(named) == 1 else None
        return written(only if isinstance(only, str | bytes) else named)
    return None


def _wrapper(function: Any) -> Callable[[Any, Enter], Any]:
    if inspect.isasyncgenfunction(function):
        return _async_stream
    if inspect.isgeneratorfunction(function):
        return _stream
    return _coroutine if is_coroutine_function(function) else _plain


def _plain(function: Callable[..., Any], enter: Enter) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        scope = enter(args, kwargs)
        if scope is None:
            return function(*args, **kwargs)
        try:
            with scope:
                answer = function(*args, **kwargs)
        except BaseException as error:
            scope.failed(error)
            raise
        scope.answered(written_answer(answer))
        return answer

    return wrapper


def _coroutine(function: Callable[..., Awaitable[Any]], enter: Enter) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        scope = enter(args, kwargs)
        if scope is None:
            return await function(*args, **kwargs)
        try:
            with scope:
                answer = await function(*args, **kwargs)
        except BaseException as error:
            scope.failed(error)
            raise
        scope.answered(written_answer(answer))
        return answer

    return wrapper


class Said:
    """What a stream has said; each item is written down when it is said."""

    def __init__(self, limit: int) -> None:
        """`limit` in characters: one item more is kept, and then the recording says that it was too long."""
        self._items: list[str] = []
        self._left = limit

    def add(self, item: Any) -> None:
        with guard("stream"):
            if self._left > 0:
                text = item if isinstance(item, str) else written(item) or NULL
                self._left -= len(text)
                self._items.append(text)

    @property
    def so_far(self) -> JsonText | None:
        return self.whole if self._items else None

    @property
    def whole(self) -> JsonText | None:
        """One text when all items are text, else a list of them."""
        is_text = self._items and not any(isinstance(item, JsonText) for item in self._items)
        return written("".join(self._items) if is_text else self._items)


def _said(scope: FunctionScope | None) -> Said:
    return Said(0 if scope is None else scope.max_output)


def _stream(function: Callable[..., Generator[Any, Any, Any]], enter: Enter) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        scope = enter(args, kwargs)
        if scope is None:
            return (yield from function(*args, **kwargs))
        said = _said(scope)
        try:
            answer = yield from _turns(function(*args, **kwargs), scope, said)
        except BaseException as error:
            scope.failed(error, said.so_far)
            raise
        scope.answered(said.whole)
        return answer

    return wrapper


def _turns(stream: Generator[Any, Any, Any], scope: FunctionScope, said: Said) -> Generator[Any, Any, Any]:
    """`yield from`, with every turn of the generator inside the scope: between them the code runs elsewhere."""
    resume: Callable[[], Any] = functools.partial(next, stream)
    while True:
        try:
            with scope:
                item = resume()
        except StopIteration as end:
            return end.value
        said.add(item)
        try:
            resume = functools.partial(stream.send, (yield item))
        except GeneratorExit:
            with scope:
                stream.close()
            raise
        except BaseException as error:
            resume = functools.partial(stream.throw, error)


def _async_stream(function: Callable[..., AsyncGenerator[Any, Any]], enter: Enter) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        scope = enter(args, kwargs)
        said, stream = _said(scope), function(*args, **kwargs)
        # An asynchronous generator cannot hand over to another one; so this is `_turns` once more.
        resume: Callable[[], Awaitable[Any]] = stream.__anext__
        try:
            while True:
                try:
                    with scope or nullcontext():
                        item = await resume()
                except StopAsyncIteration:
                    break
                said.add(item)
                try:
                    resume = functools.partial(stream.asend, (yield item))
                except GeneratorExit:
                    with scope or nullcontext():
                        await stream.aclose()
                    raise
                except BaseException as error:
                    resume = functools.partial(stream.athrow, error)
        except BaseException as error:
            if scope is not None:
                scope.failed(error, said.so_far)
            raise
        if scope is not None:
            scope.answered(said.whole)

    return wrapper
