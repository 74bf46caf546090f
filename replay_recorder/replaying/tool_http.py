"""HTTP of tools that run on this machine: answered from the recorded exchanges of their call, and never sent; or sent,
and held against those exchanges."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn, Protocol

from replay_recorder.context import current_place
from replay_recorder.hooks import hook_clients
from replay_recorder.raw_http.exchange import Exchange
from replay_recorder.raw_http.log import watched
from replay_recorder.recorded_http.calls import ExchangesOfCall, answered_from_recording, during
from replay_recorder.recorded_http.exchanges import (
    RecordedExchange,
    SentRequest,
    exchanges_of,
    same_address,
    same_request,
)
from replay_recorder.recorded_http.other_body import OtherBody, other_body
from replay_recorder.replaying.errors import NoAnswerRecorded, ReplayStopped, RequestNotRecorded
from replay_recorder.replaying.matching import CallBook
from replay_recorder.replaying.recording import Recording

_VCRPY = (9, 4)
_WITHOUT_VCRPY = (
    "HTTP of tools is answered from the recording by vcrpy 9.4 or later, which is not installed here: "
    "pip install -U vcrpy. With --http live their requests really go out."
)


Refuse = Callable[[SentRequest], NoReturn]
"""Raises an exception that says why a request did not go out."""


class ToolHttp(Protocol):
    """The HTTP of all calls of one recording."""

    def in_the_clients(self) -> AbstractContextManager[None]:
        """In here the clients of Python code do as it wants."""

    async def during(self, name: str, call_id: str | None, sent: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        """The tool's function runs. What it sent otherwise than recorded is written into its step."""

    async def during_output(self, answer: int, run: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, list[str]]]:
        """A function makes the output of the recorded answer of this number, from 1 on: with what it sent otherwise."""


class _OfCalls:
    """Which exchanges were recorded for which call."""

    def __init__(self, recording: Recording) -> None:
        self._steps = recording.http_steps
        self._answers = [answer.step for answer in recording.answers]
        self._outputs = recording.output_functions
        self._book = CallBook(recording.calls, "play_on")
        self.has_any = any(step.http is not None for step in self._steps)

    def of(self, name: str, call_id: str | None, sent: Any) -> tuple[RecordedExchange, ...]:
        try:
            step = self._book.take(name, call_id, sent).step
        except NoAnswerRecorded:
            return ()
        return exchanges_of(self._steps[step - 1 :], step)

    def of_output(self, answer: int) -> tuple[RecordedExchange, ...]:
        given = self._answers[answer - 1] if 0 < answer <= len(self._answers) else None
        steps = [step for step, parent in self._outputs if parent == given]
        return tuple(each for step in steps for each in exchanges_of(self._steps[step - 1 :], step))


class LiveHttp:
    """Requests go out. Their answers are those of today; what is sent is held against the recording, where that has
    any HTTP."""

    def __init__(self, recording: Recording) -> None:
        self._recorded = _OfCalls(recording)

    @contextmanager
    def in_the_clients(self) -> Iterator[None]:
        hook_clients()
        yield

    async def during(self, name: str, call_id: str | None, sent: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        recorded, place = self._recorded.of(name, call_id, sent), current_place()
        with watched() as seen:
            value = await run()
        if place is not None and place.step is not None and self._recorded.has_any:
            place.run.amend(place.step, **_compared(recorded, seen))
        return value

    async def during_output(self, answer: int, run: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, Any]]:
        with watched() as seen:
            made = await run()
        if not self._recorded.has_any:
            return made, {}
        return made, _compared(self._recorded.of_output(answer), seen)


def _compared(recorded: Iterable[RecordedExchange], seen: list[Exchange]) -> dict[str, Any]:
    """What was recorded and not sent, and what was sent and not recorded, by method and address; and in what the body
    of the first of these is another one."""
    unasked: list[RecordedExchange] = list(recorded)
    unrecorded: list[SentRequest] = []
    for exchange in seen:
        request = SentRequest(exchange.method, exchange.url, bytes(exchange.request.content))
        is_whole = exchange.request.left_out is None and exchange.request.size == len(request.body)
        is_same = same_request if is_whole else same_address
        found = next((each for each in unasked if is_same(each, request)), None)
        if found is None:
            unrecorded.append(request)
        else:
            unasked.remove(found)
    said = {"http_unasked": _words(unasked), "http_unrecorded": _words(unrecorded)}
    return said | _other(next(filter(None, (other_body(unasked, each) for each in unrecorded)), None))


def _words(requests: Iterable[RecordedExchange | SentRequest]) -> list[str]:
    return [each.words for each in requests]


def _other(found: OtherBody | None) -> dict[str, Any]:
    return {} if found is None else {"http_other": found.to_json()}


class AnsweredHttp:
    """Each request gets the recorded answer of its call, and none goes out."""

    def __init__(self, recording: Recording, refuse: Refuse) -> None:
        """Raises `ValueError` where the clients cannot be kept from sending."""
        if not _has_vcrpy():
            raise ValueError(_WITHOUT_VCRPY)
        self._recorded = _OfCalls(recording)
        self._refuse = refuse

    @contextmanager
    def in_the_clients(self) -> Iterator[None]:
        """In here nothing is sent by the clients of Python code."""
        with answered_from_recording(self._refuse):
            yield

    async def during(self, name: str, call_id: str | None, sent: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        """Raises `RequestNotRecorded`."""
        of_call, place = ExchangesOfCall(self._recorded.of(name, call_id, sent), _missed), current_place()
        try:
            return await during(of_call, run)
        finally:
            if place is not None and place.step is not None:
                place.run.amend(place.step, http_unasked=list(of_call.unasked), **_other(of_call.other_body))

    async def during_output(self, answer: int, run: Callable[[], Awaitable[Any]]) -> tuple[Any, dict[str, list[str]]]:
        """Raises `RequestNotRecorded`."""
        of_output = ExchangesOfCall(self._recorded.of_output(answer), _missed)
        made = await during(of_output, run)
        return made, {"http_unasked": list(of_output.unasked)}


def _has_vcrpy() -> bool:
    try:
        parts = version("vcrpy").split(".")
    except PackageNotFoundError:
        return False
    return tuple(int(number) for number in parts[:2]) >= _VCRPY


def _missed(request: SentRequest, reason: str, other: OtherBody | None) -> RequestNotRecorded:
    return RequestNotRecorded(f"{request.words}: {reason}")


def refused_here(request: SentRequest) -> NoReturn:
    """A request that nothing is recorded for, told to the person at the terminal."""
    words = (
        f"{request.words} was sent outside of a tool's call, for which no HTTP is recorded. It did not go out. "
        "With --http live requests do."
    )
    print(words, file=sys.stderr)  # whatever the code that sent it makes of the exception
    raise ReplayStopped(words)
