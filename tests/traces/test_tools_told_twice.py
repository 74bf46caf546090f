"""A tool or a setting that one span tells in two attributes, or in an attribute and a log record."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.spans.span import Span
from tests.traces.captures import CHOICE, Capture
from tests.traces.test_told_otherwise import changed, replayed_of

TWICE = "defines a tool in two ways"
SETTINGS = "gives its settings in two ways"
GENAI, MLFLOW = "openai-sdk-mlflow-otlp-genai/order_lookup", "openai-sdk-mlflow-otlp/order_lookup"


def capture(name: str) -> list[Span]:
    return list(Capture(CHOICE / name).spans)


def reason_of(spans: list[Span], part: str) -> str:
    return replayed_of(spans)[1].facts["proof"][part]["reason"] or ""


@pytest.mark.parametrize(
    ("session", "name", "was", "becomes", "part", "words"),
    [
        (GENAI, "gen_ai.tool.definitions", "Find orders", "Lose orders", "parameters", TWICE),
        (GENAI, "gen_ai.tool.definitions", '"type": "string"', '"type": "integer"', "parameters", TWICE),
        (GENAI, "tools", "Find orders", "Lose orders", "parameters", TWICE),
        (GENAI, "gen_ai.request.temperature", "0.2", "9.9", "model", SETTINGS),
        (GENAI, "temperature", "0.2", "9.9", "model", SETTINGS),
        (MLFLOW, "seed", "7", "99", "model", SETTINGS),
        (MLFLOW, "temperature", "0.2", "9.9", "model", SETTINGS),
    ],
)
@pytest.mark.parametrize("is_another", [False, True])
def test_what_mlflow_tells_in_two_attributes_and_otherwise_is_named(
    session: str, name: str, was: str, becomes: str, part: str, words: str, is_another: bool
) -> None:
    whole = capture(session)
    at = next(at for at, span in enumerate(whole) if name in span.attributes)

    reason = reason_of(changed(whole, at, name, was, becomes if is_another else was), part)

    assert (words in reason) is is_another


PARAMETERS = "model_request_parameters"


@pytest.mark.parametrize("is_less", [False, True])
def test_request_parameters_that_lack_a_tool_which_the_definitions_have_are_named(is_less: bool) -> None:
    whole = capture("encodings-proto-none/order_lookup")
    at = next(at for at, span in enumerate(whole) if PARAMETERS in span.attributes)
    parameters: dict[str, Any] = json.loads(str(whole[at].attributes[PARAMETERS]))
    tools = parameters["function_tools"]
    less = json.dumps({**parameters, "function_tools": tools[:-1] if is_less else tools})
    spans = [*whole[:at], replace(whole[at], attributes={**whole[at].attributes, PARAMETERS: less}), *whole[at + 1 :]]

    assert (TWICE in reason_of(spans, "parameters")) is is_less


@pytest.mark.parametrize("is_another", [False, True])
def test_a_log_record_that_describes_a_tool_otherwise_is_named_where_it_has_no_schema(is_another: bool) -> None:
    whole, name = capture("google-adk-litellm/stream"), "gen_ai.tool.definitions"
    at = next(at for at, span in enumerate(whole) if any(name in log.attributes for log in span.logs))
    log = next(log for log in whole[at].logs if name in log.attributes)
    tools: Any = log.attributes[name]
    assert tools[0]["parameters"] is None
    described = [{**tools[0], "description": "Shipping"} if is_another else tools[0], *tools[1:]]
    other = replace(log, attributes={**log.attributes, name: described})

    spans = [*whole[:at], replace(whole[at], logs=(other,)), *whole[at + 1 :]]

    assert (TWICE in reason_of(spans, "parameters")) is is_another
