"""Which outputs a team's type can have made of what the model answered with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.formats.native import parse_native
from sessions_app.core.payload import Payload, compact_json
from sessions_app.core.replay.outputs import can_be_made_of
from sessions_app.core.run import ModelCall, Run
from tests.builders import make_record

WRAPPED = {"output_tools": [{"name": "final_result", "outer_typed_dict_key": "response"}]}
OBJECT = {"output_tools": [{"name": "final_result", "outer_typed_dict_key": None}]}
NATIVE = {"output_object": {"json_schema": {"properties": {"response": {}}}}}
CHOICE = {"output_object": {"json_schema": {"properties": {"result": {}}}}}


def run_with(parameters: Any) -> Run:
    step = {"index": 1, "kind": "model", "name": "m", "parameters": 0}
    record = make_record("r", step) | {"parameters": [parameters]}
    run = parse_native(compact_json(record))
    assert isinstance(run.steps[0].call, ModelCall)
    return replace(run, steps=run.steps[:1])


def fits(parameters: Any, output: Any, answered: Any) -> bool:
    said = Payload.of_text(output) if isinstance(output, str) else Payload.of_json(output)
    return can_be_made_of(run_with(parameters), said, Payload.of_json(answered))


@pytest.mark.parametrize(
    ("parameters", "output", "answered"),
    [
        (WRAPPED, True, {"response": True}),
        (WRAPPED, "later", {"response": "later"}),
        (WRAPPED, [{"a": 1.0, "b": []}], {"response": [{"a": 1}]}),
        (NATIVE, [1, 2], {"response": [1, 2]}),
        (CHOICE, {"name": "x"}, {"result": {"kind": "Folder", "data": {"name": "x"}}}),
        (OBJECT, {"a": 1, "b": None}, {"a": 1}),
        (OBJECT, {"response": 1}, {"response": 1}),
    ],
)
def test_what_validation_can_have_made(parameters, output, answered):
    assert fits(parameters, output, answered)


@pytest.mark.parametrize(
    ("parameters", "output", "answered"),
    [
        (WRAPPED, True, {"response": False}),
        (WRAPPED, "later", {"response": "now"}),
        (WRAPPED, True, {"other": True}),
        (OBJECT, True, {"response": True}),
        (NATIVE, [1, 2], {"response": [1, 3]}),
        (CHOICE, {"name": "y"}, {"result": {"kind": "Folder", "data": {"name": "x"}}}),
        (OBJECT, {"b": None}, {"a": 1}),
    ],
)
def test_what_it_cannot(parameters, output, answered):
    assert not fits(parameters, output, answered)
