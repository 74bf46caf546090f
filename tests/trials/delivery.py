"""Sending to a real server as good clients do: again and again until it is acknowledged; and ending its processes."""

from __future__ import annotations

import http.client
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import psycopg

from replay_web.supervisor.programs import answers
from tests.instances import Instance

PATIENCE = 120.0
_LOST = (OSError, http.client.HTTPException)


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """One request."""

    name: str
    path: str
    content_type: str
    body: bytes


@dataclass
class Delivery:
    """Requests on their way to one instance, and what became of them."""

    instance: Instance
    statuses: Counter[object] = field(default_factory=Counter)
    """Of every answer; `lost` counts the attempts that got none."""
    acknowledged: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def retries(self) -> int:
        return self.statuses["lost"] + self.statuses[503]

    def has_acknowledged(self, count: int) -> bool:
        return len(self.acknowledged) >= count

    def send_all(self, parcels: Iterable[Parcel], *, connections: int = 8) -> None:
        """Returns when all are acknowledged; raises for an answer that no client repeats."""
        with ThreadPoolExecutor(connections) as pool:
            list(pool.map(self.send, parcels))

    def send(self, parcel: Parcel) -> None:
        until = time.monotonic() + PATIENCE
        while (status := self.attempt(parcel)) not in (200, 201):
            assert status in ("lost", 503), f"{parcel.path} answers {status}"
            assert time.monotonic() < until, f"{parcel.name} is never acknowledged"
            time.sleep(0.05)
        with self._lock:
            self.acknowledged.append(parcel.name)

    def attempt(self, parcel: Parcel) -> object:
        """The status of one answer, or `lost`."""
        try:
            status = self._post(parcel)
        except _LOST:
            status = "lost"
        with self._lock:
            self.statuses[status] += 1
        return status

    def _post(self, parcel: Parcel) -> object:
        connection = http.client.HTTPConnection(urlsplit(self.instance.url).netloc, timeout=30)
        headers = {"Authorization": f"Bearer {self.instance.api_key}", "Content-Type": parcel.content_type}
        try:
            connection.request("POST", parcel.path, parcel.body, headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        finally:
            connection.close()


def kill_web(instance: Instance, how: signal.Signals = signal.SIGKILL) -> None:
    """End the web server with all its processes, and wait until the supervisor has another one serving."""
    (pid,) = instance.pids("web")
    os.killpg(pid, how)
    wait_until(lambda: instance.pids("web") != [pid] and is_serving(instance))


def is_serving(instance: Instance) -> bool:
    address = urlsplit(instance.url)
    return answers(str(address.hostname), int(address.port or 0))


def wait_until(is_so: Callable[[], bool], seconds: float = PATIENCE) -> None:
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, "it never happens"
        time.sleep(0.02)


def rows(instance: Instance, query: str, *values: object) -> list[tuple[object, ...]]:
    """Of the instance's own database, on which no test of this process works."""
    with psycopg.connect(instance.home.environment()["DATABASE_URL"]) as connection:
        return connection.execute(query, values).fetchall()
