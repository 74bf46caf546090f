"""Models of the OpenAI Agents SDK, watched as they answer: what they are given, what they give, what goes wrong."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from typing import Any, Protocol

from replay_recorder.guard import guard
from replay_recorder.hooks.openai_agents_items import Json

_ARGUMENTS = ("system_instructions", "input", "model_settings", "tools", "output_schema", "handoffs", "tracing")
"""Of `Model.get_response` and `Model.stream_response`, in their order."""


class Attempts(Protocol):
    """Who is told of the attempts to get one answer. Every method may raise; it is guarded here."""

    is_busy: bool
    """Whether an attempt is under way: a model that asks another one is one attempt."""

    def began(self, model: Any, given: Json) -> None: ...
    def streamed(self, event: Any) -> None: ...
    def answered(self, response: Any) -> None:
        """The SDK's `ModelResponse`, or the final `Response` of a stream."""

    def failed(self, error: BaseException) -> None: ...
    def noted(self, answer: Any) -> None:
        """The answer as the provider's client gave it: `ChatCompletion` or `Response`."""


current_attempts: ContextVar[Attempts | None] = ContextVar("replay_recorder_openai_attempts", default=None)
"""Of the request that is under way in the current code."""


def watch_models(base: type) -> None:
    """Watch every class of models that is loaded by now; `base` is the SDK's `Model`."""
    for model in _subclasses(base):
        for method, watched in _WATCHED.items():
            original = model.__dict__.get(method)
            if inspect.isfunction(original) and not hasattr(original, "replay_recorder"):
                replaced: Any = functools.wraps(original)(watched(original))
                replaced.replay_recorder = True
                setattr(model, method, replaced)


def _subclasses(base: type) -> Iterator[type]:
    model: type
    for model in base.__subclasses__():
        yield model
        yield from _subclasses(model)


def _begin(model: Any, args: tuple[Any, ...], named: Json) -> Attempts | None:
    attempts = current_attempts.get()
    if attempts is None or attempts.is_busy:
        return None
    attempts.is_busy = True
    with guard("model_began"):
        attempts.began(model, {**dict(zip(_ARGUMENTS, args, strict=False)), **named})
    return attempts


def _end(attempts: Attempts, error: BaseException | None = None) -> None:
    attempts.is_busy = False
    if error is not None:
        with guard("model_failed"):
            attempts.failed(error)


def _watched_response(original: Callable[..., Any]) -> Callable[..., Any]:
    async def get_response(self: Any, *args: Any, **named: Any) -> Any:
        attempts = _begin(self, args, named)
        if attempts is None:
            return await original(self, *args, **named)
        try:
            response = await original(self, *args, **named)
        except BaseException as error:
            _end(attempts, error)
            raise
        with guard("model_answered"):
            attempts.answered(response)
        _end(attempts)
        return response

    return get_response


def _watched_stream(original: Callable[..., Any]) -> Callable[..., Any]:
    def stream_response(self: Any, *args: Any, **named: Any) -> Any:
        attempts = _begin(self, args, named)
        if attempts is None:
            return original(self, *args, **named)
        try:
            return _Watched(original(self, *args, **named), attempts)
        except BaseException as error:
            _end(attempts, error)
            raise

    return stream_response


def _watched_fetch(original: Callable[..., Any]) -> Callable[..., Any]:
    async def _fetch_response(self: Any, *args: Any, **named: Any) -> Any:
        answer = await original(self, *args, **named)
        with guard("model_noted"):
            attempts = current_attempts.get()
            if attempts is not None and attempts.is_busy:
                attempts.noted(answer)
        return answer

    return _fetch_response


_WATCHED = {
    "get_response": _watched_response,
    "stream_response": _watched_stream,
    # What the SDK's models ask their client with: their own answer holds neither the model that answered nor why
    # it stopped.
    "_fetch_response": _watched_fetch,
}


class _Watched:
    """A stream of events as the SDK reads it, with everything else that it has."""

    def __init__(self, stream: AsyncIterator[Any], attempts: Attempts) -> None:
        self._stream = stream
        self._events = stream
        self._attempts = attempts

    def __aiter__(self) -> _Watched:
        self._events = self._stream.__aiter__()
        return self

    async def __anext__(self) -> Any:
        try:
            event = await self._events.__anext__()
        except StopAsyncIteration:
            _end(self._attempts)
            raise
        except BaseException as error:
            _end(self._attempts, error)
            raise
        with guard("model_streamed"):
            self._attempts.streamed(event)
        return event

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
