"""LangSmith's runs: as its API and its exports give them, and as its clients send them.

Source: https://docs.langchain.com/langsmith/run-data-format. A run becomes a span with the attributes that the
product's own OpenTelemetry exporter writes. Trace ids are the 32 hex digits of the trace's UUID, span ids the last 16
of the run's (see `ids.span_id_of`). Exports may hold the runs inside a run in its `child_runs`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from sessions_app.core.errors import RecordError
from sessions_app.core.importers.entry import Entry, entries
from sessions_app.core.importers.ids import span_id_of, trace_id_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text, without_none
from sessions_app.core.spans.span import Attributes, Scope, Span, SpanEvent
from sessions_app.core.spans.times import nanoseconds


def matches(value: JsonValue) -> bool:
    """Whether this is parsed JSON of runs: a list, `{"runs": []}` or one run."""
    items = _items(value)
    return bool(items) and all(isinstance(item, dict) and "id" in item and "run_type" in item for item in items)


def to_spans(value: JsonValue) -> list[Span]:
    """Raises `RecordError` naming the field."""
    items = _items(value)
    if not items:
        raise RecordError("The document holds no runs of LangSmith.")
    path = "runs" if isinstance(value, dict) and "runs" in value else ""
    runs = {run.required("id"): run for run in _with_children(entries(items, path))}
    return [run_span(run) for run in runs.values()]


def _with_children(runs: list[Entry]) -> Iterator[Entry]:
    """Each run before those inside it, which need not name their parent and their trace again."""
    waiting = deque(runs)
    while waiting:
        run = waiting.popleft()
        children = run.list("child_runs")
        if children:
            run_id = run.required("id")
            known = {"parent_run_id": run_id, "trace_id": _trace(run, run_id, run.text("parent_run_id"))}
            waiting += [child.with_defaults(known) for child in entries(children, run.at("child_runs"))]
        yield run


def _items(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        value = value.get("runs", [value])
    return value if isinstance(value, list) else []


def run_span(run: Entry) -> Span:
    """`end_ns` is None for a run that has not ended, or whose end was sent apart."""
    run_id, parent, error = run.required("id"), run.text("parent_run_id"), run.text("error")
    return Span(
        trace_id=trace_id_of(_trace(run, run_id, parent)),
        span_id=span_id_of(run_id),
        parent_id=span_id_of(parent) if parent else None,
        name=run.text("name") or "",
        start_ns=run.time("start_time"),
        end_ns=run.time("end_time"),
        status="error" if error else "unset",
        events=_events(run, error),
        attributes=_attributes(run),
        scope=Scope(name="langsmith"),
    )


def _trace(run: Entry, run_id: str, parent: str | None) -> str:
    """`dotted_order` is the way from the trace's first run, each part a time and an id."""
    first = (run.text("dotted_order") or "").partition(".")[0].partition("Z")[2]
    is_first = parent is None and run.text("run_type") is not None
    return run.text("trace_id") or first or (run_id if is_first else run.required("trace_id"))


def _attributes(run: Entry) -> Attributes:
    extra = Entry(run.object("extra") or {}, run.at("extra"))
    parameters = extra.object("invocation_params") or {}
    outputs = run.value("outputs")
    said: JsonObject = {
        "langsmith.span.kind": run.text("run_type"),
        "langsmith.trace.name": run.text("name"),
        "langsmith.trace.session_name": run.text("session_name"),
        "langsmith.span.tags": ", ".join(tag for tag in run.list("tags") if isinstance(tag, str)) or None,
        "langsmith.invocation_params": parameters or None,
        "gen_ai.prompt": run.value("inputs"),
        # Clients send an empty object until there are some.
        "gen_ai.completion": outputs if outputs != {} else None,
        "gen_ai.request.model": as_text(parameters.get("model")) or as_text(parameters.get("model_name")),
        "gen_ai.tool.call.id": as_text(extra.value("tool_call_id")),
        "gen_ai.usage.input_tokens": run.value("prompt_tokens"),
        "gen_ai.usage.output_tokens": run.value("completion_tokens"),
    }
    metadata = {f"langsmith.metadata.{name}": value for name, value in (extra.object("metadata") or {}).items()}
    return (without_none({**metadata, **said}) or {}) | extra.rest("langsmith.extra.") | run.rest("langsmith.run.")


def _events(run: Entry, error: str | None) -> tuple[SpanEvent, ...]:
    events = [_event(item) for item in run.list("events") if isinstance(item, dict)]
    first_token = run.time("first_token_time")
    if first_token and not any(event.name == "new_token" for event in events):
        events.append(SpanEvent(name="new_token", time_ns=first_token))
    if error:
        said: Attributes = {"exception.type": "Exception", "exception.message": error}
        events.append(SpanEvent(name="exception", time_ns=run.time("end_time"), attributes=said))
    return tuple(events)


def _event(item: JsonObject) -> SpanEvent:
    rest = {name: value for name, value in item.items() if name not in ("name", "time") and value is not None}
    return SpanEvent(name=as_text(item.get("name")) or "", time_ns=nanoseconds(item.get("time")), attributes=rest)
