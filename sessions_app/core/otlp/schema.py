"""The messages of OTLP, once for both encodings: protobuf goes by the numbers, JSON by the names.

Source: opentelemetry-proto 1.9, `trace/v1/trace.proto`, `logs/v1/logs.proto`, `common/v1/common.proto` and the two
`collector/*/v1/*_service.proto`. Fields that are not listed are skipped, as the specification asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

Found = dict[str, Any]
"""A message that was read: every field of its schema by name, with its default where it was not sent."""


class Kind(Enum):
    """What a field holds, which decides how it is read."""

    __hash__ = object.__hash__
    """Enum's own is a function in Python, called for every value that is read."""

    TEXT = "text"
    ID = "id"
    """Bytes in protobuf, hex in JSON; hex digits in lower case once read."""
    COUNT = "count"
    TIME = "time"
    ENUM = "enum"
    VALUE = "value"
    """An `AnyValue`."""
    ATTRIBUTE = "attribute"
    """A `KeyValue`."""
    MESSAGE = "message"
    BLOCK = "block"
    """A message that is read when its turn comes; likewise `RECORD`, a span or a log record."""
    RECORD = "record"


_VARINT, _FIXED64, _SIZED = 0, 1, 2
_WIRE_TYPES = {Kind.COUNT: _VARINT, Kind.ENUM: _VARINT, Kind.TIME: _FIXED64}
_DEFAULTS = {Kind.TEXT: "", Kind.ID: "", Kind.COUNT: 0, Kind.ENUM: 0, Kind.TIME: 0}


@dataclass(frozen=True, eq=False)
class Message:
    name: str
    fields: tuple[Field, ...]

    @cached_property
    def by_tag(self) -> dict[int, Field]:
        return {each.tag: each for each in self.fields}

    @cached_property
    def attributes_tag(self) -> int | None:
        """Of the field that holds its attributes; None for a message without any."""
        return next((each.tag for each in self.fields if each.kind is Kind.ATTRIBUTE), None)

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Both spellings: JSON's own and that of the .proto file."""
        return {name: each for each in self.fields for name in (each.name, each.json_name)}

    def blank(self) -> Found:
        """One to fill; what was not sent stays the default, which all of them share."""
        return self._blank.copy()

    @cached_property
    def _blank(self) -> Found:
        return {each.name: _blank(each) for each in self.fields}


NOTHING = Message("nothing", ())


@dataclass(frozen=True, kw_only=True, eq=False)
class Field:
    name: str
    """As the .proto file spells it."""
    number: int
    kind: Kind
    many: bool = False
    message: Message = NOTHING
    """Of a block, a record or a message."""
    words: Mapping[str, int] = field(default_factory=dict)
    """Names of an enum's values."""

    @property
    def tag(self) -> int:
        """What stands before the field in protobuf: its number and its wire type."""
        return self.number << 3 | _WIRE_TYPES.get(self.kind, _SIZED)

    @property
    def json_name(self) -> str:
        first, *others = self.name.split("_")
        return first + "".join(word.title() for word in others)


def _blank(field: Field) -> Any:
    if field.many:
        return ()
    return field.message.blank() if field.kind is Kind.MESSAGE else _DEFAULTS.get(field.kind)


def _one(name: str, number: int, kind: Kind, words: Mapping[str, int] | None = None) -> Field:
    return Field(name=name, number=number, kind=kind, words=words or {})


def _many(name: str, number: int, kind: Kind, message: Message = NOTHING) -> Field:
    return Field(name=name, number=number, kind=kind, many=True, message=message)


def _within(name: str, number: int, message: Message) -> Field:
    return Field(name=name, number=number, kind=Kind.MESSAGE, message=message)


_SPAN_KINDS = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
_STATUS_CODES = ("UNSET", "OK", "ERROR")
SEVERITIES = (
    "UNSPECIFIED",
    *(level + step for level in ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL") for step in ("", "2", "3", "4")),
)
"""Names of the severity numbers."""


def _numbered(prefix: str, names: tuple[str, ...]) -> dict[str, int]:
    return {prefix + name: number for number, name in enumerate(names)}


RESOURCE = Message("Resource", (_many("attributes", 1, Kind.ATTRIBUTE),))
SCOPE = Message(
    "InstrumentationScope",
    (_one("name", 1, Kind.TEXT), _one("version", 2, Kind.TEXT), _many("attributes", 3, Kind.ATTRIBUTE)),
)
STATUS = Message(
    "Status",
    (_one("message", 2, Kind.TEXT), _one("code", 3, Kind.ENUM, _numbered("STATUS_CODE_", _STATUS_CODES))),
)
EVENT = Message(
    "Event",
    (_one("time_unix_nano", 1, Kind.TIME), _one("name", 2, Kind.TEXT), _many("attributes", 3, Kind.ATTRIBUTE)),
)
LINK = Message(
    "Link",
    (_one("trace_id", 1, Kind.ID), _one("span_id", 2, Kind.ID), _many("attributes", 4, Kind.ATTRIBUTE)),
)
SPAN = Message(
    "Span",
    (
        _one("trace_id", 1, Kind.ID),
        _one("span_id", 2, Kind.ID),
        _one("trace_state", 3, Kind.TEXT),
        _one("parent_span_id", 4, Kind.ID),
        _one("name", 5, Kind.TEXT),
        _one("kind", 6, Kind.ENUM, _numbered("SPAN_KIND_", _SPAN_KINDS)),
        _one("start_time_unix_nano", 7, Kind.TIME),
        _one("end_time_unix_nano", 8, Kind.TIME),
        _many("attributes", 9, Kind.ATTRIBUTE),
        _one("dropped_attributes_count", 10, Kind.COUNT),
        _many("events", 11, Kind.MESSAGE, EVENT),
        _one("dropped_events_count", 12, Kind.COUNT),
        _many("links", 13, Kind.MESSAGE, LINK),
        _one("dropped_links_count", 14, Kind.COUNT),
        _within("status", 15, STATUS),
    ),
)
LOG_RECORD = Message(
    "LogRecord",
    (
        _one("time_unix_nano", 1, Kind.TIME),
        _one("severity_number", 2, Kind.ENUM, _numbered("SEVERITY_NUMBER_", SEVERITIES)),
        _one("severity_text", 3, Kind.TEXT),
        _one("body", 5, Kind.VALUE),
        _many("attributes", 6, Kind.ATTRIBUTE),
        _one("trace_id", 9, Kind.ID),
        _one("span_id", 10, Kind.ID),
        _one("observed_time_unix_nano", 11, Kind.TIME),
        _one("event_name", 12, Kind.TEXT),
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Signal:
    """One kind of request: blocks of a resource, in them blocks of a scope, in them the records."""

    record: Message
    records: str
    """What the field of the records is called; likewise `scopes` and `resources`."""
    scopes: str
    resources: str

    @cached_property
    def scope_block(self) -> Message:
        return Message(self.scopes, (_within("scope", 1, SCOPE), _many(self.records, 2, Kind.RECORD, self.record)))

    @cached_property
    def resource_block(self) -> Message:
        blocks = _many(self.scopes, 2, Kind.BLOCK, self.scope_block)
        return Message(self.resources, (_within("resource", 1, RESOURCE), blocks))

    @cached_property
    def request(self) -> Message:
        return Message("request", (_many(self.resources, 1, Kind.BLOCK, self.resource_block),))


TRACES = Signal(record=SPAN, records="spans", scopes="scope_spans", resources="resource_spans")
LOGS = Signal(record=LOG_RECORD, records="log_records", scopes="scope_logs", resources="resource_logs")
