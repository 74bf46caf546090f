"""A loop of one's own that names its library does not say which answer asked for a call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sessions_app.core.formats.detect import parse_document
from sessions_app.core.formats.native import encode_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.replaying import replayed
from tests.recorder.test_told_failures import record

LIBRARIES = ("pydantic-ai", "openai-agents")


def without_parent(framework: str, **more: Any) -> bytes:
    told = json.loads(record(None, {})) | {"agent": {"framework": framework}, **more}
    del told["steps"][1]["parent"], told["steps"][1]["error"]
    told["steps"][1]["result"] = told["steps"][2]["request"]["messages"][0]["parts"][0]["content"]
    return json.dumps(told).encode()


@pytest.mark.parametrize("framework", LIBRARIES)
def test_the_answer_before_a_call_that_holds_its_id_asked_for_it(framework: str) -> None:
    run = parse_document(without_parent(framework))

    assert run.steps[1].parent == 1
    assert (judge(run).verdict, judge(run).reasons) == ("replayable", ())
    assert replayed(without_parent(framework))[0].verdict == "reproduced"
    assert parse_document(encode_native(run)) == run


@pytest.mark.parametrize("framework", LIBRARIES)
@pytest.mark.parametrize("more", [{"recorder": {"version": "0.1.0"}}, {"deferred": {"c1": "approved"}}])
def test_a_recorder_says_it_and_a_resumed_call_was_asked_for_before(framework: str, more: dict[str, Any]) -> None:
    assert parse_document(without_parent(framework, **more)).steps[1].parent is None


def test_a_call_of_another_id_was_asked_for_by_nobody() -> None:
    other = without_parent("pydantic-ai").replace(b'"call_id": "c1"', b'"call_id": "c2"', 1)

    assert parse_document(other).steps[1].parent is None
