"""OTLP/HTTP to the letter: one row for each thing that the specification asks of a server, in both encodings.

Source: OTLP specification 1.9, "OTLP/HTTP"; the words of each row are its own, shortened.
"""

import base64
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sessions_app.api import otlp
from sessions_app.core.otlp.wire import FieldBudget, fields
from sessions_app.models.projects import KeyScope
from tests.builders import make_client, make_key, make_project
from tests.otlp_requests import (
    JSON,
    PROTOBUF,
    SPAN_ID,
    START,
    as_json,
    as_protobuf,
    make_logs,
    make_span,
    make_traces,
)

pytestmark = pytest.mark.django_db
TRACES = make_traces(make_span({"a": 1}))
GOOD = {PROTOBUF: as_protobuf(TRACES), JSON: as_json(TRACES)}
PARTLY = {
    PROTOBUF: as_protobuf(make_traces(make_span(), make_span(span_id=b""))),
    JSON: as_json(make_traces(make_span(), make_span(span_id=b""))),
}
LOGS = {PROTOBUF: as_protobuf(make_logs()), JSON: as_json(make_logs())}
BROKEN = {PROTOBUF: b"\x0a\x7f", JSON: b'{"resourceSpans"'}
NOTHING = {PROTOBUF: b"", JSON: b"{}"}
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstandard.compress,
    "identity": bytes,
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One request, and what has to come back."""

    words: str
    type: str = PROTOBUF
    body: bytes = GOOD[PROTOBUF]
    status: int = 200
    method: str = "POST"
    path: str = "/v1/traces"
    headers: dict[str, str] = field(default_factory=dict)
    answer_type: str | None = None
    """As the request's when not given."""
    spans: int = 1
    """How many are handed on."""
    says: dict[str, str] = field(default_factory=dict)
    """Headers of the answer."""


def span_of(*left_out, **changes):
    """A request of one span in JSON, with these fields in place of its own."""
    request = json.loads(GOOD[JSON])
    scope = request["resourceSpans"][0]["scopeSpans"][0]
    (span,) = scope["spans"]
    scope["spans"] = [{name: value for name, value in (span | changes).items() if name not in left_out}]
    return json.dumps(request).encode()


def of_both(words, bodies, **expected):
    return [Row(words=words, type=type, body=bodies[type], **expected) for type in (PROTOBUF, JSON)]


def packed(encoding, header=None, **expected):
    words = f"Content-Encoding {header or encoding}"
    bodies = {type: PACK[encoding](body) for type, body in GOOD.items()}
    return of_both(words, bodies, headers={"Content-Encoding": header or encoding}, **expected)


ROWS = [
    *of_both("the client sends a POST request; success is 200", GOOD),
    *of_both("the server answers in the Content-Type of the request", GOOD),
    *of_both("partial success is 200 as well", PARTLY),
    *of_both("an empty request is a success", NOTHING, spans=0),
    *of_both("/v1/logs takes log records", LOGS, path="/v1/logs", spans=0),
    *of_both("/v1/metrics takes metrics", NOTHING, path="/v1/metrics", spans=0),
    *of_both("metrics that nobody reads are taken as well", GOOD, path="/v1/metrics", spans=0),
    *of_both("bad data is 400, not to be sent again", BROKEN, status=400, spans=0),
    *of_both("the same for logs", BROKEN, status=400, path="/v1/logs", spans=0),
    *packed("gzip"),
    *packed("deflate"),
    *packed("zstd"),
    *packed("identity"),
    *packed("gzip", header="GZIP"),
    *of_both("an unknown encoding", GOOD, headers={"Content-Encoding": "br"}, status=415, spans=0),
    *of_both("not packed at all", GOOD, headers={"Content-Encoding": "gzip"}, status=400, spans=0),
    Row(words="a charset may follow", type=f"{JSON}; charset=utf-8", body=GOOD[JSON], answer_type=JSON),
    Row(words="and a type may be in capitals", type="Application/X-Protobuf", answer_type=PROTOBUF),
    Row(words="other types are refused", type="text/plain", status=415, answer_type=JSON, spans=0),
    Row(words="gRPC is another protocol", type="application/grpc", status=415, answer_type=JSON, spans=0),
    Row(words="an empty body is no JSON", type=JSON, body=b"", status=400, spans=0),
    *(
        Row(words=f"{method} is not allowed", method=method, status=405, spans=0, says={"Allow": "POST"})
        for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")
    ),
    *(
        Row(words=f"{prefix} is an address as well", path=f"/{prefix}/{signal}", spans=spans, body=body)
        for prefix in ("otel/v1", "api/public/otel/v1")
        for signal, spans, body in (("traces", 1, GOOD[PROTOBUF]), ("logs", 0, b""), ("metrics", 0, b""))
    ),
    *of_both("no key", GOOD, headers={"Authorization": ""}, status=401, spans=0, says={"WWW-Authenticate": "Bearer"}),
    *of_both("an unknown key", GOOD, headers={"Authorization": "Bearer rpk_x"}, status=401, spans=0),
    Row(words="ids are hex, in either case", type=JSON, body=span_of(spanId=SPAN_ID.hex().upper())),
    Row(words="and not base64", type=JSON, body=span_of(spanId=base64.b64encode(SPAN_ID).decode()), spans=0),
    Row(words="enums are numbers", type=JSON, body=span_of(kind=3)),
    Row(words="int64 may be a text", type=JSON, body=span_of(startTimeUnixNano=str(START))),
    Row(words="int64 may be a number", type=JSON, body=span_of(startTimeUnixNano=START)),
    Row(words="unknown fields are ignored", type=JSON, body=span_of(newField={"a": [1]})),
    Row(words="unknown fields are ignored", body=GOOD[PROTOBUF] + b"\xa0\x06\x01"),
    Row(words="fields may be left out", type=JSON, body=span_of("kind", "attributes", "endTimeUnixNano")),
    Row(words="a status may be empty", type=JSON, body=span_of(status={})),
    Row(words="a parent may be empty", type=JSON, body=span_of(parentSpanId="")),
    Row(words="a span without a name is one", type=JSON, body=span_of("name")),
    Row(words="an all zero span id is invalid", type=JSON, body=span_of(spanId="0" * 16), spans=0),
    Row(words="an all zero trace id is invalid", type=JSON, body=span_of(traceId="0" * 32), spans=0),
]


class Received(list[Any]):
    """Stands in the place of what stores."""

    def __call__(self, project, spans, logs, **more):
        self.extend([*spans, *logs])


@pytest.fixture
def received(monkeypatch):
    received = Received()
    monkeypatch.setattr(otlp, "receive", received)
    return received


@pytest.fixture
def client():
    return make_client(make_key(make_project(), KeyScope.INGEST))


def send(client, row):
    # Given twice: Django's client leaves the type of an empty body out.
    return client.generic(row.method, row.path, row.body, row.type, headers=row.headers, CONTENT_TYPE=row.type)


def status_of(answer):
    """The google.rpc.Status of an error, in either encoding: its code and message."""
    if answer["Content-Type"] == JSON:
        status = json.loads(answer.content)
        assert set(status) == {"code", "message"}
        return status["code"], status["message"]
    found = dict(fields(answer.content, (0, len(answer.content)), FieldBudget(9)))
    return found[0x08], answer.content[slice(*found[0x12])].decode()  # type: ignore[misc]  # a sized field is a part


CODES = {400: 3, 401: 16, 405: 12, 415: 3}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.words} ({row.type})")
def test_the_specification(client, received, row):
    answer = send(client, row)

    assert answer.status_code == row.status, answer.content
    assert answer["Content-Type"] == (row.answer_type or row.type)
    assert len(received) == row.spans
    assert {name: answer[name] for name in row.says} == row.says
    if row.status != 200:
        code, message = status_of(answer)
        assert code == CODES[row.status]
        assert message


def test_the_table_has_about_sixty_rows():
    assert len(ROWS) >= 60


@pytest.mark.parametrize("type", GOOD)
def test_partial_success_is_not_set_when_all_is_well(client, received, type):
    answer = client.post("/v1/traces", GOOD[type], content_type=type)

    assert answer.content == {PROTOBUF: b"", JSON: b"{}"}[type]


def test_partial_success_tells_how_many_and_why(client, received):
    in_protobuf = client.post("/v1/traces", PARTLY[PROTOBUF], content_type=PROTOBUF)
    in_json = client.post("/v1/traces", PARTLY[JSON], content_type=JSON)

    partial = ExportTraceServiceResponse.FromString(in_protobuf.content).partial_success
    assert (partial.rejected_spans, partial.error_message) == (1, "1 of 2 refused: span_id is missing (1)")
    assert in_json.json() == {
        "partialSuccess": {"rejectedSpans": "1", "errorMessage": "1 of 2 refused: span_id is missing (1)"}
    }


def test_a_repaired_text_is_a_warning_and_no_refusal(client, received):
    answer = client.post("/v1/traces", GOOD[JSON].replace(b'"a"', b'"\xff"'), content_type=JSON).json()

    assert answer["partialSuccess"]["rejectedSpans"] == "0"
    assert "U+FFFD" in answer["partialSuccess"]["errorMessage"]
    assert received[0].attributes == {"\ufffd": 1}
