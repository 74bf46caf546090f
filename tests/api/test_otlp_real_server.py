"""OTLP through the server that people run: bodies in pieces without a length, and answers before a body is sent."""

import gzip
import json
import socket
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


@pytest.mark.parametrize("key", ["rpk_nobody", None])
def test_a_large_body_does_not_hide_the_answer(running_instance, key):
    """Without a key it is not read, but the sender has to learn why."""
    body = as_protobuf(make_traces(make_span({"long": "x" * 3 * MIB})))

    status, _ = ask(running_instance, "POST", "/v1/traces", body, key=key, **{"Content-Type": PROTOBUF})

    assert status == (200 if key is None else 401)


def test_a_body_that_ends_early_is_not_stored(running_instance):
    body = as_json(make_traces(make_span(trace_id=b"\xee" * 16)))
    address = urlsplit(running_instance.url)
    head = f"POST /v1/traces HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: {JSON}\r\n"
    head += f"Authorization: Bearer {running_instance.api_key}\r\nContent-Length: {len(body) + 10}\r\n\r\n"

    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(head.encode() + body)
        connection.shutdown(socket.SHUT_WR)
        answer = connection.recv(10_000)

    assert not answer.startswith(b"HTTP/1.1 200")
    assert "ee" * 16 not in trace_ids(running_instance)


def test_an_error_is_in_the_encoding_of_the_request(running_instance):
    status, said = ask(running_instance, "POST", "/v1/traces", b"{", **{"Content-Type": JSON})

    assert (status, json.loads(said)["code"]) == (400, 3)
