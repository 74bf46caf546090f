"""Traces of the OpenAI Agents SDK, as its own exporter sends them.

    {"data": [{"object": "trace", "id": "trace_<32 hex>", "workflow_name", "group_id", "metadata"},
              {"object": "trace.span", "id": "span_<24 hex>", "trace_id", "parent_id", "started_at", "ended_at",
               "span_data": {"type", ...}, "error": {"message", "data"}}]}

Source: `agents.tracing` (`BackendSpanExporter`, `Trace.export`, `Span.export`, `span_data.py`). The objects may come in
any order and in several bodies; a list of the objects, or of bodies (JSON lines), is taken as well.

Ids become those of OpenTelemetry by a rule that needs no other span: `trace_<32 hex>` is a trace id without its
beginning, every other id the first digits of the SHA-256 of its text. The trace itself is the span around all
others, and its id comes from the trace's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.fields import parse_time
from sessions_app.core.payload import JsonObject, JsonValue, sha256_hex
from sessions_app.core.spans.span import Attributes, Scope, Span, nanoseconds_of

TRACE = "trace"
SPAN = "trace.span"
PREFIX = "openai_agents."

_TRACE_ID = re.compile(r"trace_([0-9a-f]{32})")
_SCOPE = Scope(name="openai-agents")
_TRACE_FIELDS = frozenset({"object", "id", "metadata"})
_SPAN_FIELDS = _TRACE_FIELDS | {"trace_id", "parent_id", "started_at", "ended_at", "span_data"}


def matches(value: JsonValue) -> bool:
    """Whether the first object of the document is a trace or a span of this SDK."""
    _, first = next(_objects(value), ("", None))
    return _kind(first) in (TRACE, SPAN) and isinstance(first, dict) and isinstance(first.get("id"), str)


def to_spans(value: JsonValue) -> list[Span]:
    """One span for each object; raises `RecordError` naming the field, as in `data[2].span_data`."""
    return [_to_span(item, path) for path, item in _objects(value)]


def _objects(value: JsonValue) -> Iterator[tuple[str, JsonValue]]:
    """Each object and where it stands."""
    bodies = value if isinstance(value, list) else [value]
    for position, body in enumerate(bodies):
        at = f"[{position}]" if isinstance(value, list) else ""
        rows = body.get("data") if isinstance(body, dict) and "object" not in body else None
        if isinstance(rows, list):
            yield from ((f"{at}.data[{i}]".lstrip("."), row) for i, row in enumerate(rows))
        else:
            yield at, body


def _to_span(item: JsonValue, path: str) -> Span:
    match _kind(item):
        case "trace":
            return _trace(item, path)
        case "trace.span":
            return _span(item, path)
    raise _error(path, "object", "must be 'trace' or 'trace.span'")


def _kind(item: JsonValue) -> JsonValue:
    return item.get("object") if isinstance(item, dict) else None


def _trace(item: JsonObject, path: str) -> Span:
    own_id = _required(item, "id", path)
    return Span(
        trace_id=trace_id_of(own_id),
        span_id=span_id_of(own_id),
        name=_text(item, "workflow_name", path) or TRACE,
        attributes={**_others(item, _TRACE_FIELDS, path), PREFIX + "type": TRACE},
        scope=_SCOPE,
    )


def _span(item: JsonObject, path: str) -> Span:
    own_id, trace_id = _required(item, "id", path), _required(item, "trace_id", path)
    data = _object(item, "span_data", path)
    kind = _required(data, "type", f"{path}.span_data")
    error = _object(item, "error", path)
    return Span(
        trace_id=trace_id_of(trace_id),
        span_id=span_id_of(own_id),
        parent_id=span_id_of(_text(item, "parent_id", path) or trace_id),
        name=_name(data, kind),
        start_ns=_time(item, "started_at", path),
        end_ns=_time(item, "ended_at", path),
        status="error" if error else "unset",
        status_message=_said(error),
        attributes={**_others(item, _SPAN_FIELDS, path), **_data(data, kind)},
        scope=_SCOPE,
    )


def trace_id_of(own_id: str) -> str:
    """32 hex digits."""
    found = _TRACE_ID.fullmatch(own_id)
    return found[1] if found else _digest(own_id)[:32]


def span_id_of(own_id: str) -> str:
    """16 hex digits; of a trace's id that of the span around all others."""
    return _digest(own_id)[:16]


def _digest(text: str) -> str:
    return sha256_hex(text.encode(errors="surrogatepass"))


def _others(item: JsonObject, known: frozenset[str], path: str) -> Attributes:
    """What the object holds beside its place in the trace and its data."""
    others = {name: value for name, value in item.items() if name not in known}
    metadata = _object(item, "metadata", path)
    return {PREFIX + "id": item["id"], **_members("", others), **_members("metadata.", metadata)}


def _data(data: JsonObject, kind: str) -> Attributes:
    values = {name: value for name, value in data.items() if name != "type"}
    return {**_members("data.", values), PREFIX + "type": kind}


def _members(under: str, values: JsonObject) -> Attributes:
    """Null says nothing here: the SDK writes it for whatever was not set."""
    return {f"{PREFIX}{under}{name}": value for name, value in values.items() if value is not None}


def _name(data: JsonObject, kind: str) -> str:
    name = data.get("name")
    return name if isinstance(name, str) and name else kind


def _said(error: JsonObject) -> str:
    message = error.get("message")
    return message if isinstance(message, str) else ""


# --- fields ------------------------------------------------------------------------------------


def _required(item: JsonObject, name: str, path: str) -> str:
    text = _text(item, name, path)
    if not text:
        raise _error(path, name, "is required")
    return text


def _text(item: JsonObject, name: str, path: str) -> str | None:
    value = item.get(name)
    if value is not None and not isinstance(value, str):
        raise _error(path, name, "must be a string")
    return value


def _object(item: JsonObject, name: str, path: str) -> JsonObject:
    value = item.get(name)
    if value is not None and not isinstance(value, dict):
        raise _error(path, name, "must be an object")
    return value or {}


def _time(item: JsonObject, name: str, path: str) -> int | None:
    """Nanoseconds since 1970."""
    value = item.get(name)
    if value is None:
        return None
    try:
        return nanoseconds_of(parse_time(value))
    except (TypeError, ValueError, OverflowError):
        raise _error(path, name, "must be a time in ISO 8601") from None


def _error(path: str, name: str, what: str) -> RecordError:
    field = f"{path}.{name}".lstrip(".")
    return RecordError(f"{field} {what}.", field=field)
