"""A few bytes that stand for very many things: what is stored of a body is in proportion to it.

CPU seconds, for each MiB too, and what the memory's peak rose by are printed (`-s`) and not judged.
"""

from __future__ import annotations

import gzip
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, row_counts

pytestmark = pytest.mark.django_db
MIB = 1024 * 1024
BYTES_A_ROW = 32
"""Of a body for each row that it leaves."""
FACTOR = 16
"""Bytes in the database for each of a body; what an empty table takes comes on top."""
EMPTY = 2 * MIB


def span(**attributes: AnyValue) -> bytes:
    request = ExportTraceServiceRequest()
    made = request.resource_spans.add().scope_spans.add().spans.add()
    made.trace_id, made.span_id, made.name = b"\1" * 16, b"\2" * 8, "chat m"
    made.start_time_unix_nano = made.end_time_unix_nano = 1
    made.attributes.extend(KeyValue(key=name, value=value) for name, value in attributes.items())
    return bytes(request.SerializeToString())


def listed(value: AnyValue, count: int) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=[value] * count))


def members(count: int) -> AnyValue:
    return AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key=f"k{number}") for number in range(count)]))


def messages(*said: Any) -> AnyValue:
    return AnyValue(string_value=json.dumps(said))


def text(words: str) -> AnyValue:
    return AnyValue(string_value=words)


def run(*steps: Any, **fields: Any) -> bytes:
    return json.dumps(make_record("m", *steps, **fields)).encode()


def asking(*said: Any) -> dict[str, Any]:
    return {"kind": "model", "request": {"messages": said}}


SPANS: dict[str, Callable[[], bytes]] = {
    "empty values": lambda: span(a=listed(AnyValue(), 300_000)),
    "letters": lambda: span(a=listed(text("x"), 300_000)),
    "members": lambda: span(a=members(100_000)),
    "numbers in a text": lambda: span(**{"gen_ai.input.messages": messages(*range(200_000))}),
    "empty messages in a text": lambda: span(**{"gen_ai.input.messages": messages(*[{}] * 100_000)}),
    "a long text": lambda: span(a=text("x y " * 2_000_000)),
    "cookies": lambda: span(a=text("cookie: a=b; " * 80_000)),
    "unknown fields": lambda: b"\x98\x06\x01" * 600_000,
}
RUNS: dict[str, Callable[[], bytes]] = {
    "parts": lambda: run(asking({"kind": "request", "parts": [{}] * 100_000})),
    "steps": lambda: run(*[make_tool_step(arguments={"n": n}, result=n) for n in range(20_000)]),
    "sums": lambda: run(*[make_tool_step(arguments={"id": "A", "amount": n + 0.1}, result=n) for n in range(20_000)]),
    "lists": lambda: run(input=[[]] * 300_000),
    "a long text": lambda: run(input="x y " * 2_000_000),
    "cookies": lambda: run(input="cookie: a=b; " * 80_000),
}
REFUSED: dict[str, Callable[[], bytes]] = {
    "messages of a request": lambda: run(asking(*[{}] * 100_000)),
    "messages of many requests": lambda: run(*[asking(*[{"n": n}] * 5_000) for n in range(15)]),
    "prior": lambda: run(prior=[{}] * 100_000),
    "steps": lambda: run(*[{"kind": "other"}] * 20_001),
}


def database_bytes() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c WHERE relname LIKE 'sessions_app_%'")
        return int(cursor.fetchone()[0])


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def posted(address: str, media_type: str, body: bytes) -> tuple[int, int, int]:
    """The status, and what is there more: rows, and bytes of the database."""
    client = make_client(make_key(make_project()))
    client.post(address, b"", content_type=media_type)  # what only the first request of a process costs
    rows, size, began = sum(row_counts().values()), database_bytes(), time.process_time()
    packed, peak = gzip.compress(body), peak_memory()
    answer = client.post(address, packed, content_type=media_type, headers={"Content-Encoding": "gzip"})
    took = time.process_time() - began
    more = sum(row_counts().values()) - rows, database_bytes() - size
    inflated, rose = len(body) / MIB, (peak_memory() - peak) / MIB
    print(
        f"{len(packed):>7,} bytes, {inflated:5.2f} MiB inflated: {answer.status_code}, rows and bytes {more}, ", end=""
    )
    print(f"{took:.2f} s, {took / inflated:.2f} s/MiB, +{rose:.0f} MiB")
    return answer.status_code, *more


def assert_in_proportion(body: bytes, rows: int, size: int) -> None:
    assert rows <= 50 + len(body) / BYTES_A_ROW
    assert size <= EMPTY + FACTOR * len(body)


@pytest.mark.parametrize("make", SPANS.values(), ids=SPANS)
def test_spans_that_stand_for_very_many_things(make):
    body = make()

    status, rows, size = posted("/v1/traces", "application/x-protobuf", body)

    assert status in (200, 413)
    assert_in_proportion(body, rows, size)


@pytest.mark.parametrize("make", RUNS.values(), ids=RUNS)
def test_runs_that_stand_for_very_many_things(make):
    body = make()

    status, rows, size = posted("/api/v1/runs", "application/json", body)

    assert status == 201
    assert_in_proportion(body, rows, size)


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED)
def test_runs_of_more_than_a_run_may_have(make):
    assert posted("/api/v1/runs", "application/json", make())[:2] == (413, 0)


def test_a_list_of_long_elements_is_kept_once_however_often_it_comes():
    said = [{"role": "user", "parts": [{"type": "text", "content": f"question {n}"}]} for n in range(100)]
    long = [span(**{"gen_ai.input.messages": messages(*said[: n + 1])}) for n in range(40, 100)]
    client = make_client(make_key(make_project()))
    before = database_bytes()

    for body in long:
        assert client.post("/v1/traces", body, content_type="application/x-protobuf").status_code == 200

    assert database_bytes() - before < sum(map(len, long))
