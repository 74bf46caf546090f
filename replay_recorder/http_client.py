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
from typing import Any

_COMPRESS_ABOVE = 1024
_MAX_COMPRESSED = 4 * 1024 * 1024
"""Compressed bodies that the server takes; a longer one goes plain."""


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


Outcome = Delivered | Refused | Later
_PASSING = frozenset({401, 403, 404, 405, 408, 425, 429})
"""Statuses that say something about the server or the key, and nothing about the recording."""


class Client:
    """Sends to one address with one key; never follows a redirect, which could carry the key elsewhere."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/") + "/api/v1/runs"
        self._headers = {"Content-Type": "application/json", "User-Agent": "replay-recorder/0.1.0"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = urllib.request.build_opener(_NoRedirect())

    def post(self, body: bytes, *, timeout: float) -> Outcome:
        """Raises nothing; `timeout` in seconds is for each wait on the network."""
        content, headers = _compressed(body)
        request = urllib.request.Request(self._url, data=content, headers={**self._headers, **headers}, method="POST")
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                answer.read()
            return Delivered()
        except urllib.error.HTTPError as error:
            with error:
                return _outcome(error.code, error.headers, _text(error))
        except (OSError, http.client.HTTPException, ValueError) as error:
            return Later(reason=_words(error))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


def _compressed(body: bytes) -> tuple[bytes, dict[str, str]]:
    if len(body) > _COMPRESS_ABOVE:
        small = gzip.compress(body, compresslevel=1)
        if len(small) <= _MAX_COMPRESSED:
            return small, {"Content-Encoding": "gzip"}
    return body, {}


def _outcome(status: int, headers: Any, text: str) -> Outcome:
    if status < 400:
        return Later(reason=f"the address answers with a redirect ({status}); set url to where it leads")
    if status >= 500 or status in _PASSING:
        return Later(reason=f"{status}: {text}", after=_retry_after(headers))
    return Refused(reason=f"{status}: {text}", status=status)


def _retry_after(headers: Any) -> float | None:
    """Seconds, from a number or a date (RFC 9110, section 10.2.3); never more than an hour."""
    said = headers.get("Retry-After") if headers else None
    if not said:
        return None
    try:
        seconds = float(said)
    except ValueError:
        moment = email.utils.parsedate_to_datetime(said) if _is_date(said) else None
        seconds = moment.timestamp() - time.time() if moment else 0.0
    return min(max(seconds, 0.0), 3600.0)


def _is_date(text: str) -> bool:
    return email.utils.parsedate(text) is not None


def _text(error: urllib.error.HTTPError) -> str:
    """The server's sentence; the first words of anything else."""
    try:
        content = error.read(4096).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return str(error.reason)
    try:
        problem = json.loads(content)
        return str(problem.get("detail") or problem.get("message") or problem.get("error") or content)[:500]
    except (ValueError, AttributeError):
        return content[:200].strip() or str(error.reason)


def _words(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    return f"{type(reason).__name__}: {reason}"[:200]
