"""Steps dropped, said twice, and cut off."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.trials.kinds.shared import Made, equal, is_last_output
from tests.trials.mutants import Expected, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader


@kind("tool step dropped")
def _dropped_tool(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        asked = reader.asked(index)
        if asked is None or any(step.get("parent") == index for step in reader.steps):
            continue
        # Where it was missed, or at the request of the model that asked for it.
        expected = Expected(by="replay", place=at(index, asked.step), compared=_among_equals(reader, index))
        if is_last_output(reader, index):
            expected = Expected(by="undecided", compared=at(index))
        yield f"step {index}", changed(record, partial(RecordReader.without_step, index=index)), expected


@kind("step of a decided call dropped")
def _dropped_decided(record: Json) -> Made:
    """A run that was resumed makes the calls that were decided before it asks the model."""
    reader = RecordReader(record)
    for index in _decided(reader):
        if any(step.get("parent") == index for step in reader.steps):
            continue
        expected = Expected(by="judge", compared=at(index), verdicts=frozenset({"cold"}))
        yield f"step {index}", changed(record, partial(RecordReader.without_step, index=index)), expected


@kind("decisions left out")
def _no_decisions(record: Json) -> Made:
    if _decided(RecordReader(record)):
        expected = Expected(by="judge", is_comparable=False, verdicts=frozenset({"cold"}))
        yield "run", changed(record, lambda copy: copy.record.pop("deferred")), expected


def _decided(reader: RecordReader) -> list[int]:
    first = min(reader.models, default=0)
    return [i for i in reader.tools if i < first and reader.step(i).get("call_id") in reader.record.get("deferred", {})]


@kind("tool step said twice")
def _doubled_tool(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        if reader.asked(index) is None or any(step.get("parent") == index for step in reader.steps):
            continue
        expected = Expected(by="replay", place=at(index, index + 1), compared=_among_equals(reader, index))
        yield f"step {index}", changed(record, partial(RecordReader.with_copy_of, index=index)), expected


def _among_equals(reader: RecordReader, index: int) -> Place:
    """Of equal steps beside each other nobody can say which one is missing or too many."""
    step, last = reader.step(index), index
    while last < reader.last and all(
        equal(reader.step(last + 1).get(key), step.get(key)) for key in ("tool_name", "arguments")
    ):
        last += 1
    return Place(frozenset(range(index, last + 2)))


@kind("step inside of a tool changed")
def _changed_inside(record: Json) -> Made:
    """A replay reads it with the tool's answer, and must not claim it. What was found, the tool may say too."""
    reader = RecordReader(record)
    for index, step in enumerate(reader.steps, start=1):
        if step.get("parent") not in reader.tools:
            continue
        for field in ("arguments", "result", "query", "chunks"):
            if field not in step:
                continue

            def change(copy: RecordReader, index: int = index, field: str = field) -> None:
                copy.step(index)[field] = [] if field == "chunks" else {"changed": 1}

            expected = Expected(by="comparison", compared=at(index))
            if field == "chunks" and "chunks" in (reader.step(step["parent"]).get("metadata") or {}):
                expected = Expected(by="judge", place=at(index, step["parent"]), compared=at(index))  # said twice
            yield f"step {index}, {field}", changed(record, change), expected


@kind("model step dropped")
def _dropped_model(record: Json) -> Made:
    reader = RecordReader(record)
    for index, later in zip(reader.models, reader.models[1:], strict=False):
        if not reader.step(index).get("response") or "request" not in reader.step(later):
            continue

        def change(copy: RecordReader, index: int = index) -> None:
            copy.detach_history_from(index)
            copy.without_step(index)

        expected = Expected(by="replay", place=Place(frozenset(range(index, later))), compared=at(index))
        yield f"step {index}", changed(record, change), expected


@kind("model step said twice")
def _doubled_model(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if not reader.step(index).get("response"):
            continue
        expected = Expected(by="replay", place=at(index, index + 1), compared=at(index, index + 1))
        yield f"step {index}", changed(record, partial(RecordReader.with_copy_of, index=index)), expected


@kind("a failed attempt that nobody made")
def _made_up_attempt(record: Json) -> Made:
    """A client may have made a request again, of which a replay says that it did not. The SDK's recorder keeps one step
    for a request."""
    reader = RecordReader(record)
    by: Any = "judge" if record["agent"].get("framework") == "openai-agents" else "undecided"
    for index in reader.models:
        if reader.step(index).get("response"):
            expected = Expected(by=by, place=at(index), compared=at(index))
            yield f"before step {index}", changed(record, partial(RecordReader.with_attempt_at, index=index)), expected


def _cut(record: Json, *, is_clean: bool) -> Made:
    reader = RecordReader(record)
    for count in range(1, reader.last):
        if not any(index > count for index in reader.tools + reader.models):
            continue  # what is cut off is nothing that the run did itself
        if reader.step(count + 1).get("parent") is not None and count + 1 not in reader.tools + reader.models:
            continue

        def change(copy: RecordReader, count: int = count) -> None:
            copy.cut_behind(count)
            if is_clean:
                copy.record.pop("output", None)
                copy.record.pop("error", None)
                copy.record["status"] = "cut_off"

        place = at(count + 1)
        if not is_clean:  # the outcome is another one than that of the steps before it
            place |= at(count, paths=("output", "status", "error"))
        expected = Expected(
            by="judge",
            place=place,
            compared=at(count, count + 1),
            verdicts=frozenset({"replayable_to_step", "cold"}),
        )
        if not is_clean and all(is_last_output(reader, i) for i in range(count + 1, reader.last + 1)):
            expected = Expected(by="undecided", compared=at(count, count + 1))
        yield f"after {count} of {reader.last}", changed(record, change), expected


@kind("cut short, outcome kept")
def _cut_with_output(record: Json) -> Made:
    yield from _cut(record, is_clean=False)


@kind("cut short, as such")
def _cut_clean(record: Json) -> Made:
    yield from _cut(record, is_clean=True)


@kind("only the final messages left out")
def _no_final(record: Json) -> Made:
    """What was not captured is no difference; the outcome is still there."""
    if "final" in record:
        yield (
            "final",
            changed(record, lambda copy: copy.record.pop("final")),
            Expected(by="anybody", is_comparable=False),
        )
