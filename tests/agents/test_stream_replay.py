"""Replays of `run_stream` with a call beside the final text, and what was changed in such a recording."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.judge.verdict import judge
from tests.recorder.playing import recorded
from tests.recorder.replaying import assert_reproduced, verdict_of
from tests.recorder.streams import STRATEGIES, text_then_call

Record = dict[str, Any]
Verdict = tuple[str, int | None, str | None]
AT_STEP: Verdict = ("unknown_from_step", 2, "steps[2]")


@pytest.fixture(params=STRATEGIES)
def strategy(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def record(strategy: str) -> Record:
    """Steps: 1 model, whose text is final, 2 the call beside it."""
    return dict(json.loads(recorded(text_then_call(strategy), "run_stream")[-1]))


def changed_answer(record: Record) -> None:
    record["steps"][1]["result"] = {"id": "ORD-1", "status": "lost"}


def null_answer(record: Record) -> None:
    record["steps"][1]["result"] = None


def other_name(record: Record) -> None:
    record["steps"][1]["tool_name"] = "cancel_order"


def dropped_step(record: Record) -> None:
    del record["steps"][1]


NOT_RUN: Verdict = ("answers_left_over", 2, "steps[2]")
MUTANTS: dict[Callable[[Record], None], tuple[Verdict, Verdict]] = {
    changed_answer: (NOT_RUN, ("diverged", 2, "messages[2].parts[0].content.status")),
    null_answer: (NOT_RUN, ("diverged", 2, "messages[2].parts[0].content")),
    other_name: (AT_STEP, ("fixture_missing", 2, "tool_name")),
    dropped_step: (AT_STEP, ("fixture_missing", 2, "result")),
}
"""What is said with `early`, where the call is not made, and with the others, where it is."""


@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__)
def test_what_was_changed_is_noticed_at_its_step(record: Record, strategy: str, mutate: Callable[[Record], None]):
    mutate(record)

    assert verdict_of(record) == MUTANTS[mutate][strategy != "early"]


@pytest.mark.parametrize("mutate", [other_name, dropped_step], ids=lambda mutate: mutate.__name__)
def test_steps_that_contradict_the_answer_are_judged_at_ingest(record: Record, mutate: Callable[[Record], None]):
    assert judge(parse_native(json.dumps(record).encode())).verdict == "replayable"
    mutate(record)

    verdict = judge(parse_native(json.dumps(record).encode()))

    assert (verdict.verdict, verdict.step) == ("replayable_to_step", 1)


def test_an_untouched_recording_is_reproduced(record: Record):
    assert_reproduced(json.dumps(record).encode())
