"""The port that an instance holds, and who answers on it while the web server is down."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from replay_web.supervisor.errors import CannotStart
from replay_web.supervisor.port import Port, bound
from replay_web.supervisor.stand_in import StandIn, come_back

HOST = "127.0.0.1"
MEGABYTE = 1024 * 1024


@pytest.fixture
def port() -> Iterator[int]:
    """Of a stand-in that answers."""
    with socket.create_server((HOST, 0)) as listening:
        stand_in = StandIn(listening)
        stand_in.serve()
        yield listening.getsockname()[1]
        stand_in.step_aside()


def answer_to(port: int, *parts: bytes) -> bytes:
    with socket.create_connection((HOST, port), timeout=10) as connection:
        for part in parts:
            connection.sendall(part)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def head(*lines: str) -> bytes:
    return "\r\n".join(["POST /v1/traces HTTP/1.1", "Host: here", *lines, "", ""]).encode()


BODIES = {
    "no body": [head()],
    "20 MB": [head(f"Content-Length: {20 * MEGABYTE}"), b"x" * 20 * MEGABYTE],
    "20 MB in chunks": [
        head("Transfer-Encoding: chunked"),
        *([b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"] * 20),
        b"0\r\n\r\n",
    ],
    "a length that is none": [head("Content-Length: -5")],
    "a length of many digits": [head(f"Content-Length: {'9' * 5000}"), b"x" * 32 * MEGABYTE],
}


@pytest.mark.parametrize("sent", BODIES.values(), ids=BODIES)
def test_every_request_is_told_to_come_back(port, sent):
    answer = answer_to(port, *sent)

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nRetry-After: 2\r\n" in answer
    assert answer.endswith(b"The server is starting again.\n")


def test_who_asks_six_times_asks_for_half_a_minute():
    asked_at = [0]
    for _ in range(5):
        asked_at.append(asked_at[-1] + come_back(asked_at[-1]))

    assert asked_at == [0, 2, 4, 8, 16, 32]
    assert come_back(3600) == 30


def test_who_asks_before_it_sends_is_told_to_send(port):
    with socket.create_connection((HOST, port), timeout=10) as connection:
        connection.sendall(head("Content-Length: 4", "Expect: 100-continue"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"body")
        assert connection.recv(100).startswith(b"HTTP/1.1 503 ")


def test_who_leaves_early_is_not_spoken_of(port, capfd):
    for _ in range(5):
        with socket.create_connection((HOST, port)) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not an end
            connection.sendall(b"POST")
    assert answer_to(port, head())

    assert capfd.readouterr().err == ""


def test_the_port_stays_open_when_the_stand_in_steps_aside():
    with socket.create_server((HOST, 0)) as listening:
        stand_in = StandIn(listening)
        stand_in.serve()
        stand_in.step_aside()
        with socket.create_connection(listening.getsockname()):
            taken, _ = listening.accept()
            taken.close()


def test_a_port_that_is_about_to_be_free_is_waited_for():
    before = socket.create_server((HOST, 0))
    number = before.getsockname()[1]
    threading.Timer(0.2, before.close).start()

    with bound(HOST, number) as listening:
        assert listening.getsockname()[1] == number
        listening.listen()
        with pytest.raises(CannotStart, match=f"Port {number} is taken"):
            bound(HOST, number)


def test_at_the_end_who_is_connected_is_answered_and_nobody_else_connects():
    port = Port(HOST, bound(HOST, 0))
    port.listening.listen(10)
    stand_in = StandIn(port.listening)
    early = socket.create_connection((HOST, port.number), timeout=10)
    early.sendall(head())

    port.refuse_new()
    with pytest.raises(TimeoutError):
        socket.create_connection((HOST, port.number), timeout=0.2)
    stand_in.serve()
    stand_in.end()
    port.listening.close()

    assert early.recv(65536).startswith(b"HTTP/1.1 503 ")
    early.close()
