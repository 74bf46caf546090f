"""Asking the server: one request, and its answer or a sentence that says what is wrong."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

from replay_recorder.delivery.http_client import NoRedirect, compressed, sentence
from replay_recorder.settings import VERSION

_TIMEOUT = 60.0


class ServerError(OSError):
    """The server did not do what it was asked for; the text says why, and is its own where it said something."""


class ApiClient:
    """Speaks to one address with one key; never follows a redirect, which could carry the key elsewhere."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"User-Agent": f"replay-recorder/{VERSION}"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = urllib.request.build_opener(NoRedirect())

    def record(self, run_id: str) -> bytes:
        """The run as a native record."""
        return self._ask("GET", f"/api/v1/runs/{quote(run_id)}/record")

    def observed(self, run_id: str, body: bytes) -> dict[str, Any]:
        """Hand in what a replay of the run did here; the replay that the server made of it."""
        answer = json.loads(self._ask("POST", f"/api/v1/runs/{quote(run_id)}/replays/observed", body))
        return dict(answer)

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        content, headers = (None, {}) if body is None else compressed(body)
        headers = {**self._headers, **headers, **({} if body is None else {"Content-Type": "application/json"})}
        request = urllib.request.Request(self.url + path, data=content, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise ServerError(f"{self.url} answers {error.code}: {sentence(error, _TIMEOUT)}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"{self.url} cannot be reached: {type(reason).__name__}: {reason}") from None
