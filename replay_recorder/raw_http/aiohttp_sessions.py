"""A tee in aiohttp, through the tracing that it offers itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.raw_http.exchange import Exchange
from replay_recorder.raw_http.log import is_recorded, open_exchange

_NOT_READ = "it was not read at once"


def patch_aiohttp(module: Any) -> bool:
    """Trace every session from its next recorded request on; False while the module is still being imported.

    Bodies that are read as a stream are not traced by aiohttp, and left out.
    """
    if not hasattr(module, "ClientSession") or not hasattr(module, "TraceConfig"):
        return False
    module.ClientSession._request = _traced(module.ClientSession._request, _trace(module))
    return True


def _traced(original: Callable[..., Any], trace: Any) -> Callable[..., Any]:
    @wraps(original)
    async def _request(self: Any, *args: Any, **options: Any) -> Any:
        with guard("http"):
            if is_recorded() and trace not in self._trace_configs:
                self._trace_configs = [*self._trace_configs, trace]
        return await original(self, *args, **options)

    return _request


def _trace(module: Any) -> Any:
    trace = module.TraceConfig()
    trace.on_request_start.append(_guarded(_started))
    trace.on_request_chunk_sent.append(_guarded(_sent))
    trace.on_request_redirect.append(_guarded(_redirected))
    trace.on_request_end.append(_guarded(_answered))
    trace.on_request_exception.append(_guarded(_failed))
    trace.on_response_chunk_received.append(_guarded(_received))
    trace.freeze()
    return trace


def _guarded(note: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], Any]:
    async def noted(session: Any, context: Any, event: Any) -> None:
        with guard("http"):
            note(session, context, event)

    return noted


def _started(session: Any, context: Any, event: Any) -> None:
    context.exchange = None
    if is_recorded():
        context.exchange = open_exchange(event.method, str(event.url), event.headers)


def _sent(session: Any, context: Any, event: Any) -> None:
    if context.exchange is not None:
        context.exchange.request.add(event.chunk)


def _redirected(session: Any, context: Any, event: Any) -> None:
    """One request is over, and the next one begins."""
    if context.exchange is not None:
        _note_answer(context.exchange, event.response)
        address = type(event.url)(event.response.headers.get("Location", ""))
        context.exchange = open_exchange(event.method, str(event.url.join(address)), event.headers)


def _answered(session: Any, context: Any, event: Any) -> None:
    if context.exchange is not None:
        _note_answer(context.exchange, event.response)
        context.exchange.method = event.response.method


def _failed(session: Any, context: Any, event: Any) -> None:
    if context.exchange is not None:
        context.exchange.response.end(event.exception)


def _note_answer(exchange: Exchange, response: Any) -> None:
    exchange.request.end()
    exchange.answered(response.status, response.headers.items())
    exchange.response.decoded = response.headers.get("Content-Encoding")
    exchange.response.left_out = _NOT_READ


def _received(session: Any, context: Any, event: Any) -> None:
    """The whole body. aiohttp has decoded it, unless the session was told not to."""
    if context.exchange is not None:
        body = context.exchange.response
        body.left_out = None
        body.decoded = body.decoded if session.auto_decompress else None
        body.add(event.chunk)
        body.end()
