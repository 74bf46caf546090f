"""`python -m replay_web.web FD`: what `granian` does, on a socket that the parent has opened.

granian: the fastest WSGI server by our measurement, and it reads chunked bodies. By itself it opens the socket when it
is up and closes it before it ends; the parent's stays open.
"""

import socket
import sys

from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels
from granian.net import SocketHolder  # type: ignore[attr-defined]
from granian.server.mp import MPServer

_THREADS = 12
"""Eight that work, and four for requests that wait (API_MAX_WAITING_REQUESTS), which hold nothing else."""
_GRACE = 10
"""Seconds that requests have to end."""


class _Server(MPServer):
    def __init__(self, listening: socket.socket) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__(
            "replay_web.wsgi:application",
            address=host,
            port=port,
            interface=Interfaces.WSGI,
            http=HTTPModes.http1,
            websockets=False,
            blocking_threads=_THREADS,
            workers_kill_timeout=_GRACE,
            log_level=LogLevels.warning,
        )
        self._listening = listening

    def _init_shared_socket(self) -> None:
        """As the library does it where ports cannot be shared: one socket, which its workers inherit."""
        self._ssp, self._sso = None, self._listening
        self._shd = SocketHolder(self._listening.fileno(), False, self.backlog)  # type: ignore[assignment, call-arg]


if __name__ == "__main__":
    _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
