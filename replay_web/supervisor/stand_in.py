"""Answers in the web server's place while it is down.

Some senders give up on a batch when nobody listens, and try again when somebody says 503 (measured with OpenTelemetry's
exporter for Python up to 1.39). The socket shares the server's port from the start and listens only after its death, so
that no request is taken from a server that lives.
"""

import os
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_WORDS = b"The server is starting again.\n"
_DRAINED = 32 * 1024 * 1024
"""Bytes of a body that are read before the answer: many clients look at it only when they have sent everything."""


class StandIn:
    """For one port, as long as the supervisor lives. Does nothing where the port cannot be shared."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._server: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()

    @property
    def is_serving(self) -> bool:
        return self._server is not None

    def watch(self, pid: int) -> None:
        """Serve from the moment that this child of ours ends."""
        bound = self._bound()
        if bound is not None:
            threading.Thread(target=self._wait, args=(pid, bound), name="stand-in", daemon=True).start()

    def step_aside(self) -> None:
        """The web server answers again."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()

    def _bound(self) -> ThreadingHTTPServer | None:
        family = socket.AF_INET6 if ":" in self._address[0] else socket.AF_INET
        server = ThreadingHTTPServer(self._address, _NotNow, bind_and_activate=False)
        server.socket.close()
        server.socket = socket.socket(family)
        try:
            server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            # What it answered last keeps the port for a minute, in which `up` may be started again.
            server.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.socket.bind(self._address)
        except OSError:
            server.socket.close()
            return None
        return server

    def _wait(self, pid: int, server: ThreadingHTTPServer) -> None:
        wait_for_death(pid)
        server.server_activate()
        with self._lock:
            self._server = server
        server.serve_forever(poll_interval=0.05)


def wait_for_death(pid: int, wait: Callable[..., object] = os.waitid) -> None:
    """Until the child has ended; it stays there for whoever waits for it next."""
    try:
        wait(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    except ChildProcessError:
        return


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
