"""One HTTP exchange as it passes by, and how it stands in a record."""

from __future__ import annotations

import base64
import codecs
import re
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from replay_recorder.guard import guard
from replay_recorder.redaction import safe_headers, safe_url
from replay_recorder.writing.json_text import name
from replay_recorder.writing.run_writer import now

Headers = Mapping[Any, Any] | Iterable[tuple[Any, Any]]

_WINDOWS = {"gzip": (31,), "x-gzip": (31,), "deflate": (15, -15)}
"""What zlib is told for each content coding; servers send deflate with and without its header."""
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[\x20-\x7e]*)?", re.ASCII)


class Body:
    """The bytes of a request or an answer, as they pass by; those above `limit` are only counted."""

    def __init__(self, limit: int) -> None:
        self.content = bytearray()
        self.size = 0
        self.first_at: str | None = None
        """When the first byte came."""
        self.ended: float | None = None
        """When nothing more came, by `time.perf_counter`."""
        self.is_whole = False
        """Whether its end was reached; a reader may stop before, and a connection may break."""
        self.error: dict[str, Any] | None = None
        self.decoded: str | None = None
        """The content coding, where the client took it off before the bytes came here."""
        self.left_out: str | None = None
        """Why the bytes are not here."""
        self.on_end: Callable[[], object] | None = None
        self._limit = limit

    def add(self, chunk: bytes) -> None:
        if not chunk:
            return
        self.first_at = self.first_at or now()
        self.size += len(chunk)
        room = self._limit - len(self.content)
        if room > 0:
            self.content += chunk[:room]

    def end(self, error: BaseException | None = None) -> None:
        """Nothing more comes. `GeneratorExit` is a reader that has stopped, and no failure."""
        if self.ended is not None:
            return
        self.ended = time.perf_counter()
        self.is_whole = error is None
        if error is not None and not isinstance(error, GeneratorExit):
            self.error = _error_facts(error)
        if self.on_end is not None:
            self.on_end()

    def told(self, headers: list[list[str]] | None) -> tuple[Any, dict[str, Any]]:
        """The body as a value of the record, None when it was not captured, and what there is to say about it."""
        if self.left_out is not None or (self.ended is None and self.size == 0):
            return None, {"body_left_out": self.left_out}
        facts = {key.lower(): value for key, value in headers or []}
        content, decoded, is_cut = self._entity(facts.get("content-encoding", "").strip().lower())
        value = None if is_cut and not content else _value(content, facts.get("content-type"), is_cut=is_cut)
        return value, {
            "decoded": decoded,
            "body_cut": is_cut or None,
            "incomplete": None if self.is_whole or is_cut else True,
        }

    def _entity(self, coding: str) -> tuple[bytes, str | None, bool]:
        """The bytes, the content coding that was taken off, and whether some are missing at the end."""
        is_cut = self.size > len(self.content)
        if self.decoded is None:
            plain = _plain(bytes(self.content), coding, self._limit)
            if plain is not None:
                return plain[: self._limit], coding, is_cut or len(plain) > self._limit
        return bytes(self.content), self.decoded, is_cut


class ends:
    """Notes how the block ends as the end of the body; what it raises goes on."""

    def __init__(self, body: Body) -> None:
        self._body = body

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with guard("http"):
            self._body.end(error)


class Exchange:
    """A request and what came back. Secrets in its address and headers are not even kept in memory."""

    def __init__(self, method: str, url: str, headers: Headers, *, limit: int, kept: frozenset[str]) -> None:
        self.method = method
        self.url = safe_url(url)
        self.request_headers = safe_headers(headers, kept)
        self.status: int | None = None
        self.response_headers: list[list[str]] | None = None
        self.request = Body(limit)
        self.response = Body(limit)
        self.started_at = now()
        self.earlier_left_out = 0
        """Exchanges of the same step, just before this one, that were too many to keep."""
        self._kept = kept
        self._mark = time.perf_counter()

    def answered(self, status: int, headers: Headers) -> None:
        """The status line and the headers are here; the body follows."""
        self.status = status
        self.response_headers = safe_headers(headers, self._kept)

    @property
    def error(self) -> dict[str, Any] | None:
        """`type` and `message` of what the client raised."""
        return self.response.error

    @property
    def duration_ms(self) -> float:
        """Until the last byte was read, or until now."""
        ended = self.response.ended or time.perf_counter()
        return round((ended - self._mark) * 1000, 3)

    @property
    def title(self) -> str:
        return f"HTTP {self.method} {urlsplit(self.url).hostname or ''}".strip()

    def fields(self) -> dict[str, Any]:
        """As the field `http` of a step."""
        request_body, of_request = self.request.told(self.request_headers)
        response_body, of_response = self.response.told(self.response_headers)
        found = {
            "method": name(self.method),
            "url": self.url,
            "request_headers": self.request_headers,
            "request_body": request_body,
            **{f"request_{fact}": value for fact, value in of_request.items()},
            "status": self.status,
            "response_headers": self.response_headers,
            **({} if self.status is None else {"response_body": response_body, **of_response}),
            "started_at": self.started_at,
            "first_byte_at": self.response.first_at,
            "duration_ms": self.duration_ms,
            "error": self.error,
            "earlier_left_out": self.earlier_left_out or None,
        }
        return {field: value for field, value in found.items() if value is not None}


# --- bodies


def _plain(content: bytes, coding: str, limit: int) -> bytes | None:
    """The entity's bytes, some more than `limit` at most; None when they are not what the header says."""
    for window in _WINDOWS.get(coding, ()):
        try:
            return _inflated(content, window, limit)
        except zlib.error:
            continue
    return None


def _inflated(content: bytes, window: int, limit: int) -> bytes:
    """Several gzip members in a row are one body."""
    plain = b""
    while content and len(plain) <= limit:
        member = zlib.decompressobj(window)
        plain += member.decompress(content, limit + 1 - len(plain))
        content = member.unused_data
    return plain


def _value(content: bytes, media_type: str | None, *, is_cut: bool) -> Any:
    """Text as a string, anything else in base64; a cut text ends with its last whole character."""
    try:
        text, _ = codecs.utf_8_decode(content, "strict", not is_cut)
        return text
    except UnicodeDecodeError:
        said = media_type if media_type and len(media_type) <= 255 and _MEDIA_TYPE.fullmatch(media_type) else None
        return {"base64": base64.b64encode(content).decode(), **({"media_type": said} if said else {})}


# --- errors


def _error_facts(error: BaseException) -> dict[str, Any]:
    """Its type and the system's own words for it. Messages of clients quote addresses and headers."""
    kind = type(error)
    facts = {"type": name(f"{kind.__module__}.{kind.__qualname__}"), "message": _system_words(error)}
    return {key: value for key, value in facts.items() if value}


def _system_words(error: BaseException | None) -> str | None:
    """Such as "gaierror: Name or service not known", from the innermost error that has any."""
    words, seen = None, 0
    while error is not None and seen < 20:
        if isinstance(error, OSError) and error.strerror:
            words = f"{type(error).__name__}: {error.strerror}"
        error, seen = error.__cause__ or error.__context__, seen + 1
    return words
