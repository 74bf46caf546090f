"""Requests that no sender would write: what real ones sent, with a few things changed at random.

Everything comes from a seeded generator, so a number names a request for good.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import zlib
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import zstandard
from google.protobuf.json_format import ParseDict, ParseError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.builders import SAMPLES
from tests.otlp_requests import JSON, PROTOBUF, as_json
from tests.traces.captures import captures

_IDS = {"traceId", "spanId", "parentSpanId"}
_MESSAGES: dict[str, Any] = {"/v1/traces": ExportTraceServiceRequest, "/v1/logs": ExportLogsServiceRequest}
_BLOCKS = {"/v1/traces": "resourceSpans", "/v1/logs": "resourceLogs"}
_DEEP = 6
"""Levels of a request down to the spans."""
_WAY = {"scopeSpans", "spans", "scopeLogs", "logRecords", "steps"}
HOSTILE: list[Any] = [
    *(None, True, False, 0, -1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30, 10**400),
    *(1.5, -0.0, 1e308, 5e-324, math.nan, math.inf, -math.inf),
    *(
        "",
        " ",
        "\x00",
        "\ud800",
        "\udfff\ud800",
        "\u202e",
        "\u200b",
        "\ufeff",
        "\x1b[31m",
        "\ufffd",
        "e" + "\u0301" * 300,
    ),
    *(
        "NaN",
        "null",
        "true",
        "[]",
        "{}",
        "[null]",
        '{"a":',
        "[[[[",
        '"',
        "[" * 600 + "]" * 600,
        '{"a":1,"a":2}',
        "1e999",
    ),
    *(
        "../..",
        "<script>alert(1)</script>",
        "9" * 60,
        "-",
        "%00",
        "http://[::1",
        "data:;base64,%%%",
        "=" * 5,
        "x" * 70_000,
    ),
    *("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "2026-02-30", "18446744073709551616"),
    *([], {}, [None], [[]], [{}], {"": ""}, {"base64": "x"}, {"double": "NaN"}, {"type": 7}, [1, "a", None, {"b": []}]),
    *({"role": "user"}, {"role": ["user"], "content": {}}, {"content": [None, 1, {"text": None}]}, {"parts": "x"}),
]
HEADERS: list[dict[str, Any]] = [
    *(
        {"CONTENT_TYPE": text}
        for text in ("", "text/plain", JSON, PROTOBUF, "application/json;charset=\xff", "x" * 5000)
    ),
    *(
        {"HTTP_CONTENT_ENCODING": text}
        for text in ("gzip", "GZIP", "zstd", "deflate", "br", "identity", "gzip, gzip", "\x00")
    ),
    *(
        {"HTTP_AUTHORIZATION": text}
        for text in ("", "Bearer", "Bearer rpk_x", "Basic x", "Basic /w==", "\xff", "Bearer " * 900)
    ),
    *({"CONTENT_LENGTH": text} for text in ("", "-1", "0", "7", "1e3", "\u00b2", "9" * 30)),
    *({"HTTP_X_API_KEY": text} for text in ("", "\x00", "rpk_\ud800", "\xff")),
]


def nested(depth: int, inner: Any = "x") -> Any:
    for level in range(depth):
        inner = [inner] if level % 2 else {"a": inner}
    return inner


@dataclass(frozen=True)
class Seed:
    """A request as it was truly sent, as a tree, and what has to be there before it."""

    path: str
    tree: Any
    before: bytes = b""
    """Spans in JSON, for log records to belong to."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request of the fuzzer."""

    number: int
    path: str
    body: bytes
    before: bytes = b""
    extra: dict[str, Any] = field(default_factory=dict)
    """In place of, and beside, what a good request would have in its environment."""


@dataclass(frozen=True)
class Fuzzer:
    """Makes requests by number."""

    seed: int

    @cached_property
    def seeds(self) -> list[Seed]:
        found = [Seed("/api/v1/runs", json.loads(sample.read_bytes())) for sample in SAMPLES]
        for capture in captures():
            spans, logs = (whole_request(capture.requests, path) for path in _MESSAGES)
            found += [Seed("/v1/traces", spans)] * 2 if spans else []
            found += [Seed("/v1/logs", logs, json.dumps(spans).encode())] if logs and spans else []
        return [seed for seed in found if len(json.dumps(seed.tree)) < 150_000]

    @cached_property
    def values(self) -> list[Any]:
        """Parts of what was truly sent: good values in wrong places."""
        random = Random(0)
        return [_part(random, random.choice(self.seeds).tree) for _ in range(3000)]

    def request(self, number: int) -> Request:
        random = Random(f"{self.seed} {number}")
        seed = random.choice(self.seeds)
        tree = json.loads(json.dumps(seed.tree))
        if random.random() < 0.9:
            for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
                tree = self._changed(random, tree)
        body, content_type = _written(random, tree, seed.path)
        if random.random() < 0.15:
            body = _damaged(random, body)
        return _sent(random, number, seed, body, content_type)

    def _changed(self, random: Random, tree: Any, depth: int = 0) -> Any:
        """With one place of the tree changed; also places inside of JSON that lies in a text."""
        rarely = 0.1 if depth < _DEEP else 1.0  # else most bodies are broken at their top, and nothing is left to read
        if isinstance(tree, dict | list) and tree and random.random() > 0.05 * rarely:
            if isinstance(tree, dict) and list(tree) == ["stringValue"] and random.random() < 0.6:
                return _any_value(self._changed(random, tree["stringValue"], _DEEP))
            key = _place(random, tree)
            if random.random() < 0.06 * rarely:
                return _without(tree, key)
            tree[key] = self._changed(random, tree[key], depth + 1)
            return tree
        inner = _embedded(tree)
        if inner is not None and random.random() < 0.85:
            return _spelt(self._changed(random, inner, _DEEP))
        return random.choice(_CHANGES)(self, random, tree)

    def _other(self, random: Random) -> Any:
        # A copy, for it may be changed where it comes to stand.
        return json.loads(json.dumps(random.choice((random.choice(HOSTILE), random.choice(self.values)))))


def _place(random: Random, tree: Any) -> Any:
    """A key or position; most often on the way to the records."""
    keys = list(tree) if isinstance(tree, dict) else range(len(tree))
    return next((key for key in keys if key in _WAY and random.random() < 0.9), random.choice(keys))


def _any_value(value: Any) -> Any:
    """As an AnyValue of OTLP; what lies too deep as the text that it would be."""
    try:
        return _as_any(value)
    except RecursionError:
        return {"stringValue": _spelt(value)}


def _as_any(value: Any) -> Any:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_as_any(item) for item in value]}}
        case dict():
            pairs = [{"key": key, "value": _as_any(item)} for key, item in value.items()]
            return {"kvlistValue": {"values": pairs}}
        case None:
            return {}
    return {"stringValue": value}


def _grown(fuzzer: Fuzzer, random: Random, value: Any) -> Any:
    if isinstance(value, list):
        copy = value * random.choice((2, 3, 30))
        random.shuffle(copy)
        return copy[:500]
    if isinstance(value, dict):
        return value | {random.choice(("", "\x00", "role", "content", "type", "x" * 3000)): fuzzer._other(random)}
    return [value, value]


def _cut(fuzzer: Fuzzer, random: Random, value: Any) -> Any:
    text = value if isinstance(value, str) else _spelt(value)
    return text[: random.randrange(len(text) + 1)]


_CHANGES = (
    lambda fuzzer, random, value: fuzzer._other(random),
    lambda fuzzer, random, value: fuzzer._other(random),
    lambda fuzzer, random, value: _any_value(fuzzer._other(random)),
    lambda fuzzer, random, value: _any_value(nested(random.choice((5, 12, 31, 33, 60)))),
    lambda fuzzer, random, value: nested(random.choice((5, 31, 90, 300)), value),
    lambda fuzzer, random, value: _spelt(nested(random.choice((5, 31, 90, 300, 700)), "y")),
    lambda fuzzer, random, value: _spelt(value),
    lambda fuzzer, random, value: [value],
    _grown,
    _cut,
)


def whole_request(requests: Any, path: str) -> Any:
    """All that a capture sent to one address, as one request; None for nothing."""
    blocks: list[Any] = []
    for request in requests:
        if request.path.endswith(path):
            blocks += _tree(request, path).get(_BLOCKS[path], [])
    return {_BLOCKS[path]: blocks} if blocks else None


def _tree(request: Any, path: str) -> Any:
    if "json" in request.content_type:
        return json.loads(request.inflated)
    return json.loads(as_json(_MESSAGES[path].FromString(request.inflated)))


def _part(random: Random, tree: Any) -> Any:
    while isinstance(tree, dict | list) and tree and random.random() > 0.05:
        tree = random.choice(list(tree.values()) if isinstance(tree, dict) else tree)
        tree = _embedded(tree) or tree
    return tree


def _embedded(text: Any) -> Any:
    """The object or list that a text spells; None for other texts."""
    if not isinstance(text, str) or text[:1] not in "{[" or not text:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without(tree: Any, key: Any) -> Any:
    del tree[key]
    return tree


def _written(random: Random, tree: Any, path: str) -> tuple[bytes, str]:
    if path in _MESSAGES and random.random() < 0.5:
        try:
            message = ParseDict(_with_bytes(tree), _MESSAGES[path](), ignore_unknown_fields=True)
            return message.SerializeToString(), PROTOBUF
        except (ParseError, ValueError, TypeError, AttributeError, RecursionError, OverflowError, SystemError):
            pass  # no message of that kind; JSON can say anything
    return _spelt(tree, ensure_ascii=random.random() < 0.7).encode(errors="surrogatepass"), JSON


def _spelt(value: Any, *, ensure_ascii: bool = False) -> str:
    try:
        return json.dumps(value, ensure_ascii=ensure_ascii)
    except RecursionError:
        return "[" * 5000


def _with_bytes(tree: Any) -> Any:
    """Ids as Protobuf's own mapping wants them."""
    if isinstance(tree, list):
        return [_with_bytes(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {
        key: base64.b64encode(bytes.fromhex(item)).decode() if key in _IDS and item else _with_bytes(item)
        for key, item in tree.items()
    }


def _damaged(random: Random, body: bytes) -> bytes:
    """With bytes changed, cut out, put in or said twice."""
    content = bytearray(body)
    for _ in range(random.choice((1, 1, 3, 20))):
        at = random.randrange(len(content) + 1)
        much = random.choice((1, 1, 4, 100))
        match random.randrange(5):
            case 0:
                content[at : at + much] = random.randbytes(much)
            case 1:
                del content[at : at + much]
            case 2:
                content[at:at] = random.randbytes(much)
            case 3:
                content[at:at] = content[at : at + much]
            case _:
                content[at : at + 1] = bytes([content[at] ^ 1 << random.randrange(8)]) if at < len(content) else b""
    return random.choice((bytes(content), bytes(content), bytes(content[: len(content) // 2]), random.randbytes(200)))


def _sent(random: Random, number: int, seed: Seed, body: bytes, content_type: str) -> Request:
    extra: dict[str, Any] = {"CONTENT_TYPE": content_type}
    if random.random() < 0.1:
        encoding, pack = random.choice(
            (("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.compress))
        )
        body, extra["HTTP_CONTENT_ENCODING"] = pack(body), encoding
    if random.random() < 0.07:
        extra |= random.choice(HEADERS)
    return Request(number=number, path=seed.path, body=body, before=seed.before, extra=extra)
