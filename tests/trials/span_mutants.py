"""Runs that came as spans, with one thing changed in the spans.

A word is changed that stands in one place of the run alone; in all spans, so that the trace is whole and another one,
or in one of several that tell of it, so that it contradicts itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from sessions_app.core.assembly.run import assemble
from sessions_app.core.embedded_json import parsed
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.otlp_export.parts import MARK
from sessions_app.core.otlp_export.request import export_run
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import SKIPPED, ModelCall, Run, Step, ToolCall, is_answered_by_tool
from sessions_app.core.spans.span import Span
from sessions_app.core.unplayed import loop_steps
from tests.traces.captures import captures
from tests.trials.mutants import Expected, Mutant, Place, at
from tests.trials.recorded_runs import openai_agents_runs, pydantic_ai_runs

_WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True)
class SpanRun:
    """The spans of one trace and the run that is made of them."""

    name: str
    spans: list[Span]

    @cached_property
    def run(self) -> Run:
        return assemble(self.spans, is_closed=True)

    @property
    def content(self) -> bytes:
        return encode_native(self.run)

    def mutant(self, kind: str, what: str, spans: list[Span], expected: Expected) -> Mutant:
        content = encode_native(assemble(spans, is_closed=True))
        return Mutant(kind=kind, what=what, content=content, expected=expected, run=self.name)

    def with_word(self, word: str, only_in: frozenset[str] | None = None) -> list[Span]:
        """Longer by one letter, in all spans or in those of these ids."""
        return [_replaced(span, word) if only_in is None or span.span_id in only_in else span for span in self.spans]


def _replaced(span: Span, word: str) -> Span:
    """Texts and lists alike; JSON inside of a text stays JSON."""
    written = json.dumps(span.attributes, ensure_ascii=False)
    events = tuple(
        replace(event, attributes=json.loads(json.dumps(event.attributes).replace(word, f"{word}x")))
        for event in span.events
    )
    return replace(span, attributes=json.loads(written.replace(word, f"{word}x")), events=events)


def captured_runs() -> Iterator[SpanRun]:
    """Traces of real exporters."""
    for capture in captures():
        traces: dict[str, list[Span]] = {}
        for span in capture.sent:
            traces.setdefault(span.trace_id, []).append(span)
        for number, spans in enumerate(traces.values()):
            yield SpanRun(f"spans/{capture}{f'-{number}' if number else ''}", spans)


def exported_runs() -> Iterator[SpanRun]:
    """Runs of the recorders as spans, without the fields of ours: as another product would have sent them."""
    for run in [*pydantic_ai_runs(("run",)), *openai_agents_runs()]:
        spans = decode_traces(export_run(parse_native(run.content)), is_json=True).spans
        yield SpanRun(
            f"export/{run.name}", [replace(span, attributes=_without_ours(span.attributes)) for span in spans]
        )


def _without_ours(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {name: _without_ours(inner) for name, inner in value.items() if not name.startswith(MARK)}
    if isinstance(value, list):
        return [_without_ours(inner) for inner in value]
    return json.dumps(_without_ours(json.loads(value))) if isinstance(value, str) and f'"{MARK}"' in value else value


# --- where a word stands alone -------------------------------------------------------------------


def _said(payload: Payload | None) -> str:
    """The texts in it, without the names of fields."""
    return "" if payload is None else " ".join(_texts(payload.parsed))


def _texts(value: JsonValue) -> Iterator[str]:
    value = parsed(value)
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _answer_texts(call: ModelCall) -> Iterator[str]:
    """What it says and asks for, without what kind of part that is."""
    message = call.response.value if call.response else None
    for part in message.get("parts") or [] if isinstance(message, dict) else []:
        yield from _texts([part.get("content"), part.get("args")])


def _places(run: Run) -> dict[str, str]:
    """All that is told of a run, by place; requests repeat what stands elsewhere."""
    found = {"input": _said(run.input), "instructions": run.instructions or ""}
    for step in run.steps:
        call = step.call
        if isinstance(call, ModelCall):
            found[f"answer {step.index}"] = " ".join(_answer_texts(call))
        elif isinstance(call, ToolCall):
            found[f"given {step.index}"] = _said(call.result)
            found[f"asked {step.index}"] = _said(call.arguments)
    return found


def _word_of(span_run: SpanRun, place: str) -> str | None:
    """One that stands there and nowhere else, not even in the name of something; JSON and Python spell it alike."""
    run, places = span_run.run, _places(span_run.run)
    others = [text for name, text in places.items() if name != place]
    tools = [tool.content.decode() for _, call in run.model_calls for tool in call.tools or ()]
    written = json.dumps([span.attributes for span in span_run.spans])
    taken = " ".join([*others, *tools, *(step.name for step in run.steps), *_NAME.findall(written)])
    return next((word for word in _WORD.findall(places[place]) if word not in taken and word not in _LITERALS), None)


_LITERALS = ("True", "False", "None")


_NAME = re.compile(r'([\w.]+)\\*"\s*:')
"""Of a field, at any depth of JSON inside of texts."""


# --- kinds ---------------------------------------------------------------------------------------

Made = Iterator[tuple[str, list[Span], Expected]]
SPAN_KINDS: dict[str, Callable[[SpanRun], Made]] = {}


def kind(name: str) -> Callable[[Callable[[SpanRun], Made]], Callable[[SpanRun], Made]]:
    def put(make: Callable[[SpanRun], Made]) -> Callable[[SpanRun], Made]:
        SPAN_KINDS[name] = make
        return make

    return put


def mutants_of(name: str, span_run: SpanRun) -> Iterator[Mutant]:
    for what, spans, expected in SPAN_KINDS[name](span_run):
        if spans == span_run.spans and expected.by != "nobody":
            continue  # told in the body of an event, which is no attribute
        yield span_run.mutant(name, what, spans, expected)


@kind("spans: nothing")
def _nothing(run: SpanRun) -> Made:
    yield "as it was", list(run.spans), Expected(by="nobody")


@kind("spans: another order")
def _order(run: SpanRun) -> Made:
    yield "backwards", run.spans[::-1], Expected(by="nobody")


def _own_tools(run: Run) -> list[tuple[Step, ToolCall]]:
    """Those of which a tool, and not the loop, gave the answer."""
    played = {step.index for step in loop_steps(run)}
    answered = ((step, call) for step, call in run.tool_calls if step.index in played and is_answered_by_tool(call))
    return [(step, call) for step, call in answered if not _said(call.result).startswith((SKIPPED, "Final result"))]


@kind("spans: tool answer, everywhere")
def _answer(run: SpanRun) -> Made:
    for step, _ in _own_tools(run.run):
        word = _word_of(run, f"given {step.index}")
        if word is not None:
            place = at(step.index) | Place(paths=("result", "error"))  # a span around it may tell it before
            yield f"step {step.index}: {word}", run.with_word(word), Expected(by="comparison", compared=place)


@kind("spans: tool answer, in its own span")
def _own_answer(run: SpanRun) -> Made:
    for step, _ in _own_tools(run.run):
        word, own = _word_of(run, f"given {step.index}"), _spans_of(step)
        tells = [span for span in run.spans if word is not None and word in json.dumps(span.attributes)]
        elsewhere = [span for span in tells if span.span_id not in own and _is_request(run.run, span)]
        # Of an exception alone nobody knows in which words the model is told of it.
        if word is not None and elsewhere and any(span.span_id in own for span in tells):
            expected = Expected(by="replay", compared=at(step.index, paths=("result", "error")))
            yield f"step {step.index}: {word}", run.with_word(word, own), expected


def _spans_of(step: Step) -> frozenset[str]:
    told = step.extra.get("span") or {}
    return frozenset([str(told.get("span_id")), *(str(twin.get("span_id")) for twin in told.get("twins") or ())])


def _is_request(run: Run, span: Span) -> bool:
    played = {step.index for step in loop_steps(run)}
    return any(span.span_id in _spans_of(step) for step, _ in run.model_calls if step.index in played)


@kind("spans: last answer, everywhere")
def _last_answer(run: SpanRun) -> Made:
    models = [step for step in loop_steps(run.run) if step.kind == "model"]
    word = _word_of(run, f"answer {models[-1].index}") if models else None
    if word is not None:
        compared = at(models[-1].index) | Place(paths=("result", "output"))  # a span around it may tell it before
        yield word, run.with_word(word), Expected(by="comparison", compared=compared)


@kind("spans: an answer of the model, in its own span")
def _one_answer(run: SpanRun) -> Made:
    """The requests behind it, or the run's own span, may say otherwise; not every convention has them say it."""
    models = [step for step in loop_steps(run.run) if step.kind == "model"]
    for step in models:
        word = _word_of(run, f"answer {step.index}")
        if word is not None:
            spans = run.with_word(word, _spans_of(step))
            is_told = step is models[-1] and run.name.startswith("export/") and word in _said(run.run.output)
            expected = Expected(by="undecided", compared=at(step.index))
            if is_told:
                place = at(len(run.run.steps) + 1) | Place(paths=("output",))
                expected = Expected(by="judge", place=place, compared=at(step.index))
            yield f"step {step.index}: {word}", spans, expected


@kind("spans: input, everywhere")
def _input(run: SpanRun) -> Made:
    word = _word_of(run, "input")
    if word is not None:
        yield word, run.with_word(word), Expected(by="comparison", compared=Place())


@kind("spans: a span is lost")
def _lost(run: SpanRun) -> Made:
    for number, span in enumerate(run.spans):
        rest = [*run.spans[:number], *run.spans[number + 1 :]]
        if rest:
            yield f"{number}: {span.name}", rest, Expected(by="anybody", is_comparable=False)
