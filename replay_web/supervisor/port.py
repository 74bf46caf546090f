"""The port of an instance: one listening socket that is held from the first moment to the last, whoever answers on it.

While the web server is down, who connects waits in the socket's queue or is told to come back; nobody finds the port
closed. That matters to senders: OpenTelemetry's exporter for Python up to 1.39 throws a batch away when nobody listens.
A service manager may open the socket (LISTEN_FDS and LISTEN_PID, see sd_listen_fds(3)); then it outlives even us.
"""

import ctypes
import errno
import os
import re
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import dataclass

from replay_web.supervisor.errors import CannotStart

LOOPBACK = ("127.0.0.1", "::1", "localhost")
BACKLOG = 1024
"""Connections that wait for somebody to take them."""
_SO_ATTACH_FILTER = 26
_NO_OPENING = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (0x30, 0, 0, 13),  # the flags of the segment,
        (0x54, 0, 0, 0x12),  # of which SYN and ACK:
        (0x15, 0, 1, 0x02),  # SYN alone opens a connection
        (0x06, 0, 0, 0),  # and is dropped;
        (0x06, 0, 0, 0xFFFF),  # all others pass
    )
)
"""A packet filter (bpf(4))."""
_FIRST_GIVEN = 3
_PATIENCE = 0.5
"""Seconds."""


@dataclass(frozen=True)
class Port:
    host: str
    listening: socket.socket
    """Does not block: a connection that was waiting may be taken by another process first."""
    is_given: bool = False
    """By a service manager, which keeps it open for the next instance."""

    @property
    def number(self) -> int:
        number: int = self.listening.getsockname()[1]
        return number

    @property
    def reachable(self) -> str:
        """The address on which to ask ourselves."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)

    @property
    def url(self) -> str:
        return f"http://{f'[{self.reachable}]' if ':' in self.reachable else self.reachable}:{self.number}"

    def refuse_new(self) -> None:
        """Nobody connects any more, and who is connected can still be answered.

        To close the socket would reset the connections that wait in its queue, with requests that were sent.
        """
        if sys.platform == "linux" and not self.is_given:
            program = ctypes.create_string_buffer(_NO_OPENING)
            attached = struct.pack("HL", len(_NO_OPENING) // 8, ctypes.addressof(program))
            with suppress(OSError):  # where the kernel has no filters, the last connections are reset
                self.listening.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, attached)


def port_of_environment() -> Port:
    """The given one, or that of HOST and PORT. Raises CannotStart."""
    given = given_socket()
    host = given.getsockname()[0] if given else host_from_environment()
    check_host(host)
    listening = given or bound(host, number_from_environment())
    listening.listen(BACKLOG)
    listening.setblocking(False)
    return Port(host, listening, is_given=given is not None)


def given_socket() -> socket.socket | None:
    if os.environ.get("LISTEN_PID") != str(os.getpid()) or os.environ.get("LISTEN_FDS", "0") == "0":
        return None
    given = socket.socket(fileno=_FIRST_GIVEN)
    is_tcp = given.family in (socket.AF_INET, socket.AF_INET6) and given.type == socket.SOCK_STREAM
    if os.environ["LISTEN_FDS"] != "1" or not is_tcp:
        raise CannotStart("LISTEN_FDS has to give one TCP socket: name one ListenStream=address:port.")
    return given


def bound(host: str, number: int) -> socket.socket:
    """A socket on this port, for 0 on a free one. Raises CannotStart.

    One that was killed may hold the port for some milliseconds after its end.
    """
    until = time.monotonic() + _PATIENCE
    while True:
        listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        # Connections that ended within the last minute keep the port else, and `up` could not be started again.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, number))
        except OSError as error:
            listening.close()
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise CannotStart(cannot_listen(host, number, error)) from error
            time.sleep(0.05)
        else:
            return listening


def cannot_listen(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} is taken by another program. Stop that one, or choose another port, "
            f"e.g. PORT={port + 1} python3 manage.py up (PORT=0 picks a free one)."
        )
    return f"Cannot listen on {host}, port {port}: {error.strerror}. Change HOST or PORT."


def check_host(host: str) -> None:
    """Listening to other machines takes a decision: under which names."""
    if host not in LOOPBACK and not os.environ.get("ALLOWED_HOSTS"):
        raise CannotStart(
            f"HOST={host} lets other machines in. Set ALLOWED_HOSTS to the names they use, "
            "e.g. ALLOWED_HOSTS=replay.example.org"
        )


def host_from_environment() -> str:
    return os.environ.get("HOST") or "127.0.0.1"


def number_from_environment() -> int:
    text = os.environ.get("PORT") or "8000"
    if not re.fullmatch("[0-9]{1,5}", text) or int(text) > 65535:
        raise CannotStart(f"PORT is {text!r}; it has to be a number from 0 to 65535.")
    return int(text)
