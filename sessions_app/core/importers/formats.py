"""Which export of another product a document is, by what it holds."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.errors import RecordError
from sessions_app.core.importers import (
    langfuse,
    langsmith,
    openai_agents,
    otel_console,
    phoenix,
    provider_payload,
)
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp.errors import OtlpError
from sessions_app.core.payload import JsonValue, compact_json
from sessions_app.core.spans.span import Span

ToSpans = Callable[[JsonValue], list[Span]]


def spans_in(value: JsonValue) -> list[Span] | None:
    """The spans that a document stands for; None when it is no export that is known.

    Raises `RecordError` naming the field where it is one and cannot be read.
    """
    to_spans = next((to_spans for matches, to_spans in _IMPORTERS if matches(value)), None)
    return None if to_spans is None else to_spans(value)


def _is_otlp(value: JsonValue) -> bool:
    return isinstance(value, dict) and bool({"resourceSpans", "resource_spans"} & value.keys())


def _otlp_spans(value: JsonValue) -> list[Span]:
    """A file of what an exporter sent; a document is refused as a whole, for nobody reads a partial success here."""
    try:
        decoded = decode_traces(compact_json(value), is_json=True)
    except OtlpError as error:
        raise RecordError(str(error), field="resourceSpans") from None
    if decoded.refused:
        raise RecordError(
            f"{decoded.refused} spans cannot be read: {'; '.join(decoded.reasons)}", field="resourceSpans"
        )
    return list(decoded.spans)


_IMPORTERS: tuple[tuple[Callable[[JsonValue], bool], ToSpans], ...] = (
    (_is_otlp, _otlp_spans),
    (openai_agents.matches, openai_agents.to_spans),
    (langsmith.matches, langsmith.to_spans),
    (langfuse.matches, langfuse.to_spans),
    # Before Phoenix, whose records look alike.
    (otel_console.matches, otel_console.to_spans),
    (phoenix.matches, phoenix.to_spans),
    # Last: many documents have messages somewhere.
    (provider_payload.matches, provider_payload.to_spans),
)
