"""Answers in the web server's place while it is down: 503, come back.

So nobody waits longer than need be for a server that takes long to start, and a sender tries again (measured with
OpenTelemetry's exporters).
"""

import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WORDS = b"The server is starting again.\n"
_DRAINED = 32 * 1024 * 1024
"""Bytes of a body that are read before the answer: many clients look at it only when they have sent everything."""


class StandIn:
    """For one listening socket, which it shares with the web server and never closes."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._server: ThreadingHTTPServer | None = None

    @property
    def is_serving(self) -> bool:
        return self._server is not None

    def serve(self) -> None:
        """Answer until told to step aside; said again, it goes on."""
        if self._server is not None:
            return
        self._server = ThreadingHTTPServer(self._listening.getsockname()[:2], _NotNow, bind_and_activate=False)
        self._server.socket.close()
        self._server.socket = self._listening
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="stand-in", daemon=True).start()

    def step_aside(self) -> None:
        """The web server answers again."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()


_COME_BACK = "2"
"""Seconds. Some exporters ask six times and then give up their spans; a start may take longer than six seconds."""


class _NotNow(BaseHTTPRequestHandler):
    timeout = 5

    def _refuse(self) -> None:
        length = self.headers.get("Content-Length", "")
        left = min(int(length), _DRAINED) if length.isdecimal() else 0
        while left > 0 and (chunk := self.rfile.read(min(left, 65536))):
            left -= len(chunk)
        self.send_response(503)
        self.send_header("Retry-After", _COME_BACK)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(_WORDS)))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(_WORDS)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = _refuse

    def log_message(self, format: str, *arguments: object) -> None:
        return None
