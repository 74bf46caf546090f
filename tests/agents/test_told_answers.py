"""Answers of tools that a record holds in another spelling than the model was told them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agents.test_odd_fields import Record, holders, reproduces, small_record
from tests.recorder.playing import last_record
from tests.recorder.replaying import replayed
from tests.recorder.scenarios import Scenario, model_retry


def with_answer(result: Any, told: Any, **agent: str) -> Record:
    record = small_record()
    record["steps"][1]["result"] = result
    holders(record)["tool return"]["content"] = told
    return {**record, "agent": agent}


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({"a": 1}, '{"a":1}'),
        ({"a": 1}, '{"a": 1}'),
        ([1, 2], "[1,2]"),
        ('{"a":1}', {"a": 1}),
        ({"base64": "c3Vubnk="}, "sunny"),
        ("sunny", "sunny"),
    ],
)
def test_an_answer_in_another_spelling_replays(result, told):
    assert reproduces(with_answer(result, told))


@pytest.mark.parametrize(
    ("result", "told"), [({"a": 1}, '{"a":2}'), ({"base64": "c3Vubnk="}, "rainy"), ("rainy", "sunny")]
)
def test_another_answer_is_judged(result, told):
    record = with_answer(result, told)

    result_of_replay, _ = replayed(json.dumps(record).encode())

    assert not reproduces(record)
    assert result_of_replay.verdict in ("diverged", "unknown_from_step")


def test_a_recorder_of_ours_keeps_one_spelling():
    """There another one is a difference."""
    record = with_answer({"a": 1}, '{"a":1}', framework="pydantic-ai") | {"recorder": {"version": "0.1.0"}}

    assert not reproduces(record)
    assert reproduces(with_answer({"a": 1}, {"a": 1}))


def test_a_retry_that_the_request_alone_leaves_out_is_a_difference_of_the_request():
    record = json.loads(last_record(Scenario(model_retry), "run"))
    index, part = next(
        (index, part)
        for index, step in enumerate(record["steps"], start=1)
        for message in (step.get("request") or {}).get("messages", [])
        for part in message["parts"]
        if part.get("retry")
    )
    part["retry"] = None

    result, _ = replayed(json.dumps(record).encode())

    assert result.divergence is not None
    assert (result.divergence.step, result.divergence.path) == (index, "messages[2].parts[0].retry")


def test_an_id_that_was_not_captured_is_no_difference_of_the_id_that_the_library_makes_up():
    record = small_record()
    holders(record)["tool return"].update(tool_call_id=None)

    result, _ = replayed(json.dumps(record).encode())

    assert result.verdict == "reproduced"
    assert result.facts["proof"]["requests"] == {
        "state": "not_comparable",
        "reason": "the requests agree; not every message says which call it is about",
    }
