"""OTLP requests, protobuf or JSON, into spans and log records.

Tolerant where that loses nothing: text that no text can be (bytes that are not UTF-8, half of a surrogate pair) becomes
U+FFFD and is told in `reasons`; unknown fields are skipped. A record that cannot be read is refused alone. Only what
cannot be taken apart into records, or is too much, is refused as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sessions_app.core.otlp.errors import OtlpError, OtlpTooLarge
from sessions_app.core.otlp.json_reader import JsonReader
from sessions_app.core.otlp.limits import DEFAULT_LIMITS, OtlpLimits
from sessions_app.core.otlp.protobuf_reader import ProtobufReader
from sessions_app.core.otlp.reader import Reader
from sessions_app.core.otlp.records import Origin, make_logs, make_origin, make_spans
from sessions_app.core.otlp.schema import LOGS, TRACES, Found, Signal
from sessions_app.core.spans.span import LogRecord, Span

_T = TypeVar("_T")
_MAX_REASONS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoded:
    """What a request holds."""

    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    refused: int = 0
    """Spans or log records that could not be read."""
    reasons: tuple[str, ...] = ()
    """Why, each once with its count, most frequent first; and what was changed in those that were read."""


def decode_traces(body: bytes, *, is_json: bool, limits: OtlpLimits = DEFAULT_LIMITS) -> Decoded:
    """Of an `ExportTraceServiceRequest`. Raises `OtlpError`, and `OtlpTooLarge` where there is too much."""
    read = _Reading(TRACES, make_spans, limits).of(body, is_json=is_json)
    return Decoded(spans=tuple(read.made), refused=read.refused.total(), reasons=read.reasons)


def decode_logs(body: bytes, *, is_json: bool, limits: OtlpLimits = DEFAULT_LIMITS) -> Decoded:
    """Of an `ExportLogsServiceRequest`; errors as in `decode_traces`."""
    read = _Reading(LOGS, make_logs, limits).of(body, is_json=is_json)
    return Decoded(logs=tuple(read.made), refused=read.refused.total(), reasons=read.reasons)


class _Reading(Generic[_T]):
    """One request of one signal, while it is read."""

    def __init__(self, signal: Signal, make: Callable[[Found, Origin], Iterable[_T]], limits: OtlpLimits) -> None:
        self._signal = signal
        self._make = make
        self._limits = limits
        self._reader: Reader
        self.made: list[_T] = []
        self.refused: Counter[str] = Counter()

    def of(self, body: bytes, *, is_json: bool) -> _Reading[_T]:
        root = self._open(body, is_json=is_json)
        # All of them are counted before the first one is read.
        for origin, raw in list(self._records(root)):
            try:
                self.made += list(self._make(self._reader.read(self._signal.record, raw), origin))
            except OtlpTooLarge:
                raise
            except OtlpError as error:
                self.refused[str(error)] += 1
        return self

    @property
    def reasons(self) -> tuple[str, ...]:
        told = [f"{words} ({count})" for words, count in self.refused.most_common(_MAX_REASONS)]
        if self._reader.replaced:
            told.append("something was not valid Unicode text and became U+FFFD")
        return tuple(told)

    def _open(self, body: bytes, *, is_json: bool) -> Any:
        if is_json:
            self._reader = reader = JsonReader(self._limits)
            return reader.load(body)
        self._reader = protobuf = ProtobufReader(self._limits, body)
        return protobuf.whole

    def _records(self, root: Any) -> Iterator[tuple[Origin, Any]]:
        signal, reader = self._signal, self._reader
        for resource in reader.read(signal.request, root)[signal.resources]:
            block = reader.read(signal.resource_block, resource)
            for scope in block[signal.scopes]:
                inner = reader.read(signal.scope_block, scope)
                origin = make_origin(block["resource"], inner["scope"])
                yield from ((origin, raw) for raw in inner[signal.records])
