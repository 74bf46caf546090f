"""The exchanges of the steps that are open: who asks for them gets them, and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from replay_recorder.context import current_place, current_scope
from replay_recorder.raw_http.exchange import Exchange, Headers
from replay_recorder.raw_http.model_calls import ModelExchange, open_model_step
from replay_recorder.recorder import active
from replay_recorder.settings import Settings
from replay_recorder.writing.run_writer import RunWriter

MOST = 100
"""Exchanges that are kept for one step; of more, the latest."""


class ExchangeLog:
    """Exchanges by run and step, in the order in which they were sent, until the step's hook takes them.

    Each operation is one of a dict or a list, so threads need no lock, which a fork could leave locked.
    """

    def __init__(self) -> None:
        self._runs: WeakKeyDictionary[RunWriter, dict[int, list[Exchange]]] = WeakKeyDictionary()

    def add(self, run: RunWriter, step: int, exchange: Exchange) -> None:
        exchanges = self._runs.setdefault(run, {}).setdefault(step, [])
        exchanges.append(exchange)
        if len(exchanges) > MOST:
            dropped = exchanges.pop(0)
            exchanges[0].earlier_left_out += dropped.earlier_left_out + 1

    def last(self, run: RunWriter, step: int) -> Exchange | None:
        exchanges = self._runs.get(run, {}).get(step)
        return exchanges[-1] if exchanges else None

    def take(self, run: RunWriter, step: int) -> list[Exchange]:
        return self._runs.get(run, {}).pop(step, [])

    def held(self, run: RunWriter) -> int:
        """Bytes of bodies that wait in memory."""
        steps = list(self._runs.get(run, {}).values())
        return sum(len(each.request.content) + len(each.response.content) for step in steps for each in list(step))


LOG = ExchangeLog()


def recorded_step() -> tuple[RunWriter, int] | None:
    """The step that an exchange of the current code belongs to; None when it is not recorded.

    A task that outlives the step it was started in belongs to none.
    """
    recorder, place = active(), current_place()
    if recorder is None or not recorder.settings.http or place is None or place.step is None:
        return None
    return (place.run, place.step) if place.run.is_open(place.step) else None


_WATCHING: ContextVar[list[Exchange] | None] = ContextVar("replay_recorder_http_watched", default=None)


@contextmanager
def watched() -> Iterator[list[Exchange]]:
    """What is sent in here, by steps inside of the current one too, in its order."""
    seen: list[Exchange] = []
    token = _WATCHING.set(seen)
    try:
        yield seen
    finally:
        _WATCHING.reset(token)


def is_recorded() -> bool:
    """Whether an exchange of the current code may be wanted; quick to ask."""
    return current_scope() is not None or recorded_step() is not None


def open_exchange(method: str, url: str, headers: Headers) -> Exchange | None:
    """An exchange that begins now, in the log of its step or as a model's step of its own; None where neither is."""
    recorder, place = active(), recorded_step()
    if recorder is None:
        return None
    if place is None:
        return _model_exchange(recorder.settings, method, url, headers)
    run, step = place
    limit = _limit(recorder.settings, run)
    exchange = Exchange(method, url, headers, limit=limit, kept=recorder.settings.http_headers)
    LOG.add(run, step, exchange)
    seen = _WATCHING.get()
    if seen is not None:
        seen.append(exchange)
    return exchange


def _model_exchange(settings: Settings, method: str, url: str, headers: Headers) -> Exchange | None:
    opened = open_model_step(method, url)
    if opened is None:
        return None
    run, step = opened
    return ModelExchange(run, step, method, url, headers, limit=_limit(settings, run), kept=settings.http_headers)


def _limit(settings: Settings, run: RunWriter) -> int:
    """Bytes that a body may take. Bodies get half of a run's record: the other half is the run itself."""
    room = settings.max_run_bytes // 2 - run.file.size - LOG.held(run)
    return max(min(settings.max_body_bytes, room), 0)
