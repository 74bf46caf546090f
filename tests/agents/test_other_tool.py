"""Records that others write, whose steps do not say which answer asked for them."""

from __future__ import annotations

import json

import pytest

from tests.agents.test_odd_fields import Record, holders, reproduces, small_record
from tests.recorder.replaying import assert_promise_kept, verdict_of


def with_step(**fields: object) -> Record:
    record = small_record()
    record["steps"][1].update(fields)
    return record


def with_asked(**fields: object) -> Record:
    record = small_record()
    record["steps"][0]["response"]["parts"][0].update(fields)
    return record


@pytest.mark.parametrize(
    "record",
    [with_step(tool_name="u"), with_asked(tool_name="u"), with_step(arguments={"c": "M"})],
    ids=["the step", "the call", "the arguments"],
)
def test_a_step_of_another_call_than_the_model_made_is_judged_at_its_step(record):
    judged = assert_promise_kept(json.dumps(record).encode())

    assert [(reason.code, reason.step) for reason in judged.reasons] == [("call_contradicted", 2)]
    assert verdict_of(record)[1] == 2


def test_an_answer_under_another_name_differs_where_it_is_told():
    record = small_record()
    holders(record)["tool return"]["tool_name"] = "u"

    assert verdict_of(record) == ("diverged", 3, "messages[2].parts[0].tool_name")


def test_arguments_as_a_text_are_the_same():
    assert reproduces(with_step(arguments='{"c": "L"}'))
    assert reproduces(small_record())
