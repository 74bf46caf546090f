"""Captures of real exporters: the bodies as they were sent, and what truly happened beside them.

    <variant>/<scenario>/NNN.<type>, NNN.headers.json (method, path, headers, content_type, content_encoding), meta.json

A choice of them lies in tests/records/traces; `TRACE_CORPUS` may name a folder with more.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

from sessions_app.core.assembly.lone_calls import gone_on_from, lone_call, response_key
from sessions_app.core.assembly.run import assemble
from sessions_app.core.conventions.reading_order import read_span
from sessions_app.core.importers import langsmith_multipart, openai_agents
from sessions_app.core.otlp.decode import decode_logs, decode_traces
from sessions_app.core.run import Run
from sessions_app.core.spans.merging import merge
from sessions_app.core.spans.span import LogRecord, Span

CHOICE = Path("tests/records/traces")
_INFLATE: dict[str, Callable[[bytes], bytes]] = {
    "": lambda body: body,
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "zstd": lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body),
}


@dataclass(frozen=True)
class Request:
    """One request of an exporter."""

    path: str
    headers: list[tuple[str, str]]
    content_type: str
    encoding: str
    body: bytes

    @property
    def inflated(self) -> bytes:
        return _INFLATE[self.encoding](self.body)


@dataclass(frozen=True)
class Capture:
    """What one run of one instrumented agent sent."""

    folder: Path
    change: Callable[[list[Span]], list[Span]] = list
    """Done to the spans before they are read: checks of the checks use it."""

    @property
    def variant(self) -> str:
        return self.folder.parent.name

    @property
    def name(self) -> str:
        return f"{self.variant}/{self.folder.name}"

    @cached_property
    def truth(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "meta.json").read_text()))

    @cached_property
    def requests(self) -> list[Request]:
        return [_request(path) for path in sorted(self.folder.glob("*.headers.json"))]

    @cached_property
    def spans(self) -> list[Span]:
        return self.change(self.sent)

    @cached_property
    def sent(self) -> list[Span]:
        """The spans of all requests, each once, with their log records."""
        spans: list[Span] = []
        logs: list[LogRecord] = []
        for request in self.requests:
            more_spans, more_logs = decoded(request)
            spans += more_spans
            logs += more_logs
        traces: dict[str, list[Span]] = defaultdict(list)
        for span in spans:
            traces[span.trace_id].append(span)
        return [span for own in traces.values() for span in merge(own, _of_trace(logs, own[0].trace_id))]

    @cached_property
    def runs(self) -> list[Run]:
        """In order of time: one for each trace, or for those that belong together."""
        traces: dict[str, list[Span]] = defaultdict(list)
        for span in self.spans:
            traces[span.trace_id].append(span)
        runs = [assemble(spans, is_closed=True) for spans in _together(traces)]
        return sorted(runs, key=lambda run: (str(run.started_at), run.run_id))

    def __str__(self) -> str:
        return self.name


def _together(traces: dict[str, list[Span]]) -> list[list[Span]]:
    """As the server puts them together: tests/services/test_lone_calls.py."""
    calls = [call for spans in traces.values() if (call := lone_call(spans)) is not None]
    answers = {
        answer: trace_id
        for trace_id in traces.keys() - {call.trace_id for call in calls}
        for span in traces[trace_id]
        if (answer := response_key(read_span(span).response_id)) is not None
    }
    heads: dict[str, str] = {}
    for call in sorted(calls, key=lambda call: call.began_ns):
        before = gone_on_from(call, calls)
        first = answers.get(call.response or b"") or (before and heads.get(before.trace_id))
        heads[call.trace_id] = first or call.trace_id
    joined: dict[str, list[Span]] = defaultdict(list)
    for trace_id in sorted(traces, key=lambda trace_id: trace_id in heads and heads[trace_id] != trace_id):
        joined[heads.get(trace_id, trace_id)] += traces[trace_id]
    return list(joined.values())


def _of_trace(logs: list[LogRecord], trace_id: str) -> list[LogRecord]:
    return [log for log in logs if log.trace_id == trace_id]


def _request(path: Path) -> Request:
    head = json.loads(path.read_text())
    return Request(
        path=head["path"],
        headers=[(name, value) for name, value in head["headers"]],
        content_type=head["content_type"] or "",
        encoding=head["content_encoding"] or "",
        body=(path.parent / head["body_file"]).read_bytes(),
    )


def decoded(request: Request) -> tuple[list[Span], list[LogRecord]]:
    """What a request holds, as its door reads it; metrics hold nothing."""
    body, is_json = request.inflated, "json" in request.content_type
    if request.path.endswith("/v1/traces/ingest"):
        return openai_agents.to_spans(json.loads(body)), []
    if request.path.endswith("/runs/multipart"):
        return langsmith_multipart.to_spans(body, request.content_type), []
    if request.path.endswith("/v1/logs"):
        return [], list(decode_logs(body, is_json=is_json).logs)
    return (list(decode_traces(body, is_json=is_json).spans), []) if request.path.endswith("/v1/traces") else ([], [])


def captures() -> list[Capture]:
    root = Path(os.environ.get("TRACE_CORPUS") or CHOICE)
    return [Capture(path.parent) for path in sorted(root.glob("*/*/meta.json"))]


def variants() -> Iterator[tuple[str, list[Capture]]]:
    found: dict[str, list[Capture]] = defaultdict(list)
    for capture in captures():
        found[capture.variant].append(capture)
    yield from found.items()
