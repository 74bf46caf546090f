"""A tee in urllib3, under requests and botocore: at each attempt, so that retries show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from replay_recorder.guard import guard
from replay_recorder.raw_http.exchange import Body, Exchange
from replay_recorder.raw_http.log import is_recorded, open_exchange

_BODY = "_replay_recorder_body"
"""The attribute of a response under which its reads find where to note what they read."""
_PORTS = {"http": 80, "https": 443}


def patch_urllib3(module: Any) -> bool:
    """Tee urllib3 2; of urllib3 1, whose responses are made elsewhere, everything but bodies of answers.

    False while the module is still being imported.
    """
    if not hasattr(module, "HTTPConnectionPool") or not hasattr(module, "HTTPResponse"):
        return False
    is_current = not module.__version__.startswith("1.")
    _patch(module.HTTPConnectionPool, _make_request=partial(_attempt, "utf-8" if is_current else "latin-1"))
    if is_current:
        _patch(module.HTTPResponse, _fp_read=_noted, _handle_chunk=_noted, _error_catcher=_watched)
    return True


def _patch(owner: Any, **wraps_by_name: Callable[[Any], Any]) -> None:
    """All of them or none: the last line is reached only when each is there."""
    wrapped = {method: wrap(getattr(owner, method)) for method, wrap in wraps_by_name.items()}
    for method, teed in wrapped.items():
        setattr(owner, method, teed)


def _attempt(charset: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def make_request(self: Any, conn: Any, method: str, url: str, *args: Any, **options: Any) -> Any:
        exchange = _opened(self, method, url, options, charset)
        if exchange is None:
            return original(self, conn, method, url, *args, **options)
        try:
            response = original(self, conn, method, url, *args, **options)
        except BaseException as error:
            with guard("http"):
                exchange.response.end(error)
            raise
        with guard("http"):
            _answered(response, exchange)
        return response

    return make_request


def _opened(pool: Any, method: str, url: str, options: dict[str, Any], charset: str) -> Exchange | None:
    with guard("http"):
        if is_recorded():
            exchange = open_exchange(method, _address(pool, url), options.get("headers") or {})
            if exchange is not None:
                _note_request(exchange.request, options.get("body"), charset)
            return exchange
    return None


def _address(pool: Any, target: str) -> str:
    """In full; through a proxy the target is that already."""
    if "://" in target.split("?", 1)[0]:
        return target
    host = f"[{pool.host}]" if ":" in pool.host and not pool.host.startswith("[") else pool.host
    port = "" if pool.port in (None, _PORTS.get(pool.scheme)) else f":{pool.port}"
    return f"{pool.scheme}://{host}{port}{target}"


def _note_request(body: Body, content: Any, charset: str) -> None:
    """A stream can be read but once, and that is not for us to do."""
    if isinstance(content, str):
        content = content.encode(charset)
    if content is None or isinstance(content, bytes | bytearray):
        body.add(bytes(content or b""))
        body.end()
    else:
        body.left_out = "it was sent as a stream"


def _answered(response: Any, exchange: Exchange) -> None:
    exchange.answered(response.status, response.headers.items())
    body = exchange.response
    if not hasattr(response, "_fp_read"):
        body.left_out = "this version of urllib3 is not teed"
    elif isinstance(response._body, bytes):
        _note_loaded(response, body)
    else:
        setattr(response, _BODY, body)


def _note_loaded(response: Any, body: Body) -> None:
    """By default urllib3 has read the body, and decoded it, before it returns the response."""
    if response._has_decoded_content:
        body.decoded = response.headers.get("content-encoding")
    body.add(response._body)
    body.end()


# --- reads of a response


def _noted(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def read(self: Any, *args: Any, **options: Any) -> Any:
        chunk = original(self, *args, **options)
        body = getattr(self, _BODY, None)
        if body is not None:
            with guard("http"):
                body.add(chunk)
        return chunk

    return read


def _watched(original: Callable[..., Any]) -> Callable[..., Any]:
    """Every read happens inside this context manager of the response, which translates its errors."""

    @wraps(original)
    def error_catcher(self: Any) -> Any:
        catcher, body = original(self), getattr(self, _BODY, None)
        return catcher if body is None else _noting_the_end(catcher, self, body)

    return error_catcher


@contextmanager
def _noting_the_end(catcher: Any, response: Any, body: Body) -> Iterator[None]:
    try:
        with catcher:
            yield
    except BaseException as error:
        with guard("http"):
            body.end(error)
        raise
    with guard("http"):
        if response._original_response is None or response._original_response.isclosed():
            body.end()
