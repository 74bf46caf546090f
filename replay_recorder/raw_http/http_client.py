"""A tee in the standard library's http.client, under urllib.request."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.raw_http.exchange import Body, Exchange
from replay_recorder.raw_http.log import is_recorded, open_exchange

_EXCHANGE = "_replay_recorder_exchange"
_BODY = "_replay_recorder_client_body"
"""The attribute of a response under which its reads find where to note what they read."""
_PORTS = {"http": 80, "https": 443}


def patch_http_client(module: Any) -> bool:
    """Tee what `HTTPConnection.request` sends; False while the module is still being imported."""
    if not hasattr(module, "HTTPSConnection"):
        return False
    connection, response = module.HTTPConnection, module.HTTPResponse
    wrapped = [
        (connection, "_send_request", _sending(connection._send_request, module.HTTPSConnection)),
        (connection, "getresponse", _answering(connection.getresponse)),
        (response, "readinto", _reading_into(response.readinto)),
        *((response, read, _reading(getattr(response, read))) for read in ("read", "read1", "readline")),
    ]
    for owner, method, teed in wrapped:
        setattr(owner, method, teed)
    return True


def _sending(original: Callable[..., Any], secure: type) -> Callable[..., Any]:
    @wraps(original)
    def _send_request(self: Any, method: str, url: str, body: Any, headers: Any, *args: Any) -> Any:
        exchange = _opened(self, method, url, body, headers, secure)
        setattr(self, _EXCHANGE, exchange)
        try:
            return original(self, method, url, body, headers, *args)
        except BaseException as error:
            _end(exchange, error)
            raise

    return _send_request


def _opened(connection: Any, method: str, url: str, body: Any, headers: Any, secure: type) -> Exchange | None:
    """urllib3 has a tee of its own, and connections that come from these."""
    with guard("http"):
        if not is_recorded() or any("urllib3" in base.__module__ for base in type(connection).__mro__):
            return None
        exchange = open_exchange(method, _address(connection, url, isinstance(connection, secure)), headers)
        if exchange is not None:
            _note_request(exchange.request, body)
        return exchange
    return None


def _address(connection: Any, target: str, is_secure: bool) -> str:
    """In full; through a proxy the target is that already."""
    if "://" in target.split("?", 1)[0]:
        return target
    host, port = connection.host, connection.port
    if connection._tunnel_host:
        host, port = connection._tunnel_host, connection._tunnel_port
    scheme = "https" if is_secure else "http"
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{scheme}://{host}{'' if port in (None, _PORTS[scheme]) else f':{port}'}{target}"


def _note_request(body: Body, content: Any) -> None:
    """Texts go out in Latin-1. A stream can be read but once, and that is not for us to do."""
    if isinstance(content, str):
        content = content.encode("iso-8859-1")
    if content is None or isinstance(content, bytes | bytearray):
        body.add(bytes(content or b""))
        body.end()
    else:
        body.left_out = "it was sent as a stream"


def _answering(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def getresponse(self: Any) -> Any:
        exchange = self.__dict__.pop(_EXCHANGE, None)
        try:
            response = original(self)
        except BaseException as error:
            _end(exchange, error)
            raise
        if exchange is not None:
            with guard("http"):
                exchange.answered(response.status, response.headers.items())
                _note(response, exchange.response, b"")
        return response

    return getresponse


def _end(exchange: Exchange | None, error: BaseException) -> None:
    if exchange is not None:
        with guard("http"):
            exchange.response.end(error)


# --- reads of a response


def _reading(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def read(self: Any, *args: Any, **options: Any) -> Any:
        body = self.__dict__.pop(_BODY, None)  # reads that this one makes are part of it
        if body is None:
            return original(self, *args, **options)
        try:
            chunk = original(self, *args, **options)
        except BaseException as error:
            with guard("http"):
                _note_broken(body, error)
            raise
        with guard("http"):
            _note(self, body, chunk)
        return chunk

    return read


def _reading_into(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def readinto(self: Any, buffer: Any) -> Any:
        body = self.__dict__.pop(_BODY, None)
        if body is None:
            return original(self, buffer)
        try:
            size = original(self, buffer)
        except BaseException as error:
            with guard("http"):
                _note_broken(body, error)
            raise
        with guard("http"):
            _note(self, body, bytes(memoryview(buffer).cast("B")[:size]))
        return size

    return readinto


def _note_broken(body: Body, error: BaseException) -> None:
    """What came until then, where the error says it."""
    partial = getattr(error, "partial", b"")
    body.add(partial if isinstance(partial, bytes) else b"")
    body.end(error)


def _note(response: Any, body: Body, chunk: bytes) -> None:
    """A response closes itself when its body is over."""
    body.add(chunk)
    if response.isclosed():
        body.end()
    else:
        setattr(response, _BODY, body)
