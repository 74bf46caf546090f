"""An export of ours as the run that it was made from.

The texts are read from the GenAI attributes, the rest from those of ours. What is not wholly ours is left to the
general way of reading spans: spans of another origin, a part of an export, an export that was changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sessions_app.core.embedded_json import key_given_twice
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.json_writer import array_text, object_text, scalar
from sessions_app.core.formats.native import FORMAT, parse_native
from sessions_app.core.formats.native import VERSION as RECORD_VERSION
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.attributes import value_of
from sessions_app.core.otlp_export.histories import Histories
from sessions_app.core.otlp_export.messages import read_messages
from sessions_app.core.otlp_export.said import Said
from sessions_app.core.otlp_export.tools import read_definitions
from sessions_app.core.otlp_export.unchanged import is_unchanged
from sessions_app.core.payload import JSON
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span

Written = list[tuple[str, bytes | None]]
EXPORTED_ID = "exported_run_id"
"""Among the unknown fields of a run that came back as a trace: the id that it had."""
_TABLES = ("parameters", "tools")


def is_export(spans: Sequence[Span]) -> bool:
    """Whether one of them is the span of an exported run."""
    return any(names.VERSION in span.attributes for span in spans)


def run_of_trace(spans: Sequence[Span]) -> Run | None:
    """The same for a trace that came in: its run has the id of the trace, as any other run that is made of spans, and
    is judged as the format that it was recorded in.

    Its texts have to be as they were sent; None where a text became the list that it spells.
    """
    run = restored_run(spans)
    if run is None:
        return None
    trace_id = spans[0].trace_id
    kept = {} if run.run_id == trace_id else {EXPORTED_ID: run.extra.get(EXPORTED_ID, run.run_id)}
    return replace(run, run_id=trace_id, extra={**run.extra, **kept})


def restored_run(spans: Sequence[Span], limits: Limits = Limits()) -> Run | None:
    """The exported run; None when these spans are not one whole export. Their order does not matter."""
    try:
        root, steps = _in_order(spans)
        record = _record(root, steps)
        load_strict(record, limits)
        run = parse_native(record, limits)
        return run if is_unchanged(run, root, steps) else None
    except (RecordError, ValueError, RecursionError):
        return None


def _record(root: Span, steps: Sequence[Span]) -> bytes:
    said, writer = Said(root), _StepWriter()
    prior, final = _conversation(said, names.PRIOR), _conversation(said, names.FINAL)
    if prior is not None:
        writer.histories.add(prior, 0)
    written = array_text([writer.step(Said(step), index) for index, step in enumerate(steps, start=1)])
    fields: Written = [
        ("format", scalar(FORMAT)),
        ("version", scalar(RECORD_VERSION)),
        *_header(said),
        ("prior", None if prior is None else array_text(prior)),
        *((name, writer.table(name)) for name in _TABLES),
        ("steps", written),
        ("final", None if final is None else writer.histories.text(final)),
    ]
    return _joined(fields, said.facts(names.RUN))


def _in_order(spans: Sequence[Span]) -> tuple[Span, list[Span]]:
    """The span of the run and those of its steps, each there once, and none in two versions."""
    if any(span.namesakes or _gives_key_twice(span) for span in spans):
        raise RecordError("A span has two contents.")
    roots = [span for span in spans if names.VERSION in span.attributes]
    count = roots[0].attributes.get(names.STEPS) if len(roots) == 1 else None
    if not isinstance(count, int) or roots[0].attributes[names.VERSION] != 1 or len(spans) != count + 1:
        raise RecordError("These spans are not one whole export.")
    steps = sorted((span for span in spans if span is not roots[0]), key=_index)
    if [_index(span) for span in steps] != list(range(1, count + 1)):
        raise RecordError("Spans of steps are missing.")
    return roots[0], steps


def _gives_key_twice(span: Span) -> bool:
    """Of what a tool gave, the text counts."""
    said = (value for name, value in span.attributes.items() if name != "gen_ai.tool.call.result")
    return any(key_given_twice(value) is not None for value in said)


def _index(span: Span) -> int:
    index = span.attributes.get(names.INDEX)
    if not isinstance(index, int):
        raise RecordError("A span does not say which step it is.")
    return index


def _joined(fields: Written, facts: dict[str, bytes]) -> bytes:
    """What GenAI says stands before our facts of the same name."""
    said = {name for name, text in fields if text is not None}
    return object_text([*fields, *((name, text) for name, text in facts.items() if name not in said)])


# --- the run -----------------------------------------------------------------------------------


def _header(said: Said) -> Written:
    return [
        ("session_id", scalar(said.text("gen_ai.conversation.id"))),
        ("input", said.message("input", "gen_ai.input.messages")),
        ("output", said.message("output", "gen_ai.output.messages")),
        ("model", scalar(said.text("gen_ai.request.model"))),
        ("provider", scalar(said.text("gen_ai.provider.name"))),
        ("instructions", scalar(said.instructions())),
        ("user_id", scalar(said.text("user.id"))),
    ]


def _conversation(said: Said, name: str) -> list[bytes] | None:
    written = said.json(name)
    return None if written is None else read_messages(written)


# --- steps -------------------------------------------------------------------------------------


class _StepWriter:
    """Writes steps in their order; values that many of them share stand once in a table of the record."""

    def __init__(self) -> None:
        self.histories = Histories()
        self._rows: dict[str, dict[bytes, int]] = {name: {} for name in _TABLES}

    def table(self, name: str) -> bytes | None:
        return array_text(self._rows[name]) if self._rows[name] else None

    def step(self, said: Said, index: int) -> bytes:
        facts = said.facts(names.STEP)
        if "parameters" in facts:
            facts["parameters"] = self._position("parameters", facts["parameters"])
        own = self._model(said, index) if facts.get("kind") == b'"model"' else _call(facts.get("kind"), said)
        return _joined([("user_id", scalar(said.text("user.id"))), *own], facts)

    def _position(self, table: str, row: bytes) -> bytes:
        rows = self._rows[table]
        return b"%d" % rows.setdefault(row, len(rows))

    def _model(self, said: Said, index: int) -> Written:
        messages, response = _conversation(said, "gen_ai.input.messages"), _response(said)
        request = None if messages is None else self.histories.text(messages)
        if response is not None and said.media_type("response") == JSON:
            self.histories.add([*(messages or []), response], index)
        return [
            ("request", request),
            ("response", response),
            ("tools", self._tools(said)),
            ("model", scalar(said.text("gen_ai.request.model"))),
            ("answered_model", scalar(said.text("gen_ai.response.model"))),
            ("provider", scalar(said.text("gen_ai.provider.name"))),
            ("finish_reason", scalar(said.first("gen_ai.response.finish_reasons"))),
            ("input_tokens", scalar(said.count("gen_ai.usage.input_tokens"))),
            ("output_tokens", scalar(said.count("gen_ai.usage.output_tokens"))),
        ]

    def _tools(self, said: Said) -> bytes | None:
        definitions = said.json("gen_ai.tool.definitions")
        if definitions is None or said.attributes.get(names.TOOLS_REGISTERED) is not True:
            return None
        return array_text(self._position("tools", tool) for tool in read_definitions(definitions))


def _response(said: Said) -> bytes | None:
    written, media_type = said.json("gen_ai.output.messages"), said.media_type("response")
    if written is None or media_type is None:
        return None
    answers = read_messages(written)
    if len(answers) != 1:
        raise RecordError("An exported model call has not one answer.")
    return value_of(answers[0].decode(), JSON) if media_type == JSON else answers[0]


def _call(kind: bytes | None, said: Said) -> Written:
    match kind:
        case b'"tool"':
            return [
                ("tool_name", scalar(said.text("gen_ai.tool.name"))),
                ("call_id", scalar(said.text("gen_ai.tool.call.id"))),
                ("arguments", said.value("arguments", "gen_ai.tool.call.arguments")),
                ("result", said.value("result", "gen_ai.tool.call.result")),
            ]
        case b'"retrieval"':
            return [
                ("query", said.value("query", "gen_ai.retrieval.query.text")),
                ("chunks", scalar(said.json("gen_ai.retrieval.documents"))),
            ]
        case b'"agent"':
            return [
                ("arguments", said.message("arguments", "gen_ai.input.messages")),
                ("result", said.message("result", "gen_ai.output.messages")),
            ]
        case _:
            return [
                ("arguments", said.value("arguments", names.ARGUMENTS)),
                ("result", said.value("result", names.RESULT)),
            ]
