"""Calls of tools: arguments, names and ids, in the step, in the message, and in both."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from tests.trials.kinds.shared import (
    Made,
    called,
    equal,
    place_called,
    place_told,
    siblings,
    swap,
    with_fields,
    without_items,
)
from tests.trials.mutants import KINDS, Expected, Kind, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader
from tests.trials.value_changes import CHANGES, Change, in_written

WRITTEN_BY_MODEL = {"order of keys"}
"""Changes that say the same where a model wrote the value as an object."""
COERCED = {"spelling of a number", "true for 1", "text for a number", "key added"}
"""Changes of arguments that an output class may take for the same."""
ARGUMENTS = ("args", "arguments")


def _arguments_in(place: str, name: str, change: Change) -> Any:
    def make(record: Json) -> Made:
        reader = RecordReader(record)
        for index in called(reader):
            for path, new in in_written(change, reader.step(index)["arguments"]):
                if not isinstance(new, dict | str) or new == "null":
                    continue  # no call of a tool has other arguments
                changed_record = _with_arguments(record, index, new, place)
                yield f"step {index}: {path or 'all'}", changed_record, _arguments_expected(reader, index, place, name)

    return make


def _arguments_expected(reader: RecordReader, index: int, place: str, name: str) -> Expected:
    asked = reader.asked(index)
    assert asked is not None
    compared = at(index, paths=ARGUMENTS) if place == "the step" else at(asked.step, paths=asked.path)
    if name in WRITTEN_BY_MODEL:
        return Expected(by="undecided", is_comparable=False)
    is_output = bool(reader.step(index).get("is_output"))
    if place == "the step" or (place == "the message" and not is_output):
        return Expected(by="replay", place=at(index, paths=ARGUMENTS), compared=compared)
    # What the model gave as the output is the outcome.
    is_last = reader.step(index).get("outcome") == "success" and "output" in reader.record
    found = at(index, reader.last, reader.last + 1, paths=("output", "messages", *ARGUMENTS))
    if place == "the message":
        return Expected(by="replay", place=found, compared=compared)
    if is_output and (not is_last or name in COERCED):
        return Expected(by="undecided", compared=compared)
    return Expected(by="replay" if is_output else "comparison", place=found, compared=compared)


def _with_arguments(record: Json, index: int, new: Any, place: str) -> Json:
    def change(reader: RecordReader) -> None:
        asked = reader.asked(index)
        assert asked is not None
        if place != "the message":
            reader.step(index)["arguments"] = new
        if place != "the step":
            asked.part["args"] = copy.deepcopy(new)
        if place == "both":
            _change_in_final(reader, asked.part["tool_call_id"], new)
            without_items(reader)

    return changed(record, change)


def _change_in_final(reader: RecordReader, call_id: str, new: Any) -> None:
    """An answer that a stream was cut off in is told once more by the messages at the end."""
    final = reader.record.get("final") or {}
    for part in (part for message in final.get("messages") or [] for part in message.get("parts") or []):
        if part.get("part_kind") == "tool-call" and part.get("tool_call_id") == call_id:
            part["args"] = copy.deepcopy(new)


for _name, _change in CHANGES.items():
    for _place in ("the step", "the message", "both"):
        KINDS.append(Kind(f"arguments, {_name}, in {_place}", _arguments_in(_place, _name, _change)))


@kind("arguments, as a text with other spaces, in the step")
def _arguments_respelled(record: Json) -> Made:
    """A text stays that text: the step says that the model wrote another one. An object and a text that spells it are
    the same by the rule on spellings, which a comparison counts; the recorder of Pydantic AI tells both in one form."""
    reader = RecordReader(record)
    is_of_recorder = record.get("agent", {}).get("framework") == "pydantic-ai"
    for index in called(reader):
        value = _read(reader.step(index)["arguments"])
        if isinstance(value, dict) and value:
            spaced = json.dumps(value, separators=(" , ", " : "), ensure_ascii=False)
            respelled = changed(record, with_fields(index, arguments=spaced))
            asked = reader.asked(index)
            is_text = asked is not None and isinstance(asked.part.get("args"), str)
            by_judge = Expected(by="judge", place=at(index), is_comparable=False)
            is_told = is_text or is_of_recorder
            yield f"step {index}", respelled, by_judge if is_told else Expected(by="nobody", compared=None)


def _read(said: Any) -> Any:
    """What a text spells; itself where it spells nothing, such as arguments that were cut off."""
    try:
        return json.loads(said) if isinstance(said, str) else said
    except ValueError:
        return said


@kind("tool name, in the step")
def _name_in_step(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        for new in _other_names(reader, index):
            expected = Expected(
                by="replay",
                place=place_called(reader, index),
                compared=at(index, paths=("tool_name", "name", "steps[")),
            )
            yield f"step {index}: {new}", changed(record, _rename(index, new, step=True)), expected


@kind("tool name, in the step under the same name of the step")
def _name_under_same_name(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        old = reader.step(index)["tool_name"] if "tool_name" in reader.step(index) else reader.step(index)["name"]
        new = next(_other_names(reader, index))

        def change(copy: RecordReader, index: int = index, old: str = old, new: str = new) -> None:
            copy.step(index).update(name=old, tool_name=new)

        expected = Expected(
            by="replay", place=place_called(reader, index), compared=at(index, paths=("tool_name", "steps["))
        )
        yield f"step {index}: {new}", changed(record, change), expected


@kind("tool name, in the call of the message")
def _name_in_message(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        asked = reader.asked(index)
        assert asked is not None
        told = reader.told(index)
        for new in _other_names(reader, index):
            # A tool that is not there is answered by the loop, and the next request tells that.
            end = {reader.last, reader.last + 1, reader.models[-1]}
            later = set() if new != "renamed" else {told.step} if told and told.step else end
            place = Place(place_called(reader, index).steps | later)
            compared = at(asked.step, paths=f"{asked.path}.tool_name")
            expected = Expected(by="replay", place=place, compared=compared)
            yield f"step {index}: {new}", changed(record, _rename(index, new, call=True)), expected


@kind("tool name, in the answer of the message")
def _name_in_answer(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        told = reader.told(index)
        if told is None or told.part.get("tool_name") is None:
            continue
        expected = Expected(by="replay", place=place_told(reader, told, field="tool_name"), is_comparable=False)
        yield f"step {index}", changed(record, _rename(index, "renamed", answer=True)), expected


@kind("tool name, everywhere, to a tool that is not registered")
def _name_everywhere(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        asked, told = reader.asked(index), reader.told(index)
        assert asked is not None
        step = reader.step(index)
        if (
            step.get("outcome") != "success"
            or told is None
            or told.step is None
            or not reader.step(asked.step).get("tools")
        ):
            continue
        expected = Expected(by="replay", place=at(index, told.step), compared=at(asked.step, paths=asked.path))
        yield f"step {index}", changed(record, _rename(index, "renamed", step=True, call=True, answer=True)), expected


def _other_names(reader: RecordReader, index: int) -> Iterator[str]:
    """One that nobody knows, and one of another tool of the run."""
    own = reader.step(index).get("tool_name") or reader.step(index).get("name")
    yield "renamed"
    known = [tool.get("name") for tool in reader.record.get("tools") or []]
    yield from [name for name in known if isinstance(name, str) and name != own][:1]


def _rename(index: int, new: str, *, step: bool = False, call: bool = False, answer: bool = False) -> Any:
    def change(reader: RecordReader) -> None:
        asked, told = reader.asked(index), reader.told(index)
        if step:
            reader.step(index)["tool_name"] = new
            if "name" in reader.step(index):
                reader.step(index)["name"] = new
        if call and asked:
            asked.part["tool_name"] = new
        if answer and told:
            told.part["tool_name"] = new

    return change


@kind("call id, in the step")
def _id_in_step(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        expected = Expected(by="replay", place=place_called(reader, index), is_comparable=False)
        yield f"step {index}", changed(record, with_fields(index, call_id="other-id")), expected


@kind("call id, in the call of the message")
def _id_in_message(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        asked = reader.asked(index)
        assert asked is not None

        def change(copy: RecordReader, index: int = index) -> None:
            asked = copy.asked(index)
            assert asked is not None
            asked.part["tool_call_id"] = "other-id"

        yield (
            f"step {index}",
            changed(record, change),
            Expected(by="replay", place=place_called(reader, index), is_comparable=False),
        )


@kind("call id, in the answer of the message")
def _id_in_answer(record: Json) -> Made:
    reader = RecordReader(record)
    for index in called(reader):
        told = reader.told(index)
        if told is None:
            continue
        place = place_told(reader, told, field="")
        place = Place(place.steps | {index}, (*(path.rstrip(".") for path in place.paths), "call_id"))

        def change(copy: RecordReader, index: int = index) -> None:
            told = copy.told(index)
            assert told is not None
            told.part["tool_call_id"] = "other-id"

        yield f"step {index}", changed(record, change), Expected(by="replay", place=place, is_comparable=False)


@kind("call id, everywhere")
def _id_everywhere(record: Json) -> Made:
    """Another name for the same thing."""
    reader = RecordReader(record)
    if "deferred" in record or record.get("prior"):
        return  # they name calls too
    for index in called(reader):
        old = reader.step(index).get("call_id")
        if not old or sum(step.get("call_id") == old for step in reader.steps) > 1 or len(str(old)) < 1:
            continue
        yield f"step {index}", _with_other_ids(record, {old: "other-id"}), Expected(by="nobody", is_comparable=False)


@kind("call ids, swapped between sibling steps")
def _swapped_ids(record: Json) -> Made:
    reader = RecordReader(record)
    there = set(called(reader))
    for left, right in siblings(reader):
        one, other = reader.step(left), reader.step(right)
        same = all(equal(one.get(key), other.get(key)) for key in ("arguments", "result", "tool_name"))
        if not {left, right} <= there or one.get("call_id") == other.get("call_id") or same:
            continue
        told = reader.told(left)
        later = {told.step} if told and told.step else {reader.last, reader.last + 1}
        expected = Expected(by="replay", place=Place(frozenset({left, right} | later)), is_comparable=False)
        yield f"steps {left} and {right}", changed(record, swap(left, right, "call_id")), expected


def _with_other_ids(value: Any, new: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: new.get(inner, inner)
            if key in ("call_id", "tool_call_id") and isinstance(inner, str)
            else _with_other_ids(inner, new)
            for key, inner in value.items()
        }
    return [_with_other_ids(inner, new) for inner in value] if isinstance(value, list) else value
