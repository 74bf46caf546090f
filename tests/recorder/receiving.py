"""A server on this machine that takes recordings as the real one does, or fails as told."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What is said instead of the usual."""

    status: int
    message: str = "said by the test"
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes | None = None
    """By default as the real server writes it."""


class Hang(NamedTuple):
    """Say nothing until the event is set, and then break off."""

    until: threading.Event


class Die(NamedTuple):
    """Store it, begin to answer, and break off in the middle."""


@dataclass
class Receiver:
    """What has arrived. `answers` are used up one by one; after them it behaves like the real server."""

    answers: list[Answer | Hang | Die] = field(default_factory=list)
    always: Answer | None = None
    """The answer to everything, when there is no other."""
    refuses: dict[str, Answer] = field(default_factory=dict)
    """Answers for documents with runs of these ids."""
    posts: list[list[dict[str, Any]]] = field(default_factory=list)
    """The runs of each request, whatever was answered."""
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    """Of each request, unpacked."""
    stored: dict[str, bytes] = field(default_factory=dict)
    url: str = ""
    has_request: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def runs(self) -> dict[str, dict[str, Any]]:
        return {run_id: json.loads(record) for run_id, record in self.stored.items()}

    def take(self, body: bytes) -> Answer | Hang | Die:
        with self.lock:
            document = json.loads(body)
            runs = document.get("runs", [document])
            runs = [{"run_id": run.get("session_id"), **run} for run in runs]
            self.bodies.append(body)
            self.posts.append(runs)
            self.has_request.set()
            answer = self._answer(runs)
            is_stored = isinstance(answer, Answer) and answer.status < 300 and answer.body is None
            if is_stored or isinstance(answer, Die):
                self.stored |= {run["run_id"]: json.dumps(run).encode() for run in runs}
        return answer

    def _answer(self, runs: list[dict[str, Any]]) -> Answer | Hang | Die:
        if self.answers:
            return self.answers.pop(0)
        told = [self.refuses[run["run_id"]] for run in runs if run["run_id"] in self.refuses]
        if told:
            return told[0]
        if self.always is not None:
            return self.always
        known = [self.stored.get(run["run_id"]) for run in runs]
        if any(before not in (None, json.dumps(run).encode()) for before, run in zip(known, runs, strict=True)):
            return Answer(409, "Another run has this id.")
        return Answer(200 if all(known) else 201)


@contextmanager
def receiving(*answers: Answer | Hang | Die, port: int = 0, **settings: Any) -> Iterator[Receiver]:
    """A server for one block."""
    receiver = Receiver(answers=list(answers), **settings)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            is_packed = self.headers.get("Content-Encoding") == "gzip"
            receiver.headers.append(dict(self.headers))
            answer = receiver.take(gzip.decompress(body) if is_packed else body)
            if isinstance(answer, Hang):
                answer.until.wait()
                self.close_connection = True
            elif isinstance(answer, Die):
                self.wfile.write(b'HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{"run_id": "')
                self.close_connection = True
            else:
                self.say(answer)

        def do_GET(self) -> None:
            receiver.headers.append(dict(self.headers))
            self.say(Answer(200))

        def say(self, answer: Answer) -> None:
            said = {"run_id": "as sent"} if answer.status < 300 else {"error": {"message": answer.message}}
            body = json.dumps(said).encode() if answer.body is None else answer.body
            self.send_response(answer.status)
            for name, value in {**answer.headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: Any) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
