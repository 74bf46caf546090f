"""Which recorded exchange a request of a tool is, and what of it can be given."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay_recorder.recorded_http.exchanges import (
    RecordedExchange,
    SentRequest,
    exchanges_of,
    same_request,
    why_not,
)
from replay_recorder.recorded_http.other_body import OtherBody, other_body
from replay_recorder.replaying.recording import Recording, read_recording
from sessions_app.agents.own_code.recorded_http import recorded_exchange
from sessions_app.core.formats.native import parse_native


def made(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"format": "agent-replay.run", "version": 1, "run_id": "r-1", "status": "ok", "steps": list(steps)}


def recording(*steps: dict[str, Any]) -> Recording:
    return read_recording(made(*steps))


def exchange(**fields: Any) -> RecordedExchange:
    """As the server and a person's own machine read it, which is the same."""
    record = made(
        {"kind": "tool", "tool_name": "ask", "http": {"method": "GET", "url": "https://shop/x", "status": 200} | fields}
    )
    found = read_recording(record).http_steps[0].http
    read = parse_native(json.dumps(record).encode()).steps[0].http
    assert found is not None
    assert read is not None
    assert found == recorded_exchange(read)
    return found


def sent(url: str = "https://shop/x", body: bytes = b"", method: str = "GET") -> SentRequest:
    return SentRequest(method=method, url=url, body=body)


def at(second: int, url: str) -> dict[str, Any]:
    return {"method": "GET", "url": url, "status": 200, "started_at": f"2026-03-01T10:00:{second:02}.000000+00:00"}


def test_exchanges_of_a_call_stand_in_the_order_in_which_they_were_sent():
    run = recording(
        {"kind": "model"},
        {"kind": "tool", "tool_name": "ask", "parent": 1, "http": at(9, "https://shop/last")},
        {"kind": "tool", "tool_name": "ask", "parent": 1, "http": at(2, "https://shop/of-another")},
        {"kind": "other", "parent": 2, "http": at(1, "https://shop/first")},
        {"kind": "tool", "tool_name": "inner", "parent": 2, "http": at(5, "https://shop/inner")},
        {"kind": "other", "parent": 5, "http": at(4, "https://shop/inner-first")},
        {"kind": "model", "parent": 2, "http": at(6, "https://models/inside")},
    )

    urls = [each.url for each in exchanges_of(run.http_steps, 2)]

    assert urls == [f"https://shop/{name}" for name in ("first", "inner-first", "inner", "last")]


def test_exchanges_without_times_end_with_the_one_on_the_call():
    run = recording(
        {"kind": "tool", "tool_name": "ask", "http": {"url": "https://shop/last"}},
        {"kind": "other", "parent": 1, "http": {"url": "https://shop/first"}},
        {"kind": "other", "parent": 1, "http": {"url": "https://shop/second"}},
    )

    assert [each.url for each in exchanges_of(run.http_steps, 1)] == [
        f"https://shop/{name}" for name in ("first", "second", "last")
    ]


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        ("https://shop/x", "https://shop:443/x", True),
        ("https://shop", "https://shop/", True),
        ("https://shop/x", "https://someone:word@SHOP/x#part", True),
        ("https://shop/x?a=1", "https://shop/x?a=2", False),
        ("https://shop/x", "http://shop/x", False),
        ("https://shop/x", "https://shop/x/y", False),
        ("https://shop/x?key=[redacted]&a=1", "https://shop/x?key=s3cr3t&a=1", True),
        ("https://shop/x?key=[redacted]&a=1", "https://shop/x?key=s3cr3t&b=2&a=1", False),
        ("https://shop/u/[email:1a2b3c4d]/x", "https://shop/u/a@b.c/x", True),
        ("https://shop/u/[email:1a2b3c4d]/x", "https://shop/u/a@b.c/y", False),
    ],
)
def test_addresses_are_compared_part_by_part(recorded: str, now: str, same: bool):
    assert same_request(exchange(url=recorded), sent(now)) is same


@pytest.mark.parametrize(
    ("recorded", "now", "same"),
    [
        ({"request_body": '{"a": 1}'}, b'{"a": 1}', True),
        ({"request_body": '{"a": 1}'}, b'{"a":1}', False),
        ({"request_body": '{"a": 1}', "respelled": True}, b'{"a":1}', True),
        ({"request_body": {"a": 1}}, b'{"a":1}', True),
        ({"request_body": {"a": 1}}, b"a=1", False),
        ({"request_body": {"base64": "AP8="}}, b"\x00\xff", True),
        ({"request_body": '{"to": "[email:1a2b3c4d]", "n": 1}'}, b'{"to": "a@b.c", "n": 1}', True),
        ({"request_body": '{"to": "[email:1a2b3c4d]", "n": 1}'}, b'{"to": "a@b.c", "n": 2}', False),
        ({"request_body": "abc", "request_body_cut": True}, b"abcdef", True),
        ({"request_body": "abc", "request_body_cut": True}, b"abdef", False),
        ({"request_body_left_out": "it was sent as a stream"}, b"any", True),
        ({}, b"", True),
        ({}, b"any", False),
    ],
)
def test_bodies_are_compared_as_far_as_they_were_recorded(recorded: dict[str, Any], now: bytes, same: bool):
    assert same_request(exchange(**recorded), sent(body=now)) is same


JSON_VALUE = {"request_body": {"n": 1, "on": True}}


@pytest.mark.parametrize(
    ("now", "same"),
    [
        (b'{"on": true, "n": 1}', True),
        (b'{"n": 1.0, "on": true}', False),
        (b'{"n": true, "on": true}', False),
        (b'{"n": 1, "on": 1}', False),
    ],
)
def test_numbers_of_a_body_that_is_known_as_a_value_keep_their_spelling(now: bytes, same: bool):
    assert same_request(exchange(**JSON_VALUE), sent(body=now)) is same


@pytest.mark.parametrize(
    ("recorded", "now", "found"),
    [
        ('{"a": 1, "b": [1, 2]}', b'{"a": 1, "b": [1, 3]}', ("body.b[1]", 2, 3)),
        ('{"a": 1}', b'{"a": 1.0}', ("body.a", 1, 1.0)),
        ('{"a": 1}', b'{"a": 1, "the key": 2}', ('body["the key"]', None, 2)),
        ('{"b": [1]}', b'{"b": [1, null, 2]}', ("body.b[2]", None, 2)),
        ('{"to": "[email:1a2b3c4d]", "n": 1}', b'{"to": "a@b.c", "n": 2}', ("body.n", 1, 2)),
        ('{"a": 1}', b'{"a":1}', ("body", '{"a": 1}', '{"a":1}')),
        ("a=1&b=2", b"a=1&b=3", ("body", "a=1&b=2", "a=1&b=3")),
        ("x" * 50 + "1" + "y" * 90, b"x" * 50 + b"2", ("body", f"…{'x' * 20}1{'y' * 59}…", f"…{'x' * 20}2")),
        ("a=1", b"", ("body", "a=1", None)),
        ("a=1", b"a=1", None),
    ],
)
def test_the_first_place_where_a_body_is_another_one(recorded: str, now: bytes, found: Any):
    other = other_body([exchange(request_body=recorded)], sent(body=now))

    assert (None if other is None else (other.path, other.recorded, other.now)) == found


def test_a_body_is_held_against_the_one_of_its_own_address():
    """Control: nothing is known of another address, or of a body that was left out."""
    others = [exchange(url="https://shop/other", request_body="n=1"), exchange(request_body="n=2")]
    left_out = exchange(request_body_left_out="a stream")

    assert other_body(others, sent(body=b"n=3")) == OtherBody("body", "n=2", "n=3")
    assert other_body(others, sent("https://shop/third", b"n=3")) is None
    assert other_body([left_out], sent(body=b"n=3")) is None


def test_methods_differ():
    assert not same_request(exchange(), sent(method="POST"))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"status": 429, "response_body": "wait"}, None),
        ({"status": None, "error": {"type": "httpx.ConnectError"}}, "not answered (httpx.ConnectError)"),
        ({"response_body": {"wait": 7}, "response_headers": {"Retry-After": "7"}}, None),
        ({"response_body": {"base64": "AP8="}, "response_headers": [["A", "1"], ["A", "2"]]}, None),
        ({"error": {"type": "httpx.ReadError"}}, "broke off (httpx.ReadError)"),
        ({"body_cut": True}, "too long"),
    ],
)
def test_what_is_not_whole_answers_nothing(fields: dict[str, Any], words: str | None):
    said = why_not(exchange(**fields))

    assert (said is None) == (words is None)
    assert (words or "") in (said or "")
