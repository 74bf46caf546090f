"""Which call of a tool sends a request, and what was recorded for it."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from replay_recorder.recorded_http.exchanges import (
    RecordedExchange,
    SentRequest,
    had_ended_before,
    same_request,
    why_not,
)
from replay_recorder.recorded_http.other_body import OtherBody, other_body

_NOT_RECORDED = "no HTTP was recorded for this call; record with http=True"
_OTHER = "no recorded exchange of this call has this method, address and body"
_USED = "each recorded exchange of this call with this method, address and body was already used"
_BARE_THREAD = "it was sent by a thread that does not run in the context of a call; recordings lack what these send"

Missed = Callable[[SentRequest, str, OtherBody | None], BaseException]
"""What a request without an answer raises in the tool; the text says why there is none, and with it in what its body is
another one than was recorded for its address."""


class ExchangesOfCall:
    """The exchanges of one tool call, each of them given once and in their order."""

    def __init__(self, exchanges: tuple[RecordedExchange, ...], missed: Missed) -> None:
        self._exchanges = exchanges
        self._unused = list(exchanges)
        self._overtaken: list[tuple[RecordedExchange, RecordedExchange]] = []
        """Exchanges that had ended before another one began, which was asked for first now."""
        self._missed = missed
        self._turn = threading.Lock()
        self.missed: BaseException | None = None
        """The first request that had no answer."""
        self.other_body: OtherBody | None = None
        """In what its body is another one."""

    def next_answer(self, request: SentRequest) -> RecordedExchange:
        """Raises what was asked for where there is none."""
        with self._turn:
            found = next((each for each in self._unused if same_request(each, request)), None)
            if found is None:
                self._miss(request, self._reason(request), self._other_body(request))
            reason = why_not(found)
            if reason is not None:
                self._miss(request, reason)
            self._unused.remove(found)
            self._overtaken += [(each, found) for each in self._unused if had_ended_before(each, found)]
            return found

    @property
    def unasked(self) -> tuple[str, ...]:
        """Method and address of the recorded exchanges that the call did not ask for, in their order, and of those that
        it asked for behind one that had come after them."""
        late = ((each, later) for each, later in self._overtaken if each not in self._unused)
        return (*(each.words for each in self._unused), *(f"{each.words} before {later.words}" for each, later in late))

    def sent_beside(self, request: SentRequest) -> NoReturn:
        """A request of a thread that this call, it seems, has started."""
        self._miss(request, _BARE_THREAD)

    def missing_body(self, request: SentRequest, exchange: RecordedExchange) -> BaseException | None:
        """What reading the body of this answer comes to; None where the recording has the body."""
        left_out = exchange.facts.get("body_left_out")
        if not left_out:
            return None
        return self._missed(request, f"the body of the answer was not recorded: {left_out}", None)

    def _reason(self, request: SentRequest) -> str:
        if not self._exchanges:
            return _NOT_RECORDED
        return _USED if any(same_request(each, request) for each in self._exchanges) else _OTHER

    def _other_body(self, request: SentRequest) -> OtherBody | None:
        """None for a request that was recorded, and is sent more often."""
        is_known = any(same_request(each, request) for each in self._exchanges)
        return None if is_known else other_body([*self._unused, *self._exchanges], request)

    def _miss(self, request: SentRequest, reason: str, other: OtherBody | None = None) -> NoReturn:
        if self.missed is None:
            self.other_body = other
            self.missed = self._missed(request, reason if other is None else f"{reason}: {other.words}", other)
        raise self.missed


_running: ContextVar[ExchangesOfCall] = ContextVar("replay_recorder_http_of_call")
_open: list[ExchangesOfCall] = []
_older_threads: set[threading.Thread] = set()
"""Threads that were there before any tool ran, such as those that send telemetry: what they do is nobody's call."""
_outside: list[Callable[[SentRequest], NoReturn]] = []


def answer(request: SentRequest) -> tuple[ExchangesOfCall, RecordedExchange]:
    """The recorded exchange for a request that the code of a call sends now. Outside of a call there are none."""
    call = _running.get(None)
    if call is None and _open and threading.current_thread() not in _older_threads:
        _open[0].sent_beside(request)
    if call is None:
        _outside[-1](request)
    return call, call.next_answer(request)


@contextmanager
def answered_from_recording(outside: Callable[[SentRequest], NoReturn]) -> Iterator[None]:
    """In here the clients that Python code sends with are answered from the recording. `outside` refuses what is sent
    outside of a call. Raises `ImportError` without vcrpy."""
    from replay_recorder.recorded_http.clients import clients_answered  # loads every client that is installed

    _older_threads.clear()
    _older_threads.update(threading.enumerate())
    _outside.append(outside)
    try:
        with clients_answered():
            yield
    finally:
        _outside.pop()


async def during(call: ExchangesOfCall, run: Callable[[], Awaitable[Any]]) -> Any:
    """The tool's function runs. A request without an answer ends the replay, whatever the function makes of it."""
    token = _running.set(call)
    _open.append(call)
    try:
        value = await run()
    except Exception:
        if call.missed is not None:
            raise call.missed from None
        raise
    finally:
        _running.reset(token)
        _open.remove(call)
    if call.missed is not None:
        raise call.missed
    return value
