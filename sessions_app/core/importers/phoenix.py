"""Phoenix' exports: its data frame of spans as JSON records, and its REST answers.

Source: https://arize.com/docs/phoenix (`Client().spans.get_spans_dataframe()`, then `to_json(orient="records")`;
`GET /v1/projects/{project}/spans`). Attributes may be nested or flat; spans carry them flat, as OpenInference does:
`llm.input_messages.0.message.role`.
"""

from __future__ import annotations

from sessions_app.core.embedded_json import is_shallow, parsed
from sessions_app.core.errors import RecordError
from sessions_app.core.importers.entry import Entry, entries
from sessions_app.core.importers.ids import span_id_of, trace_id_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text
from sessions_app.core.spans.span import Attributes, Scope, Span, SpanEvent, SpanStatus
from sessions_app.core.spans.times import nanoseconds

_COLUMN = "attributes."
_WHOLE = ("metadata", "invocation_parameters", "variables", "parameters", "json_schema", "arguments")
"""Last words of attributes that are an object in themselves (OpenInference: JSON in a text)."""
_STATUS: dict[str, SpanStatus] = {"OK": "ok", "ERROR": "error"}


def matches(value: JsonValue) -> bool:
    """Whether this is parsed JSON of one of these exports."""
    items = _items(value)
    return bool(items) and all(isinstance(item, dict) and _has_context(item) for item in items)


def to_spans(value: JsonValue) -> list[Span]:
    """Raises `RecordError` naming the field."""
    items = _items(value)
    if not items:
        raise RecordError("The document holds no spans of Phoenix.")
    path = "data" if isinstance(value, dict) and "data" in value else ""
    return [_span(entry) for entry in entries(items, path)]


def _items(value: JsonValue) -> list[JsonValue]:
    inner = value.get("data") if isinstance(value, dict) else value
    return inner if isinstance(inner, list) else [value]


def _has_context(item: JsonObject) -> bool:
    context = item.get("context")
    return "context.trace_id" in item or (isinstance(context, dict) and "trace_id" in context)


def _span(entry: Entry) -> Span:
    context = Entry(entry.object("context") or {}, entry.at("context"))
    parent = entry.text("parent_id", "parent_span_id")
    return Span(
        trace_id=trace_id_of(entry.text("context.trace_id") or context.required("trace_id")),
        span_id=span_id_of(entry.text("context.span_id") or context.required("span_id")),
        parent_id=span_id_of(parent) if parent else None,
        name=entry.text("name") or "",
        start_ns=entry.time("start_time"),
        end_ns=entry.time("end_time"),
        status=_STATUS.get((entry.text("status_code") or "").upper(), "unset"),
        status_message=entry.text("status_message") or "",
        events=tuple(_event(item) for item in entry.list("events") if isinstance(item, dict)),
        attributes=_attributes(entry),
        scope=Scope(name="phoenix"),
    )


def _attributes(entry: Entry) -> Attributes:
    kind = entry.text("span_kind")
    said = {"openinference.span.kind": kind} if kind and kind.upper() != "UNKNOWN" else {}
    nested = entry.object("attributes") or {}
    unread = entry.rest("")
    columns = {name[len(_COLUMN) :]: value for name, value in unread.items() if name.startswith(_COLUMN)}
    others = {f"phoenix.{name}": value for name, value in unread.items() if not name.startswith(_COLUMN)}
    return {**said, **flattened(nested), **flattened(columns), **others}


def _event(item: JsonObject) -> SpanEvent:
    said = parsed(item.get("attributes"))
    time = nanoseconds(item.get("timestamp")) or nanoseconds(item.get("time"))
    return SpanEvent(
        name=as_text(item.get("name")) or "", time_ns=time, attributes=flattened(said) if isinstance(said, dict) else {}
    )


def flattened(said: JsonObject) -> Attributes:
    """Names joined by dots, positions in lists of objects among them; nulls are left out."""
    return dict(_flat("", said)) if is_shallow(said) else dict(said)


def _flat(name: str, value: JsonValue) -> list[tuple[str, JsonValue]]:
    if value is None:
        return []
    if isinstance(value, dict) and (not name or name.rpartition(".")[2] not in _WHOLE):
        inner = [(f"{name}.{key}" if name else key, each) for key, each in value.items()]
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        inner = [(f"{name}.{index}", each) for index, each in enumerate(value)]
    else:
        return [(name, value)]
    return [pair for key, each in inner for pair in _flat(key, each)]
