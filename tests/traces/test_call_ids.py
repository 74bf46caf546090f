"""The id of a call stands in the answer that asks for it, in later requests, in the tool's own span and in copies of
the conversation: one place that names another call is not called proven."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from sessions_app.core.replay.proof import read_proof
from sessions_app.core.run import Run
from sessions_app.core.spans.span import Span
from tests.recorder.replaying import replayed
from tests.traces.captures import CHOICE, Capture

CALL_ID = re.compile(r"\bcall_\w+")
CAPTURES = [
    "langgraph-langfuse-v3/order_lookup",
    "langgraph-langsmith-otel/order_lookup",
    "langgraph-mlflow-otlp/order_lookup",
    "langgraph-openinference/order_lookup",
    "litellm-openinference/order_lookup",
    "litellm-openinference/parallel_tools",
    "vercel-ai-langfuse/stream",
    "vercel-ai-openinference/order_lookup",
    "vercel-ai-openinference/parallel_tools",
    "vercel-ai-v5/order_lookup",
    "vercel-ai-v5/stream",
    "vercel-ai-v6/tool_exception",
    "vercel-ai-v7/order_lookup",
    "vercel-ai-v7/session",
]


@pytest.mark.parametrize("name", CAPTURES)
def test_an_id_that_one_place_tells_otherwise_is_noticed(name: str) -> None:
    whole = Capture(CHOICE / name)
    untouched = list(map(_told, whole.runs))

    others = [(place, Capture(CHOICE / name, change=partial(_given, spans))) for place, spans in _changed(whole.spans)]
    unnoticed = [place for place, other in others if list(map(_told, other.runs)) == untouched]

    assert all(told["requests"][0] == "proven" for _, told in untouched)
    assert unnoticed == []


def _given(spans: list[Span], _: list[Span]) -> list[Span]:
    return spans


def _changed(spans: list[Span]) -> Iterator[tuple[str, list[Span]]]:
    for at, span in enumerate(spans):
        for attribute, value in span.attributes.items():
            text = value if isinstance(value, str) else json.dumps(value)
            for number, found in enumerate(CALL_ID.finditer(text)):
                said = f"{text[: found.end()]}x{text[found.end() :]}"
                other = {**span.attributes, attribute: said if isinstance(value, str) else json.loads(said)}
                yield (
                    f"{span.name} {attribute} {number}",
                    [*spans[:at], replace(span, attributes=other), *spans[at + 1 :]],
                )


def _told(run: Run) -> tuple[str, dict[str, tuple[str, str | None]]]:
    """What the replay came to, and what it says of each part of its proof."""
    result, _ = replayed(encode_native(run))
    if judge(run).verdict != "replayable" or result.verdict != "reproduced":
        return result.verdict, {}
    proof = read_proof(result.facts["proof"])
    assert proof is not None
    return result.verdict, {name: (part.state, part.reason) for name, part in proof.parts.items()}
