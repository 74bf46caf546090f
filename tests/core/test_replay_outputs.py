"""What the loop makes of a model's answer by the recorded schema of its output."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from sessions_app.core.payload import Payload, compact_json
from sessions_app.core.replay.outputs import same_output, typed_output


class Item(BaseModel):
    name: str
    price: float = 0.0
    inside: list[Item] = []


class Card(BaseModel):
    kind: Literal["card"]
    number: str


class Cash(BaseModel):
    kind: Literal["cash"]
    coins: int
    note: str | None = None


class Payment(BaseModel):
    way: Card | Cash
    amounts: dict[str, float] = {}


@dataclass
class Point:
    x: float
    y: float = 1.0


def made(kind: Any, answered: Any) -> Any:
    """By the schema of a type, from an answer as text spells it."""
    tool = {"name": "final_result", "parameters_json_schema": TypeAdapter(kind).json_schema()}
    return typed_output({"output_tools": [tool]}, "final_result", answered)


@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        (Item, {"name": "a"}),
        (Item, {"price": 5, "name": "a"}),
        (Item, {"name": "a", "inside": [{"name": "b", "price": 2}], "more": True}),
        (Payment, {"way": {"number": "1", "kind": "card"}, "amounts": {"eur": 3}}),
        (Payment, {"way": {"kind": "cash", "coins": 2.0}}),
        (Point, {"x": 1}),
        (dict[str, float], {"b": 1, "a": 2.5}),
    ],
)
def test_an_output_is_what_its_type_makes_of_the_answer(kind, answered):
    adapter = TypeAdapter(kind)

    assert compact_json(made(kind, answered)) == compact_json(
        json.loads(adapter.dump_json(adapter.validate_python(answered)))
    )


@pytest.mark.parametrize(
    ("is_unchecked", "output"),
    [(True, {"name": "a", "price": 5, "more": 1}), (False, {"name": "a", "price": 5.0})],
)
def test_an_output_that_nothing_checks_stays_as_it_is(is_unchecked, output):
    """A `StructuredDict` shows its schema to the model alone."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "price": {"type": "number"}}}
    tool = {"name": "f", "parameters_json_schema": schema}
    answered = {"name": "a", "price": 5, "more": 1}

    made = typed_output({"output_tools": [tool]}, "f", answered, is_unchecked=is_unchecked)

    assert compact_json(made) == compact_json(output)


RESPONSE = {"output_tools": [{"name": "f", "outer_typed_dict_key": "response", "parameters_json_schema": {}}]}
CHOICE = {"output_object": {"json_schema": {"properties": {"result": {}}}}}
NATIVE = {"output_object": {"json_schema": {"properties": {"response": {"type": "array"}}}}}


@pytest.mark.parametrize(
    ("parameters", "name", "answered", "output"),
    [
        (RESPONSE, "f", {"response": True}, True),
        (RESPONSE, "f", {"response": "later"}, "later"),
        (RESPONSE, "f", {"other": True}, {"other": True}),
        (NATIVE, None, {"response": [1, 2]}, [1, 2]),
        (CHOICE, None, {"result": {"kind": "Folder", "data": {"name": "x"}}}, {"name": "x"}),
        ({}, "f", {"b": 1, "a": 2}, {"b": 1, "a": 2}),
        ({}, None, {"response": 1}, {"response": 1}),
    ],
)
def test_an_output_comes_out_of_what_the_library_put_around_it(parameters, name, answered, output):
    assert typed_output(parameters, name, answered) == output


@pytest.mark.parametrize(
    ("recorded", "replayed", "is_same"),
    [
        ("later", "later", True),
        ('{"a": 1}', '{"a":1}', False),
        ({"a": 1.0}, {"a": 1}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": [1]}, {"a": [1]}, True),
        ("1", 1, False),
        (Payload(content=b'{"a": 1.00}'), {"a": 1.0}, False),
        (Payload(content=b'{"a": 1E-7}'), {"a": 1e-07}, True),
        ('{"a": 1.00}', {"a": 1.0}, False),
        ('{"a": 1.00}', Payload(content=b'{"a": 1.00}'), True),
    ],
)
def test_outputs_are_the_same_to_the_letter(recorded, replayed, is_same):
    one, other = (
        v if isinstance(v, Payload) else Payload.of_text(v) if isinstance(v, str) else Payload.of_json(v)
        for v in (recorded, replayed)
    )

    assert same_output(one, other) is is_same
