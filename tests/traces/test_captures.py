"""Captures of real exporters: what the runs tell is what truly happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import Attributes, Span
from tests.traces.captures import CHOICE, Capture, captures
from tests.traces.explained import EXPLAINED, explanation
from tests.traces.truth import FACTS, wrong_facts

CAPTURES = captures()


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_runs_tell_what_happened(capture: Capture):
    wrong = {fact: sides for fact, sides in wrong_facts(capture).items() if explanation(capture.name, fact) is None}

    assert wrong == {}


@pytest.mark.parametrize("capture", [each for each in CAPTURES if each.truth["captured"]["spans"]], ids=str)
def test_every_span_of_the_bodies_is_decoded(capture: Capture):
    assert len(capture.sent) == capture.truth["captured"]["spans"]


def test_explanations_still_explain_something():
    there = {capture.name for capture in CAPTURES} | (_variants() if "TRACE_CORPUS" in os.environ else set())
    needed = {explanation(capture.name, fact) for capture in CAPTURES for fact in wrong_facts(capture)}

    assert [key for key in EXPLAINED if key[0] in there and key not in needed] == []


def _variants() -> set[str]:
    return {capture.variant for capture in CAPTURES}


# --- the checks are checked --------------------------------------------------------------------

Change = Callable[[list[Span]], list[Span]]


def _swapping(old: str, new: str, *, within: str = "") -> Change:
    """Another text in all values, or in those of spans and attributes whose name holds a word."""

    def changed(span: Span) -> Span:
        values = {
            name: _swapped(value, old, new) if within in f"{span.name} {name}" else value
            for name, value in span.attributes.items()
        }
        return replace(span, attributes=values)

    return lambda spans: [changed(span) for span in spans]


def _swapped(value: JsonValue, old: str, new: str) -> JsonValue:
    return value.replace(old, new) if isinstance(value, str) else value


def _setting(name: str, change: Callable[[Any], Any]) -> Change:
    def changed(span: Span) -> Span:
        return replace(span, attributes={**span.attributes, name: change(span.attributes[name])})

    return lambda spans: [changed(span) if name in span.attributes else span for span in spans]


def _without(name: str) -> Change:
    """Without the first of the spans that have a name."""
    return lambda spans: [span for span in spans if span is not _first(spans, name)]


def _lacking(*names: str) -> Change:
    """Without these attributes."""

    def changed(span: Span) -> Span:
        return replace(span, attributes={name: value for name, value in span.attributes.items() if name not in names})

    return lambda spans: [changed(span) for span in spans]


def _healed(spans: list[Span]) -> list[Span]:
    def without_type(span: Span) -> Attributes:
        return {name: value for name, value in span.attributes.items() if name != "error.type"}

    return [
        replace(span, status="unset", status_message="", events=(), attributes=without_type(span)) for span in spans
    ]


def _first(spans: list[Span], name: str) -> Span:
    return min((span for span in spans if span.name.startswith(name)), key=lambda span: span.start_ns or 0)


def _turned_around(spans: list[Span]) -> list[Span]:
    """Those that began first begin last."""
    last = max(span.end_ns or 0 for span in spans)
    return [replace(s, start_ns=last - (s.end_ns or 0) + 1, end_ns=last - (s.start_ns or 0) + 1) for s in spans]


CHANGES: Mapping[str, tuple[str, Change, set[str]]] = {
    "an answer of a tool": (
        "pydantic-ai-v5/order_lookup",
        _swapping("in transit", "lost"),
        {"tool answers", "tool answers in requests"},
    ),
    "an answer of a tool as the model was given it": (
        "pydantic-ai-v5/order_lookup",
        _swapping("in transit", "lost", within="input.messages"),
        {"tool answers in requests"},
    ),
    "a model call's span is lost": (
        "pydantic-ai-v5/order_lookup",
        _without("chat"),
        {"spans", "model calls", "order of answers", "input tokens"},
    ),
    "a tool's span is lost": ("pydantic-ai-v5/order_lookup", _without("execute_tool"), {"spans"}),
    "usage is counted twice": (
        "pydantic-ai-v5/order_lookup",
        _setting("gen_ai.usage.input_tokens", lambda tokens: 2 * tokens),
        {"input tokens"},
    ),
    "usage of the answers is counted twice": (
        "pydantic-ai-v5/order_lookup",
        _setting("gen_ai.usage.output_tokens", lambda tokens: 2 * tokens),
        {"output tokens"},
    ),
    "another order": ("pydantic-ai-v4/loop", _turned_around, {"order of answers"}),
    "a word of an answer": ("pydantic-ai-v5/order_lookup", _swapping("Good news", "Bad news"), {"answers", "output"}),
    "an argument": ("pydantic-ai-v5/order_lookup", _swapping("kettle", "cups"), {"calls asked for", "calls of tools"}),
    "another model": ("pydantic-ai-v5/order_lookup", _setting("gen_ai.response.model", lambda name: "m"), {"models"}),
    "another temperature": (
        "pydantic-ai-v5/order_lookup",
        _setting("gen_ai.request.temperature", lambda value: 1.5),
        {"temperature"},
    ),
    "another seed": ("pydantic-ai-v5/order_lookup", _setting("gen_ai.request.seed", lambda value: 8), {"seed"}),
    "a word of the instructions": (
        "pydantic-ai-v5/order_lookup",
        _swapping("You are the support agent", "You are an agent"),
        {"instructions"},
    ),
    "no tools are told": (
        "pydantic-ai-v5/order_lookup",
        _lacking("gen_ai.tool.definitions", "model_request_parameters"),
        {"tool schemas"},
    ),
    "no reasons are told": (
        "vercel-ai-v5/stream",
        _lacking("ai.response.finishReason", "gen_ai.response.finish_reasons"),
        {"finish reason"},
    ),
    "no failure of a tool is told": ("vercel-ai-v6/tool_exception", _healed, {"tool errors"}),
    "no failure of the run is told": ("pydantic-ai-v5-nocontent/tool_exception", _healed, {"error of the run"}),
    "no failure of a model is told": ("anthropic-sdk-traceloop/model_error", _healed, {"model errors"}),
    "another user": (
        "openai-sdk-openinference-simple/session",
        _setting("user.id", lambda name: f"{name}-2"),
        {"user"},
    ),
    "another conversation": (
        "google-adk/session",
        _setting("gen_ai.conversation.id", lambda name: f"{name}-2"),
        {"session"},
    ),
    "what was said before": (
        "google-adk/session",
        _swapping("status of order", "place of order"),
        {"earlier turns", "input"},
    ),
    "a score": (
        "openai-sdk-phoenix-register/retrieval",
        _setting("retrieval.documents.0.document.score", lambda score: score + 0.1),
        {"documents found"},
    ),
    "a query": (
        "openai-sdk-phoenix-register/retrieval",
        _swapping("How do I reset", "How can I reset", within="search_manual"),
        {"searches"},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_the_spans_is_found(change: str):
    name, changed, facts = CHANGES[change]
    sound = Capture(CHOICE / name)

    assert facts & wrong_facts(sound).keys() == set()
    assert facts <= wrong_facts(replace(sound, change=changed)).keys()


def test_every_fact_has_such_a_change():
    assert set().union(*(facts for _, _, facts in CHANGES.values())) == FACTS.keys()
