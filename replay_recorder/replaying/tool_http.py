"""HTTP of tools that run on this machine: answered from the recorded exchanges of their call, and never sent."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

from replay_recorder.context import current_place
from replay_recorder.recorded_http.calls import ExchangesOfCall, answered_from_recording, during
from replay_recorder.recorded_http.exchanges import RecordedExchange, SentRequest, exchanges_of
from replay_recorder.replaying.errors import NoAnswerRecorded, ReplayStopped, RequestNotRecorded
from replay_recorder.replaying.matching import CallBook
from replay_recorder.replaying.recording import Recording

_VCRPY = (9, 4)
_WITHOUT_VCRPY = (
    "HTTP of tools is answered from the recording by vcrpy 9.4 or later, which is not installed here: "
    "pip install -U vcrpy. With --http live their requests really go out."
)


class ToolHttp:
    """The HTTP of all calls of one recording."""

    def __init__(self, recording: Recording) -> None:
        """Raises `ValueError` where the clients cannot be kept from sending."""
        if not _has_vcrpy():
            raise ValueError(_WITHOUT_VCRPY)
        self._steps = recording.http_steps
        self._book = CallBook(recording.calls, "play_on")

    @contextmanager
    def in_the_clients(self) -> Iterator[None]:
        """In here nothing is sent by the clients of Python code."""
        with answered_from_recording(_refused):
            yield

    async def during(self, name: str, call_id: str | None, sent: Any, run: Callable[[], Awaitable[Any]]) -> Any:
        """The tool's function runs. Raises `RequestNotRecorded`. What it did not send is written into its step."""
        of_call, place = ExchangesOfCall(self._exchanges(name, call_id, sent), _missed), current_place()
        try:
            return await during(of_call, run)
        finally:
            if place is not None and place.step is not None:
                place.run.amend(place.step, http_unasked=list(of_call.unasked))

    def _exchanges(self, name: str, call_id: str | None, sent: Any) -> tuple[RecordedExchange, ...]:
        try:
            step = self._book.take(name, call_id, sent).step
        except NoAnswerRecorded:
            return ()
        return exchanges_of(self._steps[step - 1 :], step)


def _has_vcrpy() -> bool:
    try:
        parts = version("vcrpy").split(".")
    except PackageNotFoundError:
        return False
    return tuple(int(number) for number in parts[:2]) >= _VCRPY


def _missed(request: SentRequest, reason: str) -> RequestNotRecorded:
    return RequestNotRecorded(f"{request.words}: {reason}")


def _refused(request: SentRequest) -> NoReturn:
    words = (
        f"{request.words} was sent outside of a tool's call, for which no HTTP is recorded. It did not go out. "
        "With --http live requests do."
    )
    print(words, file=sys.stderr)  # whatever the code that sent it makes of the exception
    raise ReplayStopped(words)
