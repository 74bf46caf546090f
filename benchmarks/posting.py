"""Posting spans to an instance over connections that are kept open, and waiting until they can be read."""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from urllib.parse import urlsplit

from benchmarks.traces import Request
from tests.instances import Instance

_PATIENCE = 300.0
_STORED = re.compile(r'^replay_runs\{status="(?:ok|error)"\} (\d+)', re.MULTILINE)


class Client:
    """One connection to an instance."""

    def __init__(self, instance: Instance) -> None:
        self._connection = http.client.HTTPConnection(urlsplit(instance.url).netloc, timeout=_PATIENCE)
        self._key = {"Authorization": f"Bearer {instance.api_key}"}

    def post_spans(self, body: bytes) -> None:
        """Again while the server says that too much arrives at once."""
        headers = self._key | {"Content-Type": "application/x-protobuf"}
        while (status := self._ask("POST", "/v1/traces", body, headers)[0]) == 503:
            time.sleep(0.05)
        assert status == 200, f"the server answered {status}"

    def get(self, path: str, **headers: str) -> bytes:
        status, content = self._ask("GET", path, None, headers or self._key)
        assert status == 200, f"{path} answered {status}"
        return content

    def _ask(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def ended_runs(self) -> int:
        return sum(map(int, _STORED.findall(self.get("/metrics").decode())))


def post_all(instance: Instance, requests: Iterable[Request], *, connections: int) -> list[float]:
    """The seconds that each request took."""
    left, lock = iter(requests), Lock()
    with ThreadPoolExecutor(connections) as pool:
        taken = [pool.submit(_post_next, Client(instance), left, lock) for _ in range(connections)]
        return [seconds for each in taken for seconds in each.result()]


def _post_next(client: Client, left: Iterator[Request], lock: Lock) -> list[float]:
    seconds: list[float] = []
    while True:
        with lock:
            request = next(left, None)
        if request is None:
            return seconds
        began = time.perf_counter()
        client.post_spans(request.body)
        seconds.append(time.perf_counter() - began)


def wait_for_runs(instance: Instance, count: int) -> None:
    """Until so many runs have ended and can be read."""
    client, until = Client(instance), time.monotonic() + _PATIENCE
    while client.ended_runs() < count:
        assert time.monotonic() < until, "runs are missing"
        time.sleep(0.02)
