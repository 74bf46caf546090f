"""OTLP through the server that people run: bodies in pieces without a length, and answers before a body is sent."""

import gzip
import json
import socket
import time
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.api.test_real_server import ask
from tests.otlp_requests import JSON, PROTOBUF, around_spans, as_json, as_protobuf, make_span, make_traces

CHUNKED = {"chunked": True, "Transfer-Encoding": "chunked"}
MIB = 1024 * 1024


def pieces(body, size=7):
    return (body[at : at + size] for at in range(0, len(body), size))


def trace_ids(instance):
    with psycopg.connect(instance.home.environment()["DATABASE_URL"]) as connection:
        return {row[0] for row in connection.execute("SELECT trace_id FROM sessions_app_trace").fetchall()}


@pytest.mark.parametrize(
    ("mark", "type", "write", "pack", "headers"),
    [
        (1, PROTOBUF, as_protobuf, bytes, {}),
        (2, JSON, as_json, bytes, {}),
        (3, PROTOBUF, as_protobuf, gzip.compress, {"Content-Encoding": "gzip"}),
        (4, JSON, as_json, gzip.compress, {"Content-Encoding": "gzip"}),
    ],
)
def test_a_chunked_request_is_read(running_instance, mark, type, write, pack, headers):
    trace_id = bytes([0xC0, mark] * 8)
    body = pack(write(make_traces(make_span({"long": "x" * 100_000}, trace_id=trace_id))))

    options = CHUNKED | headers | {"Content-Type": type}
    status, said = ask(running_instance, "POST", "/v1/traces", pieces(body, 1000), **options)

    assert (status, said) == (200, b"" if type == PROTOBUF else b"{}")
    assert trace_id.hex() in trace_ids(running_instance)


def test_a_chunked_request_is_limited(running_instance):
    too_long = (bytes(MIB) for _ in range(22))

    status, _ = ask(running_instance, "POST", "/v1/traces", too_long, **CHUNKED, **{"Content-Type": PROTOBUF})

    assert status == 413


def test_a_chunked_bomb_of_empty_spans_is_refused(running_instance):
    body = gzip.compress(around_spans(b"\x12\x00" * (9 * MIB)))

    options = CHUNKED | {"Content-Type": JSON, "Content-Encoding": "gzip"}
    status, _ = ask(running_instance, "POST", "/v1/traces", pieces(body, 5000), **options)
    assert status == 400
    options = CHUNKED | {"Content-Type": PROTOBUF, "Content-Encoding": "gzip"}
    status, _ = ask(running_instance, "POST", "/v1/traces", pieces(body, 5000), **options)
    assert status == 413


def connect(instance):
    address = urlsplit(instance.url)
    return socket.create_connection((address.hostname, address.port), timeout=30)


def head_of(length, key):
    lines = ["POST /v1/traces HTTP/1.1", "Host: 127.0.0.1", f"Content-Type: {PROTOBUF}", f"Content-Length: {length}"]
    return "\r\n".join([*lines, f"Authorization: Bearer {key}", "", ""]).encode()


def test_a_refused_sender_that_is_still_sending_gets_its_answer(running_instance):
    """Without a key the body is not kept, but who closes on a sender that is not ready leaves it without a reason."""
    with connect(running_instance) as connection:
        connection.sendall(head_of(3 * MIB, "rpk_nobody"))
        for _ in range(12):
            time.sleep(0.05)
            connection.sendall(bytes(MIB // 4))
        answer = connection.recv(10_000)

    assert answer.startswith(b"HTTP/1.1 401")


def test_a_body_that_ends_early_is_not_stored(running_instance):
    """Cut off between two spans it would still be protobuf."""
    body = as_protobuf(make_traces(make_span(trace_id=b"\xee" * 16)))

    with connect(running_instance) as connection:
        connection.sendall(head_of(len(body) + 10, running_instance.api_key) + body)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(10_000)

    assert not answer.startswith(b"HTTP/1.1 200")
    assert "ee" * 16 not in trace_ids(running_instance)


def test_an_error_is_in_the_encoding_of_the_request(running_instance):
    status, said = ask(running_instance, "POST", "/v1/traces", b"{", **{"Content-Type": JSON})

    assert (status, json.loads(said)["code"]) == (400, 3)
