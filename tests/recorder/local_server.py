"""A real HTTP server on this machine that answers by script and remembers what it received."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """`chunks` are sent one by one as they come, in place of `body`; `promised` is a false Content-Length."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    chunks: Callable[[], Iterable[bytes]] | None = None
    promised: int | None = None


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    port: int
    """Of the client: one for each connection."""


@dataclass
class LocalServer:
    """`answers` by path without query; of several the last one stays."""

    url: str
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    broken: threading.Event = field(default_factory=threading.Event)
    """Set when a client has gone while it was answered."""

    def answer(self, path: str, *answers: Answer) -> str:
        """Answer so from now on; the full address."""
        self.answers[path] = list(answers)
        return self.url + path

    def next_answer(self, path: str) -> Answer:
        waiting = self.answers.get(path.split("?")[0], [Answer(status=404)])
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


@contextmanager
def local_server() -> Iterator[LocalServer]:
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server = httpd.script = LocalServer(url=f"http://127.0.0.1:{httpd.server_port}")
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.server.script.broken.set()

    def parse_request(self) -> bool:
        """Every method is answered alike."""
        parsed = super().parse_request()
        if parsed:
            setattr(self, f"do_{self.command}", self._answer)
        return parsed

    def _answer(self) -> None:
        script = self.server.script
        found = Received(
            self.command, self.path, dict(self.headers.items()), self._request_body(), self.client_address[1]
        )
        script.received.append(found)
        answer = script.next_answer(self.path)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self._send_chunks(answer.chunks()) if answer.chunks else self._send_body(answer)

    def _request_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _send_body(self, answer: Answer) -> None:
        if answer.status != 204:
            self.send_header("Content-Length", str(answer.promised or len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)
        self.close_connection = self.close_connection or answer.promised is not None

    def _send_chunks(self, chunks: Iterable[bytes]) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *arguments: Any) -> None:
        return None
