"""One POST to an address that was looked at first, within a time and a size.

The name is resolved once, each address that it gave is checked, and the connection goes to one of these: another
answer of the name server a moment later changes nothing. Redirects are not followed and proxies not asked.
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sessions_app.agents.live_model.endpoint import ModelUnavailable, Target

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[[str, int], list[str]]
"""From host and port to addresses in figures."""

MAX_ERROR_BYTES = 64 * 1024
_CONNECT_SECONDS = 10
_PIECE = 64 * 1024
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What came back; `retry_after` as the server wrote it."""

    status: int
    content: bytes
    retry_after: str | None


class Deadline:
    """A moment after which nothing is waited for any more."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds; raises `TimeoutError` when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def leaves(self, seconds: float) -> bool:
        return self._end - time.monotonic() > seconds


def post(
    target: Target,
    headers: Mapping[str, str],
    body: bytes,
    *,
    deadline: Deadline,
    max_bytes: int,
    allow_private: bool,
    resolve: Resolve,
) -> Reply:
    """Raises `ModelUnavailable`, `OSError` and `HTTPException`; the last two may quote what the server said."""
    addresses = checked(resolve(target.host, target.port), target, allow_private=allow_private)
    with closing(_connect(target, addresses, deadline)) as opened:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.auto_open = 0
        connection.sock = _Wire(opened, deadline)
        connection.request("POST", target.path, body, {"Host": target.netloc, **headers})
        with closing(connection.getresponse()) as response:
            content = _read(response, max_bytes if response.status == 200 else MAX_ERROR_BYTES)
            return Reply(status=response.status, content=content, retry_after=response.getheader("Retry-After"))


def _read(response: http.client.HTTPResponse, limit: int) -> bytes:
    content = response.read(limit + 1)
    if len(content) <= limit:
        return content
    if response.status == 200:
        raise ModelUnavailable(f"Its answer is longer than {limit:,} bytes.")
    return b""


# --- addresses ---------------------------------------------------------------------------------


def resolve(host: str, port: int) -> list[str]:
    """Asks the system's resolver."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def checked(addresses: list[str], target: Target, *, allow_private: bool) -> list[str]:
    """The addresses, when all of them are allowed: a name that also leads elsewhere is not trusted at all."""
    read = [_real(ipaddress.ip_address(address)) for address in addresses]
    if any(_is_never_allowed(address) for address in read):
        raise ModelUnavailable("Its name leads to an address that no model answers at.")
    if not allow_private and not all(address.is_global for address in read):
        raise ModelUnavailable("It is in a private network; REPLAY_MODEL_ALLOW_PRIVATE=1 would allow that.")
    if not target.is_tls and any(address.is_global for address in read):
        raise ModelUnavailable("It is outside the private network and does not speak TLS.")
    return addresses


def _real(address: Address) -> Address:
    """The IPv4 address that an IPv6 address stands for, where it does."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_never_allowed(address: Address) -> bool:
    """Link-local ones include those at which clouds hand out the machine's own keys."""
    is_loopback_six = address.version == 6 and address.is_loopback
    is_odd = address.is_multicast or address.is_unspecified or (address.is_reserved and not is_loopback_six)
    return is_odd or address.is_link_local


# --- the connection ----------------------------------------------------------------------------


def _connect(target: Target, addresses: list[str], deadline: Deadline) -> socket.socket:
    opened = _opened(target, addresses, deadline)
    if not target.is_tls:
        return opened
    try:
        opened.settimeout(deadline.left)
        return ssl.create_default_context().wrap_socket(opened, server_hostname=target.host)
    except BaseException:
        opened.close()
        raise


def _opened(target: Target, addresses: list[str], deadline: Deadline) -> socket.socket:
    """A connection to the first address that takes one."""
    failure: OSError = ConnectionError()
    for address in addresses:
        try:
            return socket.create_connection((address, target.port), timeout=min(deadline.left, _CONNECT_SECONDS))
        except OSError as error:
            failure = error
    raise failure


class _Wire:
    """What `http.client` needs of a socket. A socket's own timeout begins anew with each byte that comes."""

    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._opened, self._deadline = opened, deadline

    def sendall(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            self._opened.settimeout(self._deadline.left)
            view = view[self._opened.send(view[:_PIECE]) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self._opened, self._deadline))

    def close(self) -> None:
        """The connection is let go while the answer is still being read; who opened the socket closes it."""


class _Reader(io.RawIOBase):
    def __init__(self, opened: socket.socket, deadline: Deadline) -> None:
        self._opened, self._deadline = opened, deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._opened.settimeout(self._deadline.left)
        return self._opened.recv_into(buffer)
