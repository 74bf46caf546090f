"""Posting recordings: one request, and in words what became of it."""

from __future__ import annotations

import email.utils
import gzip
import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from functools import cached_property
from typing import Any

from replay_recorder.settings import VERSION

_COMPRESS_ABOVE = 1024
_MAX_COMPRESSED = 4 * 1024 * 1024
"""Compressed bodies that the server takes; a longer one goes plain."""
_MAX_WAIT = 3600.0


@dataclass(frozen=True)
class Delivered:
    """The server has stored it."""


@dataclass(frozen=True)
class Refused:
    """The server will never take it."""

    reason: str
    status: int


@dataclass(frozen=True)
class Later:
    """It could not be delivered now."""

    reason: str
    after: float | None = None
    """Seconds that the server asked to wait."""
    is_suspect: bool = False
    """Whether it may be this recording that the server stumbles over."""


Outcome = Delivered | Refused | Later
_PASSING = frozenset({401, 403, 404, 405, 408, 425, 429})
"""Statuses that say something about the server or the key, and nothing about the recording."""


class Client:
    """Sends to one address with one key; never follows a redirect, which could carry the key elsewhere."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/") + "/api/v1/runs"
        self._headers = {"Content-Type": "application/json", "User-Agent": f"replay-recorder/{VERSION}"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    @cached_property
    def _opener(self) -> urllib.request.OpenerDirector:
        """Made when it is needed: certificates take time to load, and not every child process sends."""
        return urllib.request.build_opener(NoRedirect())

    def post(self, body: bytes, *, timeout: float) -> Outcome:
        """Raises nothing; `timeout` in seconds is for each wait on the network, and for reading the answer."""
        content, headers = compressed(body)
        request = urllib.request.Request(self._url, data=content, headers={**self._headers, **headers}, method="POST")
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                return _stored(_read(answer, timeout))
        except urllib.error.HTTPError as error:
            with error:
                return _outcome(error.code, error.headers, sentence(error, timeout))
        except TimeoutError:
            return Later(reason=f"no answer within {timeout:g} seconds", is_suspect=True)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _unreachable(error)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


def compressed(body: bytes) -> tuple[bytes, dict[str, str]]:
    if len(body) > _COMPRESS_ABOVE:
        small = gzip.compress(body, compresslevel=1)
        if len(small) <= _MAX_COMPRESSED:
            return small, {"Content-Encoding": "gzip"}
    return body, {}


def _read(answer: Any, timeout: float) -> bytes:
    """All of it. A server that lets it drip is given up, which the timeout of a socket does not do."""
    deadline = time.monotonic() + timeout
    parts = []
    while part := answer.read1(65536):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


def _stored(content: bytes) -> Outcome:
    """Only the words of this API say that it is stored: some addresses answer 200 to everything."""
    said = _json(content)
    if isinstance(said, dict) and ("run_id" in said or "items" in said):
        return Delivered()
    return Later(reason="the address answers, and not in the words of this API; is the url right?")


def _outcome(status: int, headers: Message, words: str) -> Outcome:
    if status < 400:
        return Later(reason=f"the address answers with a redirect ({status}); set url to where it leads")
    reason = f"{status}: {words}"
    if status >= 500 or status in _PASSING:
        return Later(reason=reason, after=retry_after(headers), is_suspect=status == 500)
    return Refused(reason=reason, status=status)


def retry_after(headers: Message) -> float | None:
    """Seconds, from a number or a date (RFC 9110, section 10.2.3); never more than an hour."""
    said = headers.get("Retry-After")
    if said is None:
        return None
    try:
        seconds = float(said) if said.strip().isdecimal() else _until(said)
    except (ValueError, TypeError, OverflowError):
        return None
    return min(max(seconds, 0.0), _MAX_WAIT)


def _until(date: str) -> float:
    return email.utils.parsedate_to_datetime(date).timestamp() - time.time()


def sentence(error: urllib.error.HTTPError, timeout: float) -> str:
    """What the server says, in its own words; the first words of anything else."""
    try:
        content = _read(error, timeout)
    except (OSError, http.client.HTTPException, ValueError):
        return str(error.reason)
    said = _json(content)
    problem = said.get("error") if isinstance(said, dict) else None
    message = problem.get("message") if isinstance(problem, dict) else None
    text = message if isinstance(message, str) else content[:200].decode("utf-8", "replace")
    return " ".join(text.split())[:500] or str(error.reason)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def _unreachable(error: Exception) -> Later:
    reason = getattr(error, "reason", error)
    is_broken_off = isinstance(reason, (BrokenPipeError, ConnectionResetError, http.client.HTTPException))
    return Later(reason=f"{type(reason).__name__}: {reason}"[:200], is_suspect=is_broken_off)
