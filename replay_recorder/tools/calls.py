"""How a call of a function is written down: what went in, what came out, what went wrong.

Nothing here raises: what cannot be written down is left out, and counted.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.writing.json_text import JsonText, encode, name, value_of, whole_text
from replay_recorder.writing.run_writer import NULL

_FRAMEWORKS = frozenset({"pydantic_ai", "agents"})
_ANSWERS = ("output", "final_output")
"""Where the results of these frameworks keep what was answered."""


def bound_arguments(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """What was passed, by parameter name, in the order of the parameters; defaults are not among them.

    `self`, `cls` and a framework's own context are left out: they differ from process to process. Where names are
    not to be had: `{"args": [...], "kwargs": {...}}`.
    """
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {"args": list(args), "kwargs": kwargs}
    named = {key: value for key, value in bound.arguments.items() if not _is_surrounding(key, value)}
    return _spread(function, named)


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; objects with an `async def __call__` count."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def name_of(function: Callable[..., Any]) -> str:
    """What people call it; objects that can be called have the name of their class."""
    return str(getattr(function, "__name__", None) or type(function).__name__)


def _spread(function: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
    """`**options` beside the other arguments, as they were passed."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD and parameter.name in named:
            options = named.pop(parameter.name)
            # A positional-only parameter may be called like one of the options.
            return {**named, **options} if named.keys().isdisjoint(options) else {**named, parameter.name: options}
    return named


def _is_surrounding(key: str, value: Any) -> bool:
    return key in ("self", "cls") or (_is_of_framework(value) and type(value).__name__.endswith(("Context", "Wrapper")))


def _is_of_framework(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _FRAMEWORKS


def named_arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Any] | None:
    """`bound_arguments`, or None."""
    with guard("arguments"):
        return bound_arguments(function, args, kwargs)
    return None


def written(value: Any) -> JsonText | None:
    """A value as a record holds it, as it is at this moment; None when it cannot be written down."""
    with guard("value"):
        return NULL if value is None else JsonText(encode(value_of(value)))
    return None


def is_answer(value: Any) -> bool:
    """False for what only will be an answer: a coroutine, a stream."""
    return not (inspect.isawaitable(value) or isinstance(value, Iterator | AsyncIterator))


def answer_in(value: Any) -> Any:
    """What a result object of a framework says was answered; anything else is the answer itself."""
    if _is_of_framework(value):
        return next((getattr(value, field) for field in _ANSWERS if hasattr(value, field)), value)
    return value


def written_answer(value: Any) -> JsonText | None:
    """What a function returned, as a record holds it; None when there is nothing to hold yet."""
    with guard("answer"):
        return written(answer_in(value)) if is_answer(value) else None
    return None


def error_of(error: BaseException) -> dict[str, str | None]:
    """As a field of a record; the message is empty where the exception cannot say one."""
    message = ""
    with guard("error"):
        message = whole_text(str(error))
    return {"type": name(type(error).__name__), "message": message}
