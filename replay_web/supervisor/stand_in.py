"""Answers in the web server's place while it is down: 503, come back.

So nobody waits longer than need be for a server that takes long to start, and a sender tries again (measured with
OpenTelemetry's exporters).
"""

import select
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_WORDS = b"The server is starting again.\n"
_GRACE = 5
"""Seconds that the last requests have to arrive."""
_DRAINED = 32 * 1024 * 1024
"""Bytes of a body that are read before the answer, more than any door takes: many clients look at an answer only when
they have sent everything."""


class StandIn:
    """For one listening socket, which it shares with the web server and never closes."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._server: _Server | None = None

    @property
    def is_serving(self) -> bool:
        return self._server is not None

    def serve(self) -> None:
        """Answer until told to step aside; said again, it goes on."""
        if self._server is not None:
            return
        self._server = _Server(self._listening.getsockname()[:2], _NotNow, bind_and_activate=False)
        self._server.since = time.monotonic()
        self._server.socket.close()
        self._server.socket = self._listening
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="stand-in", daemon=True).start()

    def step_aside(self) -> None:
        """The web server answers again."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()

    def end(self) -> None:
        """Answer all who are connected, then nobody; call it when no one can connect any more."""
        until = time.monotonic() + _GRACE
        while self._server is not None and time.monotonic() < until:
            if not self._server.requests and not select.select([self._listening], [], [], 0.1)[0]:
                self.step_aside()
            time.sleep(0.01)


def come_back(down: float) -> int:
    """Seconds until the next try, after so many without a server. Some exporters ask six times and then give up their
    spans: each wait is as long as all before it, so that six tries last for half a minute."""
    return min(max(2, round(down)), 30)


class _Server(ThreadingHTTPServer):
    since: float
    """When it began to answer, by the monotonic clock."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.requests: set[object] = set()
        """Connections that have no answer yet."""

    def get_request(self) -> tuple[Any, Any]:
        request, address = super().get_request()
        self.requests.add(request)
        return request, address

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.requests.discard(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Who leaves early misses nothing."""


class _NotNow(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 5

    def _refuse(self) -> None:
        self._drain()
        self.send_response(503)
        self.send_header("Retry-After", str(come_back(time.monotonic() - self.server.since)))
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(_WORDS)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(_WORDS)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse

    def _drain(self) -> None:
        """Read the body, in chunks or in one piece."""
        if not self.headers.get("Transfer-Encoding"):
            self._read(_length(self.headers.get("Content-Length", "")))
            return
        left = _DRAINED
        while left > 0 and (size := _length(self.rfile.readline(20), base=16)):
            self._read(size + len("\r\n"))
            left -= size

    def _read(self, left: int) -> None:
        while left > 0 and (chunk := self.rfile.read(min(left, 65536))):
            left -= len(chunk)

    def log_message(self, format: str, *arguments: object) -> None:
        return None


def _length(text: str | bytes, base: int = 10) -> int:
    """0 for what is none, and for more than anybody sends."""
    try:
        return min(int(text[:20], base), _DRAINED)
    except ValueError:
        return 0
