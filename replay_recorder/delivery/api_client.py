"""Asking the server: one request, and its answer or a sentence that says what is wrong."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlencode

from replay_recorder.delivery.http_client import NoRedirect, compressed, retry_after, sentence
from replay_recorder.settings import VERSION

_TIMEOUT = 60.0
_BUSY = (429, 503)
_LONGEST_REASON = 2000


class ServerError(OSError):
    """The server did not do what it was asked for; the text says why, and is its own where it said something."""

    after: float | None = None
    """Seconds after which it may be asked again; None where that is of no use."""


class ApiClient:
    """Speaks to one address with one key; never follows a redirect, which could carry the key elsewhere."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"User-Agent": f"replay-recorder/{VERSION}"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._opener = urllib.request.build_opener(NoRedirect())

    def get(self, *path: str, **query: object) -> dict[str, Any]:
        """What is at an address, given by its parts behind `/api/v1`."""
        return dict(json.loads(self._ask("GET", _address(path, query))))

    def text(self, *path: str, **query: object) -> str:
        return self._ask("GET", _address(path, query)).decode("utf-8", "replace")

    def post(self, *path: str, body: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(self._ask("POST", _address(path, {}), json.dumps(body).encode())))

    def patiently(self, *path: str, until: float, **query: object) -> dict[str, Any]:
        """`get`, asked again while the server is too busy, up to a time of `monotonic`."""
        while True:
            try:
                return self.get(*path, **query)
            except ServerError as error:
                if error.after is None or time.monotonic() + error.after > until:
                    raise
                time.sleep(error.after)

    def record(self, run_id: str) -> bytes:
        """The run as a native record."""
        return self._ask("GET", f"/api/v1/runs/{quote(run_id)}/record")

    def observed(self, run_id: str, body: bytes) -> dict[str, Any]:
        """Hand in what a replay of the run did here; the replay that the server made of it."""
        answer = json.loads(self._ask("POST", f"/api/v1/runs/{quote(run_id)}/replays/observed", body))
        return dict(answer)

    def goldens(self) -> list[dict[str, Any]]:
        """All goldens of the project, the oldest first."""
        found: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            page = self.get("goldens", limit=500, cursor=cursor)
            found, cursor = found + page["items"], page["next_cursor"]
        return found[::-1]

    def begin_golden_batch(self, label: str, *, is_deploy: bool = False) -> str:
        """The id of a batch to which golden runs of this machine are handed in."""
        body = {"on_own_machine": True, "label": label, "is_deploy": is_deploy}
        return str(self.post("golden-batches", body=body)["golden_batch_id"])

    def observed_golden(self, golden_id: str, batch: str, body: bytes) -> dict[str, Any]:
        """Hand in what a run of the golden did here; what the server says of it."""
        address = f"/api/v1/goldens/{quote(golden_id)}/runs/observed?batch={quote(batch)}"
        return dict(json.loads(self._ask("POST", address, body)))

    def golden_not_run(self, golden_id: str, batch: str, *, agent: str, reason: str) -> dict[str, Any]:
        """Hand in that a run of the golden did not begin here; what the server says of it."""
        address = f"/api/v1/goldens/{quote(golden_id)}/runs/not-run?batch={quote(batch)}"
        body = json.dumps({"agent": agent, "reason": reason[:_LONGEST_REASON]}).encode()
        return dict(json.loads(self._ask("POST", address, body)))

    def golden_batch(self, batch: str) -> dict[str, Any]:
        """The results of a batch so far."""
        return self.get("golden-batches", batch)

    def golden_report(self, batch: str, form: str) -> bytes:
        """`md` or `junit`."""
        return self._ask("GET", f"/api/v1/golden-batches/{quote(batch)}/report?format={form}")

    def _ask(self, method: str, path: str, body: bytes | None = None) -> bytes:
        content, headers = (None, {}) if body is None else compressed(body)
        headers = {**self._headers, **headers, **({} if body is None else {"Content-Type": "application/json"})}
        request = urllib.request.Request(self.url + path, data=content, headers=headers, method=method)
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                refused = ServerError(f"{self.url} answers {error.code}: {sentence(error, _TIMEOUT)}")
                if error.code in _BUSY:
                    refused.after = retry_after(error.headers) or 1.0
            raise refused from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise ServerError(f"{self.url} cannot be reached: {type(reason).__name__}: {reason}") from None


def _address(path: tuple[str, ...], query: dict[str, object]) -> str:
    asked = urlencode(query)
    return "/api/v1/" + "/".join(quote(part) for part in path) + (f"?{asked}" if asked else "")
