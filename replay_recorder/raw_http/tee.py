"""Raw HTTP of model and tool calls, as it passes by: the setting `http`.

An exchange belongs to the step that was current when its request was sent. It is kept in memory until the hook
that closes the step takes it:

    tee_clients()                                   # once: clients that are loaded, and others as they are loaded
    with placed(run, step):
        ...                                         # whatever is sent here, in tasks of this code as well
    run.end(step, **fields, **http_fields(run, step))

Threads belong to the step when they run in a copy of its context, as those of `asyncio.to_thread` and AnyIO do;
a bare thread or executor does not.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from replay_recorder.fork_lock import ForkLock
from replay_recorder.guard import guard
from replay_recorder.lazy import when_imported
from replay_recorder.raw_http.aiohttp_sessions import patch_aiohttp
from replay_recorder.raw_http.exchange import Exchange
from replay_recorder.raw_http.http_client import patch_http_client
from replay_recorder.raw_http.httpx_transports import patch_httpx
from replay_recorder.raw_http.log import LOG
from replay_recorder.raw_http.urllib3_pools import patch_urllib3
from replay_recorder.writing.json_text import name
from replay_recorder.writing.run_writer import RunWriter

_PATCHES: dict[str, Callable[[Any], bool]] = {
    "httpx": patch_httpx,
    "httpx2": patch_httpx,
    "urllib3": patch_urllib3,
    "aiohttp": patch_aiohttp,
    "http.client": patch_http_client,
}
_patched: dict[str, ModuleType] = {}
_turn = ForkLock()


def tee_clients() -> None:
    """Tee the HTTP clients that are loaded, and each other one as it is loaded: a tool may import its own."""
    for client in _PATCHES:
        when_imported(client, _patch_loaded)


def _patch_loaded(module: ModuleType) -> None:
    with _turn:
        _patch(module.__name__, module)


def patch_transports() -> None:
    """Tee the clients that are loaded by now; quick when there is nothing to do.

    Asked again at each step, for another finder of modules may have come before ours. A module is patched once and
    for good. Without a recorder that wants HTTP its requests just pass.
    """
    if all(sys.modules.get(client) is _patched.get(client) for client in _PATCHES):
        return
    with _turn:
        for client in _PATCHES:
            _patch(client, sys.modules.get(client))


def _patch(client: str, module: ModuleType | None) -> None:
    if module is None or module is _patched.get(client):
        return
    # A version that cannot be patched is not tried at each step.
    _patched[client] = module
    with guard(f"patch of {client}"):
        if not _PATCHES[client](module):
            del _patched[client]


def take_exchanges(run: RunWriter, step: int) -> list[Exchange]:
    """The exchanges of the step in the order in which they were sent; they are forgotten here."""
    return LOG.take(run, step)


def http_fields(run: RunWriter, step: int) -> dict[str, Any]:
    """`{"http": …}` with the last exchange of the step, or `{}`; takes them all.

    Earlier ones, such as attempts that the client repeated by itself, are written as steps of their own.
    Call it before the step is ended.
    """
    with guard("http"):
        exchanges = take_exchanges(run, step)
        for exchange in exchanges[:-1]:
            _write_step(run, step, exchange)
        if exchanges:
            return {"http": exchanges[-1].fields()}
    return {}


def first_byte_at(run: RunWriter, step: int) -> str | None:
    """When the first byte of the latest answer's body came, as a time of the record. Ask before `http_fields`."""
    exchange = LOG.last(run, step)
    return exchange.response.first_at if exchange else None


def _write_step(run: RunWriter, parent: int, exchange: Exchange) -> None:
    with guard("http"):
        run.inner_step(
            parent,
            name=name(exchange.title),
            started_at=exchange.started_at,
            duration_ms=exchange.duration_ms,
            error=exchange.error,
            http=exchange.fields(),
        )
