"""What OpenInference's spans of the OpenAI Agents SDK print of a tool's result, beside what the model was told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.judge.verdict import judge
from sessions_app.core.spans.span import Span
from tests.traces.captures import CHOICE, Capture
from tests.traces.test_replays import outcome

URL = "data:image/png;base64,AAAA"
IMAGE = f"type='image' image_url='{URL}' file_id=None detail=None"
TOLD_IMAGE = f'{{"type": "input_image", "image_url": "{URL}"}}'
AGENTS = Capture(CHOICE / "openai-agents-openinference/order_lookup")


def _with_result(printed: Any, told: str) -> Capture:
    """Of the tool that was called first."""

    def changed(span: Span) -> Span:
        if span.name == "lookup_order":
            return replace(span, attributes={**span.attributes, "output.value": printed, "output.mime_type": None})
        content = {name: told for name in span.attributes if name == "llm.input_messages.3.message.content"}
        return replace(span, attributes={**span.attributes, **content})

    return replace(AGENTS, change=lambda spans: list(map(changed, spans)))


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ({"base64": "eA=="}, "b'x'"),
        (IMAGE, f"[{TOLD_IMAGE}]"),
        (["type='text' text='a'", IMAGE], f'[{{"type": "input_text", "text": "a"}}, {TOLD_IMAGE}]'),
        ({"a": "name='q' pop=2"}, "{'a': City(name='q', pop=2)}"),
    ],
)
def test_what_the_sdk_made_of_a_result_is_no_other_result(printed: Any, told: str) -> None:
    run = _with_result(printed, told).runs[0]

    assert judge(run).reasons == ()
    assert outcome(run) == ("reproduced", None, None)


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        ({"base64": "eQ=="}, "b'x'"),
        (IMAGE.replace("AAAA", "AAAB"), f"[{TOLD_IMAGE}]"),
        ({"a": "name='q' pop=3"}, "{'a': City(name='q', pop=2)}"),
    ],
)
def test_another_result_is_contradicted(printed: Any, told: str) -> None:
    assert [reason.code for reason in judge(_with_result(printed, told).runs[0]).reasons] == ["answer_contradicted"]
