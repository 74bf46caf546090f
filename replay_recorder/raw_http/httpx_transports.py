"""A tee in the transports of httpx and httpx2, where a request goes out once for each attempt."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from functools import wraps
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.raw_http.exchange import Body, Exchange, ends
from replay_recorder.raw_http.log import is_recorded, open_exchange

Tee = Callable[[Any, Body], Any]
"""Makes a stream, and the body it is noted in, a stream that passes the same bytes on."""


def patch_httpx(module: Any) -> bool:
    """Tee both transports of httpx or httpx2; False while the module is still being imported."""
    if not hasattr(module, "AsyncHTTPTransport") or not hasattr(module, "AsyncByteStream"):
        return False
    # The clients check that a stream is one of their own.
    tee = type("TeedStream", (_SyncTee, module.SyncByteStream), {})
    async_tee = type("AsyncTeedStream", (_AsyncTee, module.AsyncByteStream), {})
    module.HTTPTransport.handle_request = _teed(module.HTTPTransport.handle_request, tee)
    module.AsyncHTTPTransport.handle_async_request = _async_teed(
        module.AsyncHTTPTransport.handle_async_request, async_tee
    )
    return True


def _teed(original: Callable[..., Any], tee: Tee) -> Callable[..., Any]:
    @wraps(original)
    def handle_request(self: Any, request: Any) -> Any:
        exchange = _opened(request)
        if exchange is None:
            return original(self, request)
        with _sending(request, exchange, tee):
            response = original(self, request)
        _answered(response, exchange, tee)
        return response

    return handle_request


def _async_teed(original: Callable[..., Any], tee: Tee) -> Callable[..., Any]:
    @wraps(original)
    async def handle_async_request(self: Any, request: Any) -> Any:
        exchange = _opened(request)
        if exchange is None:
            return await original(self, request)
        with _sending(request, exchange, tee):
            response = await original(self, request)
        _answered(response, exchange, tee)
        return response

    return handle_async_request


def _opened(request: Any) -> Exchange | None:
    with guard("http"):
        if is_recorded():
            return open_exchange(request.method, str(request.url), request.headers.raw)
    return None


class _sending:
    """While the request is sent its body passes through a tee; afterwards it has its own stream again."""

    def __init__(self, request: Any, exchange: Exchange, tee: Tee) -> None:
        self._request = request
        self._stream = request.stream
        self._exchange = exchange
        self._tee = tee

    def __enter__(self) -> None:
        with guard("http"):
            self._request.stream = self._tee(self._stream, self._exchange.request)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._request.stream = self._stream
        if error is not None:
            with guard("http"):
                self._exchange.response.end(error)


def _answered(response: Any, exchange: Exchange, tee: Tee) -> None:
    with guard("http"):
        exchange.answered(response.status_code, response.headers.raw)
        response.stream = tee(response.stream, exchange.response)


class _SyncTee:
    def __init__(self, stream: Any, body: Body) -> None:
        self._stream = stream
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        with ends(self._body):
            for chunk in self._stream:
                with guard("http"):
                    self._body.add(chunk)
                yield chunk

    def close(self) -> None:
        with guard("http"):
            self._body.end(GeneratorExit())
        self._stream.close()


class _AsyncTee:
    def __init__(self, stream: Any, body: Body) -> None:
        self._stream = stream
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        stream = self._stream.__aiter__()
        with ends(self._body):
            try:
                async for chunk in stream:
                    with guard("http"):
                        self._body.add(chunk)
                    yield chunk
            finally:
                # A reader that stops early leaves the inner generator open, which nobody else would close.
                if isinstance(stream, AsyncGenerator):
                    await stream.aclose()

    async def aclose(self) -> None:
        with guard("http"):
            self._body.end(GeneratorExit())
        await self._stream.aclose()
