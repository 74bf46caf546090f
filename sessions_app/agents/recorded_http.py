"""HTTP of tools that run in a replay: each request is answered from the recorded exchanges of its call, and nothing
goes out.

`vcrpy` stands in the clients' places: one cassette for each call, which plays each exchange once and records nothing.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from pydantic_ai.messages import ToolCallPart

from sessions_app.agents.gate import raw_arguments
from sessions_app.agents.outcomes import FixtureNotFound
from sessions_app.agents.world_off import WorldIsOff
from sessions_app.core.replay.fixture_book import FixtureBook, FixtureMiss
from sessions_app.core.replay.tool_http import RequestMiss, SentRequest, exchanges_of, same_request, why_not
from sessions_app.core.run import Fixture, HttpExchange, Run

_NOT_RECORDED = "no HTTP was recorded for this call; record with http=True"
_OTHER = "no recorded exchange of this call has this method, address and body"
_USED = "each recorded exchange of this call with this method, address and body was already used"
_BARE_THREAD = "it was sent by a thread that does not run in the context of a call; recordings lack what these send"


class RecordedCall:
    """The exchanges of one tool call, each of them given once and in their order."""

    def __init__(self, call: ToolCallPart, fixture: Fixture | None, exchanges: tuple[HttpExchange, ...]) -> None:
        self._call = call
        self._fixture = fixture
        self._exchanges = exchanges
        self._unused = list(exchanges)
        self._turn = threading.Lock()
        self.missed: FixtureNotFound | None = None

    def next_answer(self, request: SentRequest) -> HttpExchange:
        """Raises `FixtureNotFound` where there is none."""
        with self._turn:
            found = next((each for each in self._unused if same_request(each, request)), None)
            if found is None:
                self._miss(request, self._reason(request))
            reason = why_not(found)
            if reason is not None:
                self._miss(request, reason)
            self._unused.remove(found)
            return found

    def sent_beside(self, request: SentRequest) -> NoReturn:
        """A request of a thread that this call, it seems, has started."""
        self._miss(request, _BARE_THREAD)

    def missing_body(self, request: SentRequest, exchange: HttpExchange) -> FixtureNotFound | None:
        """What reading the body of this answer comes to; None where the recording has the body."""
        left_out = exchange.extra.get("body_left_out")
        return self._miss_of(request, f"the body of the answer was not recorded: {left_out}") if left_out else None

    def _reason(self, request: SentRequest) -> str:
        if not self._exchanges:
            return _NOT_RECORDED
        return _USED if any(same_request(each, request) for each in self._exchanges) else _OTHER

    def _miss(self, request: SentRequest, reason: str) -> NoReturn:
        self.missed = self.missed or self._miss_of(request, reason)
        raise self.missed

    def _miss_of(self, request: SentRequest, reason: str) -> FixtureNotFound:
        recorded = tuple(f"{each.method} {each.url}" for each in self._exchanges)
        miss = FixtureMiss(
            tool_name=self._call.tool_name,
            call_id=self._call.tool_call_id,
            arguments=raw_arguments(self._call),
            nearest=() if self._fixture is None else (self._fixture,),
            request=RequestMiss(request=request, reason=reason, recorded=recorded),
        )
        return FixtureNotFound(miss)


_running: ContextVar[RecordedCall] = ContextVar("running")
_open: list[RecordedCall] = []
_older_threads: set[threading.Thread] = set()
"""Threads that were there before any tool ran, such as those that send telemetry: what they do is nobody's call."""


def answer(request: SentRequest) -> tuple[RecordedCall, HttpExchange]:
    """The recorded exchange for a request that the code of a call sends now.

    Outside of a call there are none: as in any replay the world is off, and the fence counts who reached for it.
    """
    call = _running.get(None)
    if call is None and _open and threading.current_thread() not in _older_threads:
        _open[0].sent_beside(request)
    if call is None:
        sys.audit("socket.connect", None, request.url)
        raise WorldIsOff(f"The world is off in a replay: {request.words}.")
    return call, call.next_answer(request)


class RecordedHttp:
    """The HTTP of all calls of one recording."""

    def __init__(self, run: Run, book: FixtureBook) -> None:
        self._run = run
        self._book = book

    @contextmanager
    def in_the_clients(self) -> Iterator[None]:
        """In here the clients that Python code sends with ask `answer`."""
        from sessions_app.agents.http_clients import clients_answered  # loads every client that is installed

        _older_threads.clear()
        _older_threads.update(threading.enumerate())
        with clients_answered():
            yield

    async def during(self, call: ToolCallPart, run: Callable[[], Awaitable[Any]]) -> Any:
        """The tool's function runs. A request without an answer ends the replay, whatever the function makes of it."""
        name, call_id, arguments = call.tool_name, call.tool_call_id, raw_arguments(call)
        fixture = self._book.look_up(name, call_id, arguments)
        exchanges = exchanges_of(self._run, fixture.step) if fixture else ()
        recorded = RecordedCall(call, fixture, exchanges)
        token = _running.set(recorded)
        _open.append(recorded)
        try:
            value = await run()
        except Exception:
            if recorded.missed is not None:
                raise recorded.missed from None
            raise
        finally:
            _running.reset(token)
            _open.remove(recorded)
        if recorded.missed is not None:
            raise recorded.missed
        return value
