"""The clients of Python code with recorded answers in them.

vcrpy takes the clients' places. What it gives as responses of http.client and urllib3 lacks some of their ways, so
here those libraries read the recorded answers themselves. Its stub of aiohttp compares what the caller gave and not
the bytes that are sent; aiohttp has an adapter of its own, a connection that leads nowhere.
"""

from __future__ import annotations

import asyncio
import gzip
import http.client
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from http import HTTPStatus
from importlib import import_module
from typing import Any, ClassVar
from unittest import mock

import vcr.patch
import vcr.stubs
from vcr.cassette import Cassette
from vcr.record_mode import RecordMode
from vcr.request import Request

from replay_recorder.recorded_http.calls import answer
from replay_recorder.recorded_http.exchanges import RecordedExchange, SentRequest


def _installed(client: str) -> Any:
    """Clients are the team's own; what is not there is not answered."""
    try:
        return import_module(client)
    except ImportError:
        return None


@contextmanager
def clients_answered() -> Iterator[None]:
    """Once for each process and time: vcrpy changes the clients' modules."""
    cassettes = OfRunningCalls.use(
        path="recording",
        persister=_Recording,
        record_mode=RecordMode.NONE,
        custom_patches=[*_standard_library(), *_urllib3()],
        skip_patchers=("aiohttp",),
    )
    with cassettes, _aiohttp():
        yield


class _Recording:
    """Where vcrpy looks for its cassette: exchanges come from the record, call by call."""

    @classmethod
    def load_cassette(cls, path: str, serializer: Any) -> tuple[list[Any], list[Any]]:
        return [], []

    @staticmethod
    def save_cassette(path: str, content: Any, serializer: Any) -> None:
        return None


class OfRunningCalls(Cassette):  # type: ignore[misc]
    """Asks the call whose code sends the request."""

    def can_play_response_for(self, request: Request) -> bool:
        """Where the answer is not there, asking for it says so."""
        return True

    def play_response(self, request: Request) -> dict[str, Any]:
        _, exchange = answer(_sent(request))
        return response_of(exchange)


def response_of(exchange: RecordedExchange) -> dict[str, Any]:
    """As vcrpy has responses."""
    return {
        "status": {"code": exchange.status, "message": _reason(exchange)},
        "headers": _by_name(_headers(exchange)),
        "body": {"string": _body(exchange)},
    }


def _sent(request: Request) -> SentRequest:
    return SentRequest(method=request.method, url=request.uri, body=_bytes(request.body))


def _bytes(body: Any) -> bytes:
    if body is None:
        return b""
    if hasattr(body, "read"):
        body = body.read()
    if isinstance(body, str):
        return body.encode()
    return bytes(body) if isinstance(body, bytes | bytearray | memoryview) else b"".join(map(_bytes, body))


def _by_name(headers: list[tuple[str, str]]) -> dict[str, list[str]]:
    named: dict[str, list[str]] = {}
    for name, value in headers:
        named.setdefault(name, []).append(value)
    return named


def _reason(exchange: RecordedExchange) -> str:
    """Recordings have no words beside the status; these are the usual ones."""
    try:
        return HTTPStatus(exchange.status or 0).phrase
    except ValueError:
        return ""


# --- answers as they arrive


_ENCODE: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
}
_OF_THE_WIRE = frozenset({"transfer-encoding", "content-length", "connection"})


def _body(exchange: RecordedExchange) -> bytes:
    """The recorder takes the content coding off; clients take it off themselves, and find what was recorded."""
    content = exchange.response_body
    encode = _ENCODE.get(str(exchange.facts.get("decoded") or ""))
    return encode(content) if encode else content


def _headers(exchange: RecordedExchange) -> list[tuple[str, str]]:
    """As recorded; without a content coding that was taken off and cannot be put on again here."""
    decoded = exchange.facts.get("decoded")
    is_plain = bool(decoded) and decoded not in _ENCODE
    return [(name, value) for name, value in exchange.response_headers if not (is_plain and _is_coding(name))]


def _is_coding(name: str) -> bool:
    return name.lower() == "content-encoding"


def _on_the_wire(method: str, exchange: RecordedExchange) -> bytes:
    """The whole answer. Where there is no body, the length says how long it would have been."""
    body = b"" if method == "HEAD" else _body(exchange)
    of_the_wire = _OF_THE_WIRE - {"content-length"} if method == "HEAD" else _OF_THE_WIRE
    kept = [(name, value) for name, value in _headers(exchange) if name.lower() not in of_the_wire]
    length = [] if method == "HEAD" else [("Content-Length", str(len(body)))]
    lines = [f"{name}: {value}" for name, value in [*kept, *length]]
    head = "\r\n".join([f"HTTP/1.1 {exchange.status} {_reason(exchange)}", *lines, "", ""])
    return head.encode("latin-1", "replace") + body


# --- http.client and urllib3


class _Unconnected(http.client.HTTPConnection):
    """Knows where a TLS connection would lead to. The real one finds its own class by a name that vcrpy has replaced;
    putting that back for a moment, as vcrpy does, would let other threads through."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, host: str, port: int | None = None, *, timeout: Any = None, **options: Any) -> None:
        super().__init__(host, port, timeout=timeout)


class _Arrived:
    """A socket on which an answer has already arrived."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self._content)


def _received(connection: Any) -> http.client.HTTPResponse:
    """Read by the standard library itself: vcrpy's response swallows what is raised within `with`."""
    sent = _sent(connection._vcr_request)
    _, exchange = answer(sent)
    arrived: Any = _Arrived(_on_the_wire(sent.method, exchange))
    response = http.client.HTTPResponse(arrived, method=sent.method, url=sent.url)
    response.begin()
    return response


def _standard_library() -> Iterator[tuple[Any, str, Any]]:
    def getresponse(self: Any, *args: Any, **options: Any) -> http.client.HTTPResponse:
        return _received(self)

    yield vcr.patch, "force_reset", nullcontext
    yield vcr.stubs.VCRHTTPSConnection, "_baseclass", _Unconnected
    yield vcr.stubs.VCRConnection, "getresponse", getresponse


def _urllib3() -> Iterator[tuple[Any, str, Any]]:
    """Responses of urllib3 itself, which stream and take the content coding off."""
    urllib3 = _installed("urllib3")
    if urllib3 is None:
        return
    from vcr.stubs import urllib3_stubs  # it imports urllib3 itself

    def getresponse(self: Any, *args: Any, **options: Any) -> Any:
        received = _received(self)
        return urllib3.HTTPResponse(
            body=received,
            headers=urllib3.HTTPHeaderDict(received.headers.items()),
            status=received.status,
            version=received.version,
            reason=received.reason,
            preload_content=False,
            original_response=received,
            request_method=self._vcr_request.method,
            request_url=self._vcr_request.uri,
        )

    yield urllib3_stubs._VCRRequestsConnectionMixin, "getresponse", getresponse


# --- aiohttp


@contextmanager
def _aiohttp() -> Iterator[None]:
    aiohttp = _installed("aiohttp")
    if aiohttp is None:
        yield
        return

    async def connected(connector: Any, request: Any, traces: Any, timeout: Any) -> Any:
        body = request.body
        content = await body.as_bytes() if hasattr(body, "as_bytes") else bytes(body or b"")
        sent = SentRequest(method=request.method, url=str(request.original_url), body=content)
        call, exchange = answer(sent)
        answered = _answered(aiohttp.client_proto.ResponseHandler, call.missing_body(sent, exchange))
        protocol = answered(request.loop)
        protocol.connection_made(_Nowhere())
        protocol.data_received(_on_the_wire(request.method, exchange))
        protocol.force_close()
        return protocol

    with mock.patch.object(aiohttp.TCPConnector, "_create_connection", connected):
        yield


def _answered(handler: Any, missing_body: BaseException | None) -> Any:
    """aiohttp's end of a connection, on which the recorded answer arrives; without its body, reading that says so."""
    if missing_body is None:
        return handler

    class WithoutBody(handler):  # type: ignore[misc]
        def set_response_params(self, **params: Any) -> None:
            super().set_response_params(**params)
            if self._payload is not None:
                self._payload.set_exception(missing_body)

    return WithoutBody


class _Nowhere(asyncio.Transport):
    """Takes all that is written to it."""

    _closing: ClassVar[bool] = False

    def write(self, data: Any) -> None:
        return None

    def writelines(self, list_of_data: Any) -> None:
        return None

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        return None

    def abort(self) -> None:
        return None

    def pause_reading(self) -> None:
        return None

    def resume_reading(self) -> None:
        return None
