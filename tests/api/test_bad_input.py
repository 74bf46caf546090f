"""Whatever is sent, the answer is ours, in one shape, and a refused body leaves nothing behind."""

import base64
import gzip
import hashlib
import json
import random
import resource
import time
import zlib
from urllib.parse import quote

import pytest
import zstandard

from sessions_app.models import IngestNote
from tests.builders import (
    make_record,
    make_tool_step,
    post_run,
    project_client,
    row_counts,
)

pytestmark = pytest.mark.django_db
MIB = 1024 * 1024


@pytest.fixture
def client():
    client = project_client()
    client.get("/api/v1/cold-cases")
    return client


def nested(depth):
    return b"[" * depth + b"]" * depth


def text(value):
    return json.dumps(value).encode()


def answer(response):
    return {"kind": "model", "response": response}


GOOD = text(make_record("good", make_tool_step(arguments={"a": 1})))
NAMED_NUL = {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "a\0"}]}
HEAD = text(make_record())[:-1]
BAD = {
    "empty": (b"", 400, None),
    "not json": (b"{not json", 400, None),
    "a number": (b"7", 400, None),
    "a word": (b'"hello"', 400, None),
    "no messages": (b"[]", 400, None),
    "not utf-8": (b'{"a": "\xff"}', 400, None),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, 400, None),
    "unknown format": (b'{"a": 1}', 400, None),
    "another format": (text({**make_record(), "format": "trace"}), 400, "format"),
    "future version": (text({**make_record(), "version": 2}), 400, "version"),
    "no run id": (text({**make_record(), "run_id": None}), 400, "run_id"),
    "blank run id": (text(make_record(" ")), 400, "run_id"),
    "NUL in run id": (text(make_record("a\0b")), 400, "run_id"),
    "NUL in session id": (text(make_record(session_id="a\0b")), 400, "session_id"),
    "NUL in tool name": (text(make_record("r", make_tool_step("a\0b"))), 400, "steps[0].tool_name"),
    "long run id": (text(make_record("x" * 513)), 400, "run_id"),
    "long tool name": (text(make_record("r", make_tool_step("x" * 100_000))), 400, "steps[0].tool_name"),
    "parts no list": (text(make_record("r", answer({"parts": 7}))), 400, "steps[0].response.parts"),
    "part no object": (text(make_record("r", answer({"parts": [7]}))), 400, "steps[0].response.parts[0]"),
    "part kind": (
        text(make_record("r", answer({"parts": [{"part_kind": []}]}))),
        400,
        "steps[0].response.parts[0].part_kind",
    ),
    "cause": (text(make_record("r", make_tool_step(retry={"cause": []}))), 400, "steps[0].retry"),
    "parameters": (text(make_record(parameters=[{"function_tools": 7}])), 400, "parameters[0].function_tools"),
    "steps no list": (text({**make_record(), "steps": {}}), 400, "steps"),
    "step no object": (text({**make_record(), "steps": [7]}), 400, "steps[0]"),
    "kind": (text(make_record("r", {"kind": "guess"})), 400, "steps[0].kind"),
    "duration": (
        text(make_record("r", make_tool_step(), make_tool_step(duration_ms="7"))),
        400,
        "steps[1].duration_ms",
    ),
    "boolean duration": (text(make_record(duration_ms=True)), 400, "duration_ms"),
    "time": (text(make_record(started_at="yesterday")), 400, "started_at"),
    "status": (text(make_record(status="fine")), 400, "status"),
    "state": (text(make_record("r", make_tool_step(state={"after": [7]}))), 400, "steps[0].state.after[0]"),
    "unknown in parent": (text(make_record(parent={"run_id": "x", "y": 1})), 400, "parent.y"),
    "after": (text(make_record("r", {"kind": "model", "request": {"after": 3}})), 400, "steps[0].request.after"),
    "media type": (text(make_record(input={"base64": "AA==", "media_type": "nonsense"})), 400, "input.media_type"),
    "base64": (text(make_record(input={"base64": "%%%"})), 400, "input.base64"),
    "message name": (text([NAMED_NUL]), 400, "[0].parts[0].tool_name"),
    "NaN": (HEAD + b', "input": NaN}', 400, None),
    "infinite": (HEAD + b', "input": 1e999}', 400, None),
    "long number": (HEAD + b', "input": ' + b"9" * 5000 + b"}", 400, None),
    "lone surrogate": (HEAD + b', "input": "\\ud800"}', 400, "$.input"),
    "twice": (HEAD + b', "run_id": "s"}', 400, "run_id"),
    "twice deep": (HEAD + b', "flags": {"a": {"b": 1, "\\u0062": 2}}}', 400, "b"),
    "deep": (nested(10_000), 413, None),
    "deep inside": (HEAD + b', "input": ' + nested(10_000) + b"}", 413, None),
    "30 MB": (b'"' + b"x" * 30_000_000 + b'"', 413, None),
}


@pytest.mark.parametrize(("body", "status", "field"), BAD.values(), ids=BAD)
def test_a_bad_body_is_refused_and_leaves_nothing(client, body, status, field):
    before = row_counts()

    answer = post_run(client, body)

    assert answer.status_code == status, answer.content
    assert list(answer.json()) == ["error"]
    assert list(answer.json()["error"]) == ["code", "message", "field"]
    assert answer.json()["error"]["field"] == field
    assert row_counts() == before


def test_a_refused_recording_is_noted_for_people_and_a_refused_question_is_not(client):
    assert client.get("/api/v1/runs?limits=5").status_code == 400
    assert post_run(client, b"{").status_code == 400

    noted = IngestNote.objects.values_list("door", "status", "words")
    assert [(door, status, "limits" in words) for door, status, words in noted] == [("runs", 400, False)]


def test_a_body_that_is_missing_is_said(client):
    answer = client.post("/api/v1/goldens", "", content_type="application/json")

    assert answer.json()["error"]["message"] == "The body: It is required."


def test_a_good_body_leaves_something(client):
    before = row_counts()

    assert post_run(client, GOOD).status_code == 201
    assert row_counts() != before


def gzip_members(count):
    third = len(GOOD) // count
    pieces = [GOOD[n * third : (n + 1) * third] for n in range(count - 1)] + [GOOD[(count - 1) * third :]]
    return b"".join(map(gzip.compress, pieces))


def zeros(size):
    """A bomb made without holding what it blows up to."""
    packer = zlib.compressobj(wbits=31)
    return b"".join(packer.compress(bytes(MIB)) for _ in range(size // MIB)) + packer.flush()


PACKED = {
    "gzip": ("gzip", gzip.compress(GOOD), 201),
    "members": ("gzip", gzip_members(3), 201),
    "upper case": ("GZip", gzip.compress(GOOD), 201),
    "zstd": ("zstd", zstandard.compress(GOOD), 201),
    "deflate": ("deflate", zlib.compress(GOOD), 201),
    "identity": ("identity", GOOD, 201),
    "gzip cut off": ("gzip", gzip.compress(GOOD)[:-1], 400),
    "second member cut off": ("gzip", gzip_members(2)[:-1], 400),
    "gzip and junk": ("gzip", gzip.compress(GOOD) + b"junk", 400),
    "gzip is plain": ("gzip", GOOD, 400),
    "zstd cut off": ("zstd", zstandard.compress(GOOD)[:-1], 400),
    "zstd and junk": ("zstd", zstandard.compress(GOOD) + b"junk", 400),
    "deflate cut off": ("deflate", zlib.compress(GOOD)[:-1], 400),
    "deflate and junk": ("deflate", zlib.compress(GOOD) + b"junk", 400),
    "br": ("br", GOOD, 415),
    "twice": ("gzip, gzip", gzip.compress(gzip.compress(GOOD)), 415),
    "empty members": ("gzip", gzip.compress(b"") * 200_000, 413),
    "zstd bomb": ("zstd", zstandard.compress(bytes(256 * MIB)), 413),
    "too large packed": ("gzip", random.Random(1).randbytes(5 * MIB), 413),
}


@pytest.mark.parametrize(("encoding", "body", "status"), PACKED.values(), ids=PACKED)
def test_packed_bodies(client, encoding, body, status):
    before = row_counts()

    answer = post_run(client, body, **{"Content-Encoding": encoding})

    assert answer.status_code == status, answer.content
    assert (row_counts() == before) == (status != 201)
    assert status == 201 or list(answer.json()["error"]) == ["code", "message", "field"]


def test_a_gzip_bomb_is_refused_at_once_in_little_memory(client):
    bomb = zeros(1024 * MIB)
    assert len(bomb) < 1.1 * MIB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()

    answer = post_run(client, bomb, **{"Content-Encoding": "gzip"})

    took = time.process_time() - begun
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    print(f"1 GiB in {len(bomb)} bytes: {took * 1000:.0f} ms, {grown // 1024} MiB more at the peak")
    assert answer.status_code == 413
    assert took < 1
    assert grown < 128 * 1024  # kB


# --- odd, and taken ----------------------------------------------------------------------------

NUL = "a\0b"
NUL_CALL = {"tool_name": NUL, "tool_call_id": NUL}
rare = random.Random(1)
RARE_NAME = "".join(chr(rare.randrange(0x20000, 0x2A000)) for _ in range(1024))
ODD = {
    "NUL in texts": make_record(
        "odd",
        make_tool_step(arguments={"q": NUL, NUL: NUL}, result=NUL, error={"type": "E", "message": NUL, "x": NUL}),
        make_tool_step(http={"url": NUL, "request_headers": {NUL: NUL}, "response_body": NUL}, retry={"cause": NUL}),
        {"kind": "retrieval", "query": NUL, "chunks": [{"id": "c", "content": NUL, "x": NUL}]},
        {"kind": "model", "settings": {NUL: NUL}, "response": {"kind": "response", "parts": [{"part_kind": NUL}]}},
        input=NUL,
        output=NUL,
        instructions=NUL,
        error={"message": NUL},
        flags={NUL: NUL},
        code={"versions": {NUL: NUL}},
    ),
    "NUL in a state": make_record(
        "odd", make_tool_step(state={"after": [{"op": "add", "path": f"/{NUL}", "value": 1}]})
    ),
    "NUL in a dump": [
        {
            "kind": "request",
            "run_id": "odd",
            "instructions": NUL,
            "parts": [{"part_kind": "user-prompt", "content": NUL}],
        },
        {
            "kind": "response",
            "run_id": "odd",
            "model_name": NUL,
            "provider_name": NUL,
            "finish_reason": NUL,
            "parts": [{"part_kind": "text", "content": NUL}, {"part_kind": NUL, "content": NUL}],
        },
    ],
    "NUL in a session file": {
        "session_id": "odd",
        "messages": [
            {"type": "ModelResponse", "parts": [{"kind": "tool-call", "args": NUL, **NUL_CALL}]},
            {"type": "ModelRequest", "parts": [{"kind": "tool-return", "content": NUL, **NUL_CALL}]},
        ],
    },
    "long names": make_record(
        "odd", make_tool_step(RARE_NAME), model=RARE_NAME, source_format=RARE_NAME, user_id=RARE_NAME
    ),
    "rare ids": make_record("odd", session_id=RARE_NAME[:512], parent={"run_id": RARE_NAME[:512]}),
    "many tokens": make_record("odd", *[{"kind": "model", "input_tokens": 2**53, "output_tokens": 2**53}] * 1100),
    "no numbers": make_record(
        "odd", make_tool_step(arguments='{"a": NaN}', result="[1e999, -Infinity]"), input="[NaN]"
    ),
    "deep JSON in texts": make_record(
        "odd", make_tool_step(arguments="[" * 900 + "]" * 900, result='{"a":' * 500 + "1" + "}" * 500)
    ),
    "long number in text": make_record("odd", make_tool_step(arguments="[" + "9" * 5000 + "]")),
    "first year": make_record("odd", started_at="0001-01-01T00:00:00Z", duration_ms=10**299),
    "last year": make_record("odd", make_tool_step(duration_ms=-1e300), started_at="9999-12-31T23:59:59.999999Z"),
    "answers of odd shape": make_record(
        "odd",
        *(
            {"kind": "model", "response": response}
            for response in ({"parts": None}, {"parts": [{"content": 7}]}, "text", {"base64": "AAAA"}, 7)
        ),
    ),
    "odd operations": make_record("odd", make_tool_step(state={"after": [{"op": 5, "path": 7}]}), initial_state="text"),
    "a state that is bytes": make_record("odd", make_tool_step(), initial_state={"base64": "/w=="}),
    "markup": make_record(
        "odd", make_tool_step("<script>", result="<img src=x onerror=1>"), user_id="<b>", input="<i>"
    ),
}


@pytest.mark.parametrize("document", ODD.values(), ids=ODD)
def test_odd_records_are_taken_and_open_everywhere(client, document):
    answer = post_run(client, document)

    assert answer.status_code == 201, answer.content
    for part in ("", "/steps", "/record", "/kit", "/report?format=md", "/report?format=txt"):
        found = client.get(f"/api/v1/runs/odd{part}")
        assert found.status_code == 200, (part, found.content)
        if "format=" not in part:
            json.loads(found.content, parse_constant=pytest.fail)
    session = quote(answer.json()["session_id"], safe="")
    assert client.get(f"/api/v1/sessions/{session}").status_code == 200
    assert len(client.get("/api/v1/sessions").json()["items"]) == 1
    assert client.get("/api/v1/comparisons?left=odd&right=odd").json()["identical"] is True
    record = client.get("/api/v1/runs/odd/record").content
    assert post_run(client, record).status_code == 200


def test_a_report_of_texts_that_are_no_numbers_is_json(client):
    post_run(client, ODD["no numbers"])

    json.loads(client.get("/api/v1/runs/odd/report").content, parse_constant=pytest.fail)


def test_half_a_surrogate_pair_in_json_inside_a_text_is_taken(client):
    step = make_tool_step(arguments='{"a": "\\ud800"}', result='["\\udfff"]')

    assert post_run(client, make_record("odd", step)).status_code == 201
    assert client.get("/api/v1/runs/odd/steps").json()["items"][0]["arguments"] == '{"a": "\\ud800"}'


def test_what_is_stored_is_what_was_sent(client):
    body = b'{"format":"agent-replay.run","version":1,"run_id":"r","steps":[{"kind":"tool","tool_name":"t",'
    body += b'"arguments":{"n": 1180591620717411303424,  "b":1.0, "a":1e2},"result":"a\\u0000b"}]}'

    assert post_run(client, body).status_code == 201

    step = client.get("/api/v1/runs/r/steps").json()["items"][0]
    exact = b'{"n": 1180591620717411303424,  "b":1.0, "a":1e2}'
    assert step["arguments"]["n"] == 2**70
    assert step["arguments_digest"] == hashlib.sha256(exact).hexdigest()
    assert client.get(f"/api/v1/payloads/{step['arguments_digest']}").content == exact
    assert step["result"] == "a\0b"
    assert client.get(f"/api/v1/payloads/{step['result_digest']}").content == b"a\0b"


def test_bytes_come_back_as_they_were(client):
    content = bytes(range(256)) * 3
    value = {"base64": base64.b64encode(content).decode()}

    post_run(client, make_record("r", make_tool_step(result=value), input=value))

    digest = client.get("/api/v1/runs/r/steps").json()["items"][0]["result_digest"]
    payload = client.get(f"/api/v1/payloads/{digest}")
    assert digest == hashlib.sha256(content).hexdigest()
    assert payload.content == content
    assert payload["Content-Type"] == "application/octet-stream"
    assert payload["Content-Disposition"].startswith("attachment")
    assert client.get("/api/v1/runs/r").json()["input"]["digest"] == digest


def test_unknown_parts_are_kept(client):
    part = {"part_kind": "hologram", "content": {"x": [1]}, "colour": "<b>"}
    messages = [{"kind": "response", "run_id": "r", "parts": [part]}]

    assert post_run(client, messages).status_code == 201
    assert client.get("/api/v1/runs/r/record").json()["steps"][0]["response"]["parts"] == [part]


@pytest.mark.parametrize(
    "run_id", ["a/b", "..", ".", "/", "a//b", "%2F", "a?b#c", "x y", "é", "\x7f", "\ufeff", "a...b"]
)
def test_any_id_has_an_address(client, run_id):
    accepted = post_run(client, make_record(run_id, session_id=f"s{run_id}")).json()

    address = quote(run_id, safe="")
    assert client.get(f"/api/v1/runs/{address}").json()["run_id"] == run_id
    assert client.get(f"/api/v1/runs/{address}/record").json()["run_id"] == run_id
    assert accepted["url"].startswith("http://testserver/p/shop/s/")
