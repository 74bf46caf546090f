"""The OTLP doors: keys, packed and hostile bodies, too much at once, storage that fails, and what people see of it."""

import base64
import gzip
import json
import struct
import zlib
from typing import Any

import pytest
import zstandard
from django.db import DataError, IntegrityError, OperationalError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from sessions_app.api import otlp
from sessions_app.api.errors import Refused
from sessions_app.api.otlp_gate import GATE, Gate, expected_size
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import ApiKey, IngestNote, Project, Trace
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import revoke_key
from sessions_app.services.trace_runs import spans_of
from tests.builders import make_client, make_key, make_project
from tests.otlp_requests import (
    JSON,
    PROTOBUF,
    SPAN_ID,
    TRACE_ID,
    around_spans,
    as_json,
    as_protobuf,
    make_logs,
    make_span,
    make_traces,
    sized,
)

pytestmark = pytest.mark.django_db
MIB = 1024 * 1024
GOOD = as_protobuf(make_traces(make_span({"a": 1})))


@pytest.fixture
def project():
    return make_project()


@pytest.fixture
def key(project):
    return make_key(project, KeyScope.INGEST)


@pytest.fixture
def client(key):
    return make_client(key)


def send(client, body=GOOD, path="/v1/traces", type=PROTOBUF, **headers):
    return client.post(path, body, content_type=type, headers=headers)


def stored_spans():
    return [span for trace in Trace.objects.all() for span in spans_of(trace)]


# What is stored


@pytest.mark.parametrize("type", [PROTOBUF, JSON])
def test_a_span_is_stored(client, type):
    request = make_traces(make_span({"gen_ai.operation.name": "chat"}))

    assert send(client, {PROTOBUF: as_protobuf, JSON: as_json}[type](request), type=type).status_code == 200

    (span,) = stored_spans()
    assert (span.trace_id, span.span_id, span.name) == (TRACE_ID.hex(), SPAN_ID.hex(), "chat")
    assert span.attributes == {"gen_ai.operation.name": "chat"}


def bad_spans():
    """Seven, each bad in its own way."""
    changes: list[dict[str, Any]] = [
        {"trace_id": b""},
        {"trace_id": bytes(16)},
        {"trace_id": b"\x01" * 15},
        {"span_id": b""},
    ]
    changes += [{"parent_span_id": b"\x01"}, {"end_time_unix_nano": 2**63}]
    return [*(as_protobuf(make_span(**each)) for each in changes), as_protobuf(make_span())[:-1]]


def test_seven_bad_spans_leave_ninety_three(client):
    good = [as_protobuf(make_span(span_id=bytes([9] * 7 + [n]))) for n in range(93)]
    mixed = [*good[:50], *bad_spans(), *good[50:]]

    answer = send(client, around_spans(b"".join(sized(2, span) for span in mixed)))

    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert (answer.status_code, partial.rejected_spans) == (200, 7)
    assert len(stored_spans()) == 93
    for words in ("trace_id is missing", "all zeros", "not 16 bytes", "span_id", "parent", "range", "malformed"):
        assert words in partial.error_message


def test_nothing_is_stored_of_a_request_that_is_refused_as_a_whole(client):
    assert send(client, GOOD + b"\x0b").status_code == 400
    assert stored_spans() == []
    assert send(client).status_code == 200
    assert len(stored_spans()) == 1


# Keys


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {"Authorization": f"Bearer {key}"},
        lambda key: {"authorization": f"bearer  {key} "},
        lambda key: {"Authorization": basic("pk-lf-anybody", key)},
        lambda key: {"x-api-key": key},
        lambda key: {"Authorization": "Bearer of-somebody-else", "x-api-key": key},
    ],
)
def test_a_key_is_taken_from_where_exporters_put_it(key, headers):
    assert send(make_client(None), **headers(key)).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        lambda key: {},
        lambda key: {"Authorization": key},
        lambda key: {"Authorization": f"Bearer {key}x"},
        lambda key: {"Authorization": basic(key, "")},
        lambda key: {"Authorization": "Basic %%%"},
        lambda key: {"Authorization": "Basic " + base64.b64encode(b"\xff:\xff").decode()},
        lambda key: {"Cookie": f"key={key}"},
    ],
)
def test_without_a_valid_key_nothing_is_read(key, headers):
    answer = send(make_client(None), b"not protobuf", **headers(key))

    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")


def test_a_revoked_key_is_none(client):
    revoke_key(ApiKey.objects.get())

    assert send(client).status_code == 401


def test_spans_go_to_the_project_of_the_key(client):
    other = make_client(make_key(make_project("other")))

    send(client)
    send(other)

    assert sorted(Trace.objects.values_list("project__slug", flat=True)) == ["other", "shop"]


# Bodies


def zeros(size):
    """A sound bomb made without packing what it blows up to: one block comes again and again."""
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 0
    for _ in range(size // MIB):
        checksum = zlib.crc32(MEGABYTE, checksum)
    return GZIP_HEAD + block * (size // MIB) + LAST_BLOCK + struct.pack("<II", checksum, size)


MEGABYTE = bytes(MIB)
GZIP_HEAD = gzip.compress(b"", mtime=0)[:10]
LAST_BLOCK = zlib.compress(b"", wbits=-15)


def test_the_bomb_is_sound():
    """Control: with one byte of its checksum changed it is not, so that a refusal is for what it holds."""
    bomb = zeros(3 * MIB)

    assert gzip.decompress(bomb) == bytes(3 * MIB)
    with pytest.raises(gzip.BadGzipFile, match="CRC"):
        gzip.decompress(bomb[:-8] + bytes([bomb[-8] ^ 1]) + bomb[-7:])


PACKED = {
    "gzip bomb": ("gzip", zeros(1024 * MIB), 413),
    "zstd bomb": ("zstd", zstandard.compress(bytes(256 * MIB)), 413),
    "deflate bomb": ("deflate", zlib.compress(bytes(64 * MIB)), 413),
    "bomb in the second member": ("gzip", gzip.compress(GOOD) + zeros(64 * MIB), 413),
    "empty members": ("gzip", gzip.compress(b"") * 100_000, 413),
    "members": ("gzip", gzip.compress(GOOD[:9]) + gzip.compress(GOOD[9:]), 200),
    "zstd frames": ("zstd", zstandard.compress(GOOD[:9]) + zstandard.compress(GOOD[9:]), 200),
    "empty zstd frames": ("zstd", zstandard.compress(b"") * 100_000, 413),
    "bomb in the second frame": ("zstd", zstandard.compress(GOOD) + zstandard.compress(bytes(64 * MIB)), 413),
    "second frame cut off": ("zstd", zstandard.compress(GOOD) + zstandard.compress(b"")[:-1], 400),
    "gzip cut off": ("gzip", gzip.compress(GOOD)[:-1], 400),
    "deflate cut off": ("deflate", zlib.compress(GOOD)[:-1], 400),
    "zstd cut off": ("zstd", zstandard.compress(GOOD)[:-1], 400),
    "gzip and junk": ("gzip", gzip.compress(GOOD) + b"junk", 400),
    "deflate and junk": ("deflate", zlib.compress(GOOD) + b"junk", 400),
    "zstd and junk": ("zstd", zstandard.compress(GOOD) + b"junk", 400),
    "packed twice": ("gzip, gzip", gzip.compress(gzip.compress(GOOD)), 415),
    "brotli": ("br", GOOD, 415),
}


@pytest.mark.parametrize(("encoding", "body", "status"), PACKED.values(), ids=PACKED)
@pytest.mark.parametrize("signal", ["traces", "metrics"])
def test_packed_bodies(client, signal, encoding, body, status):
    answer = send(client, body, f"/v1/{signal}", **{"Content-Encoding": encoding})

    assert answer.status_code == status, answer.content
    assert len(stored_spans()) == (status == 200 and signal == "traces")


HOSTILE = {
    "empty spans": (PROTOBUF, around_spans(b"\x12\x00" * (5 * MIB)), 413),
    "empty spans in JSON": (JSON, b'{"resourceSpans":[' + b"{}," * (3 * MIB) + b"{}]}", 413),
    "deep JSON": (JSON, b"[" * 100_000, 400),
    "longer than allowed": (PROTOBUF, bytes(21 * MIB), 413),
    "a million attributes": (PROTOBUF, around_spans(sized(2, as_protobuf(make_span()) + b"\x4a\x00" * MIB)), 200),
}


@pytest.mark.parametrize(("type", "body", "status"), HOSTILE.values(), ids=HOSTILE)
def test_bodies_that_hold_too_much(client, type, body, status):
    answer = send(client, body, type=type)

    assert (answer.status_code, answer["Content-Type"]) == (status, type)
    assert stored_spans() == []


# Too much at once


def test_a_full_house_turns_away_before_anything_is_read(client, settings, monkeypatch):
    settings.OTLP_MAX_REQUESTS_IN_FLIGHT = 1
    monkeypatch.setattr(otlp, "read_body", pytest.fail)

    with GATE.enter(1):
        answer = send(client)

    assert answer.status_code == 503
    assert 1 <= int(answer["Retry-After"]) <= 5
    monkeypatch.undo()
    assert send(client).status_code == 200


def test_the_gate_counts_requests_and_bytes(settings):
    settings.OTLP_MAX_REQUESTS_IN_FLIGHT, settings.OTLP_MAX_BYTES_IN_FLIGHT = 2, 1000
    gate = Gate()

    with gate.enter(5000), pytest.raises(Refused), gate.enter(1):
        pass
    with gate.enter(400):
        with pytest.raises(Refused), gate.enter(601):
            pass
        with gate.enter(600), pytest.raises(Refused), gate.enter(0):
            pass
    with gate.enter(1000):
        pass


def test_the_gate_tells_how_many_it_turned_away(settings, caplog):
    settings.OTLP_MAX_REQUESTS_IN_FLIGHT = 1
    gate = Gate()

    with gate.enter(1):
        for _ in range(3):
            with pytest.raises(Refused), gate.enter(1):
                pass
    assert caplog.text == ""
    with gate.enter(1):
        pass

    assert "3 OTLP requests" in caplog.text


def test_the_gate_opens_again_after_an_error(settings):
    settings.OTLP_MAX_REQUESTS_IN_FLIGHT = 1
    gate = Gate()

    for _ in range(3):
        with pytest.raises(ValueError, match="inside"), gate.enter(1):
            raise ValueError("inside")


@pytest.mark.parametrize(
    ("headers", "size"),
    [
        ({"Content-Length": "100"}, 100),
        ({"Content-Length": "100", "Content-Encoding": "gzip"}, 1000),
        ({"Content-Length": "9" * 12}, 20 * MIB),
        ({}, 4 * MIB),
        ({"Content-Encoding": "gzip"}, 20 * MIB),
    ],
)
def test_the_size_of_a_request_is_guessed_before_it_is_read(rf, headers, size):
    request = rf.generic("POST", "/v1/traces")
    request.META.pop("CONTENT_LENGTH", None)
    request.META.update({f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()})
    if "Content-Length" in headers:
        request.META["CONTENT_LENGTH"] = headers["Content-Length"]

    assert expected_size(request) == size


# Storage that fails


FAILURES = {
    "the database is away": (OperationalError("away"), 503),
    "two at once": (IntegrityError("twice"), 503),
    "the disk is full": (OSError(28, "no space"), 503),
    "a value that no column holds": (DataError("secret words"), 400),
    "a bug": (KeyError("secret words"), 400),
    "redaction": (RedactionFailed("secret words"), 400),
}


@pytest.mark.parametrize(("error", "status"), FAILURES.values(), ids=FAILURES)
def test_an_error_is_never_a_500(client, monkeypatch, caplog, error, status):
    def fail(*arguments, **more):
        raise error

    monkeypatch.setattr(otlp, "receive", fail)

    answer = send(client, as_json(make_traces(make_span())), type=JSON)

    assert answer.status_code == status
    assert ("Retry-After" in answer) == (status == 503)
    assert "secret words" not in answer.content.decode() + caplog.text
    assert json.loads(answer.content)["message"]


def test_an_error_of_ours_while_reading_is_not_sent_again(client, monkeypatch, caplog):
    monkeypatch.setitem(otlp._DECODE, "traces", lambda body, is_json: 1 / 0)

    answer = send(client)

    assert answer.status_code == 400
    assert "ZeroDivisionError" in caplog.text


def test_the_database_may_be_away_when_the_key_is_looked_up(client, monkeypatch):
    def fail(request):
        raise OperationalError("away")

    monkeypatch.setattr(otlp, "sending_project", fail)

    assert send(client).status_code == 503


# What people see of it


def notes():
    return sorted(IngestNote.objects.values_list("door", "status", "words", "count"))


def test_deliveries_and_refusals_are_noted(client):
    send(client)
    send(client, as_protobuf(make_logs()), "/v1/logs")
    send(client, around_spans(b"".join(sized(2, span) for span in bad_spans()[:2])))
    send(client, b"\x0b")

    assert notes() == [
        ("traces", 200, "", 1),
        ("traces", 200, "2 of 2 refused: trace_id is missing (1); trace_id is all zeros (1)", 2),
        ("traces", 400, "The request cannot be read: malformed protobuf: wire type 3.", 0),
    ]
    assert {note.project for note in IngestNote.objects.all()} == {Project.objects.get()}


@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({"Authorization": "Bearer rpk_ab12cdefgh"}, "unknown key rpk_ab12…"),
        ({"Authorization": basic("somebody", "sk-lf-secret")}, "unknown key sk-l…"),
        ({}, "no key: send the header Authorization: Bearer <key>"),
    ],
)
def test_a_request_without_a_known_key_is_noted_without_its_secret(headers, words):
    send(make_client(None), **headers)

    assert notes() == [("traces", 401, words, 0)]
