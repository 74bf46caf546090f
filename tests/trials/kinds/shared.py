"""What several kinds of mutants need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.trials.mutants import Change, Expected, Place, at
from tests.trials.reading_records import Json, RecordReader, Told

Made = Iterator[tuple[str, Json, Expected]]
FINAL = ("final", "messages")


def is_written_by_framework(step: Json) -> bool:
    """The loop makes this answer itself, in its own words."""
    cause = (step.get("retry") or {}).get("cause")
    is_skipped = isinstance(step.get("result"), str) and step["result"].startswith("Tool not executed")
    return bool(step.get("is_output")) or is_skipped or cause not in (None, "model_retry")


def place_called(reader: RecordReader, index: int) -> Place:
    """Where a call is another one than its step.

    What the loop answers itself stands in the messages after it, and a call that waits is part of the outcome.
    """
    told, steps = reader.told(index), {index}
    if reader.step(index).get("outcome") in (None, "unapproved", "deferred"):
        steps |= {reader.last, reader.last + 1}
    if told is not None and is_written_by_framework(reader.step(index)):
        steps |= place_told(reader, told).steps
    return Place(frozenset(steps))


def place_told(reader: RecordReader, told: Told, *, field: str = "content") -> Place:
    """Where a request shows an answer that is another one than the step's."""
    if told.step is None:
        called = [i for i in reader.tools if reader.step(i).get("call_id") == told.part.get("tool_call_id")]
        return at(reader.last, reader.last + 1, reader.models[-1], *called, paths=FINAL)
    return at(told.step, paths=f"{told.path}.{field}")


def equal(left: Any, right: Any) -> bool:
    return json.dumps(left) == json.dumps(right)


def siblings(reader: RecordReader) -> Iterator[tuple[int, int]]:
    """Calls beside each other in one answer of the model."""
    for left, right in zip(reader.tools, reader.tools[1:], strict=False):
        one, other = reader.asked(left), reader.asked(right)
        if one and other and one.step == other.step and one.part is not other.part:
            yield left, right


def swap(left: int, right: int, key: str) -> Any:
    def change(reader: RecordReader) -> None:
        one, other = reader.step(left), reader.step(right)
        one[key], other[key] = other[key], one[key]

    return change


def without_items(copy: RecordReader) -> None:
    """The OpenAI Agents SDK keeps once more what was said: who says something else everywhere leaves that out."""
    for name in ("items", "input_items"):
        copy.record.pop(name, None)


def lengthen(holder: Json, key: str) -> None:
    holder[key] = f"{holder[key]}X"


def called(reader: RecordReader) -> Iterator[int]:
    """Tool steps whose call stands in an answer of the run, with the same arguments."""
    for index in reader.tools:
        asked = reader.asked(index)
        if asked and equal(asked.part.get("args"), reader.step(index).get("arguments")):
            yield index


def is_last_output(reader: RecordReader, index: int) -> bool:
    """The outcome itself, which the record has once more as its output."""
    step = reader.step(index)
    return bool(step.get("is_output")) and step.get("outcome") == "success" and "output" in reader.record


def outcome_place(reader: RecordReader, *paths: str) -> Place:
    return Place(frozenset({reader.last, reader.last + 1, *reader.models[-1:]}), paths)


def lengthen_part(index: int, position: int, key: str) -> Any:
    return lambda copy: lengthen(copy.step(index)["response"]["parts"][position], key)


# --- changes of one field ------------------------------------------------------------------------


def with_fields(index: int, **fields: Any) -> Change:
    """Of a step."""

    def change(reader: RecordReader) -> None:
        reader.step(index).update(fields)

    return change


def without_field(index: int, key: str) -> Change:
    """Of a step."""

    def change(reader: RecordReader) -> None:
        del reader.step(index)[key]

    return change


def of_run(**fields: Any) -> Change:
    def change(reader: RecordReader) -> None:
        reader.record.update(fields)

    return change
