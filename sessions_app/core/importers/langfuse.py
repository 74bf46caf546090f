"""Langfuse's exports: traces with their observations, and flat lists of observations.

Source: https://api.reference.langfuse.com (`GET /api/public/traces/{id}`, `GET /api/public/observations`), and the
files that its pages and scheduled exports write (the same fields, there in snake case).
"""

from __future__ import annotations

from sessions_app.core.errors import RecordError
from sessions_app.core.importers.entry import Entry, entries
from sessions_app.core.importers.ids import span_id_of, trace_id_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text, without_none
from sessions_app.core.spans.span import Attributes, Scope, Span

_OBSERVATION = "langfuse.observation."
_TRACE = "langfuse.trace."
_PARENT = ("parentObservationId", "parent_observation_id")
_START = ("startTime", "start_time")


def matches(value: JsonValue) -> bool:
    """Whether this is parsed JSON of one of these exports."""
    items = _items(value)
    return bool(items) and all(isinstance(item, dict) and (_is_trace(item) or _is_observation(item)) for item in items)


def to_spans(value: JsonValue) -> list[Span]:
    """A trace without one observation on top gets a span of its own. Raises `RecordError` naming the field."""
    items = _items(value)
    if not items:
        raise RecordError("The document holds no traces and no observations of Langfuse.")
    found = [Entry(item, _path(value, index)) for index, item in enumerate(items)]
    return [span for entry, item in zip(found, items, strict=True) for span in _spans(entry, is_trace=_is_trace(item))]


def _items(value: JsonValue) -> list[JsonValue]:
    inner = value.get("data") if isinstance(value, dict) else value
    return inner if isinstance(inner, list) else [value]


def _path(value: JsonValue, index: int) -> str:
    if isinstance(value, list):
        return f"[{index}]"
    return f"data[{index}]" if isinstance(value, dict) and isinstance(value.get("data"), list) else ""


def _is_trace(item: JsonValue) -> bool:
    return isinstance(item, dict) and isinstance(item.get("observations"), list) and "id" in item


def _is_observation(item: JsonObject) -> bool:
    return ("traceId" in item or "trace_id" in item) and "type" in item and any(name in item for name in _START)


def _spans(entry: Entry, *, is_trace: bool) -> list[Span]:
    if not is_trace:
        return [_span(entry, trace_id_of(entry.required("traceId", "trace_id")), _whole(entry))]
    trace_id = trace_id_of(entry.required("id"))
    whole, said = _whole(entry), _said(entry)
    observations = entries(entry.value("observations"), entry.at("observations"))
    spans = [_span(observation, trace_id, whole) for observation in observations]
    tops = [index for index, span in enumerate(spans) if span.parent_id is None]
    if len(tops) == 1:
        spans[tops[0]].attributes.update(said)
        return spans
    return [_top(entry, trace_id, {**whole, **said}, spans), *spans]


def _whole(entry: Entry) -> Attributes:
    """What holds for every span of a trace."""
    said: JsonObject = {
        "session.id": entry.text("sessionId", "session_id"),
        "user.id": entry.text("userId", "user_id"),
        "langfuse.release": entry.text("release"),
        "langfuse.version": entry.text("version"),
        "langfuse.environment": entry.text("environment"),
        f"{_TRACE}tags": entry.list("tags") or None,
    }
    return without_none(said) or {}


def _said(entry: Entry) -> Attributes:
    """What the trace itself says."""
    said: JsonObject = {f"{_TRACE}{name}": entry.value(name) for name in ("name", "input", "output")}
    said |= _metadata(entry, f"{_TRACE}metadata")
    entry.value("observations", "timestamp", "id")
    return (without_none(said) or {}) | entry.rest(f"{_TRACE}export.")


def _top(entry: Entry, trace_id: str, attributes: Attributes, spans: list[Span]) -> Span:
    starts = [span.start_ns for span in spans if span.start_ns]
    return Span(
        trace_id=trace_id,
        span_id=span_id_of(f"trace {entry.required('id')}"),
        name=entry.text("name") or "",
        start_ns=min([*starts, *filter(None, [entry.time("timestamp")])], default=None),
        end_ns=max((span.end_ns for span in spans if span.end_ns), default=None),
        attributes={f"{_OBSERVATION}type": "span", **attributes},
        scope=Scope(name="langfuse"),
    )


def _span(entry: Entry, trace_id: str, whole: Attributes) -> Span:
    parent, is_error = entry.text(*_PARENT), entry.text("level") == "ERROR"
    span_id = span_id_of(entry.required("id"))
    carried = _carried(entry)
    start, end = entry.time(*_START), entry.time("endTime", "end_time")
    message = entry.text("statusMessage", "status_message") or ""
    return Span(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=span_id_of(parent) if parent else None,
        name=entry.text("name") or "",
        start_ns=start,
        end_ns=end or (start if entry.text("type") == "EVENT" else None),
        status="error" if is_error else "unset",
        status_message=message if is_error else "",
        attributes={**(carried.get("attributes") or {}), **whole, **_attributes(entry)},
        scope=_scope(carried),
        resource=carried.get("resourceAttributes") or {},
    )


def _carried(entry: Entry) -> dict[str, JsonObject]:
    """Observations that came over OpenTelemetry keep their span's own attributes in the metadata."""
    metadata = entry.object("metadata") or {}
    return {
        name: metadata[name]
        for name in ("attributes", "resourceAttributes", "scope")
        if isinstance(metadata.get(name), dict)
    }


def _scope(carried: dict[str, JsonObject]) -> Scope:
    said = carried.get("scope") or {}
    return Scope(name=as_text(said.get("name")) or "langfuse", version=as_text(said.get("version")) or "")


def _attributes(entry: Entry) -> Attributes:
    kind = entry.text("type")
    said: JsonObject = {
        "type": kind.lower() if kind else None,
        "input": entry.value("input"),
        "output": entry.value("output"),
        "model.name": entry.text("model", "providedModelName", "provided_model_name"),
        "model.parameters": entry.object("modelParameters", "model_parameters"),
        "usage_details": entry.object("usageDetails", "usage_details", "usage") or None,
        "cost_details": entry.object("costDetails", "cost_details") or None,
        "level": entry.text("level"),
        "status_message": entry.text("statusMessage", "status_message"),
        "completion_start_time": entry.text("completionStartTime", "completion_start_time"),
        "prompt.name": entry.text("promptName", "prompt_name"),
        "prompt.version": entry.value("promptVersion", "prompt_version"),
    }
    named = {_OBSERVATION + name: value for name, value in said.items() if value is not None}
    entry.value("id", "name", "traceId", "trace_id", *_PARENT, *_START, "endTime", "end_time")
    return {**named, **_metadata(entry, f"{_OBSERVATION}metadata"), **entry.rest(f"{_OBSERVATION}export.")}


def _metadata(entry: Entry, prefix: str) -> Attributes:
    said = entry.object("metadata")
    if said is None:
        return without_none({prefix: entry.value("metadata")}) or {}
    inner = ("attributes", "resourceAttributes", "scope")
    return {
        f"{prefix}.{name}": value
        for name, value in said.items()
        if value is not None and not (name in inner and isinstance(value, dict))
    }
