"""What tools answered, in the step, in the message that tells it, and in both."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from tests.trials.kinds.shared import (
    Made,
    equal,
    is_written_by_framework,
    place_told,
    siblings,
    swap,
    with_fields,
    without_field,
    without_items,
)
from tests.trials.mutants import KINDS, Expected, Kind, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader, Told
from tests.trials.value_changes import CHANGES, Change


def answered(reader: RecordReader) -> Iterator[tuple[int, Told]]:
    """Tool steps of the run whose answer a later request tells, just as the step has it."""
    for index in reader.tools:
        told = reader.told(index)
        if "result" in reader.step(index) and told and equal(told.part.get("content"), reader.step(index)["result"]):
            yield index, told


def _is_bytes(value: Any) -> bool:
    """An object that stands for bytes, which another object would not."""
    return isinstance(value, dict) and set(value) <= {"base64", "media_type"} and bool(value)


def _answers_in(place: str, name: str, change: Change) -> Any:
    def make(record: Json) -> Made:
        reader = RecordReader(record)
        for index, told in answered(reader):
            value = reader.step(index)["result"]
            if _is_bytes(value):
                continue
            for path, new in change(value):
                expected = _answer_expected(reader, index, told, place, is_null=new is None)
                yield f"step {index}: {path or 'all of it'}", _with_answer(record, index, new, place), expected

    return make


def _answer_expected(reader: RecordReader, index: int, told: Told, place: str, *, is_null: bool) -> Expected:
    in_message, step = place_told(reader, told), reader.step(index)
    # The loop's own answer is another one than the step's already; so are words that are none.
    if is_written_by_framework(step) or (_is_words(step) and is_null):
        in_message |= at(index, paths=("result", "steps"))
    if place == "the step":
        return Expected(by="replay", place=in_message, compared=at(index, paths="result"))
    if place == "the message":
        compared = at(told.step, paths=("request", told.path)) if told.step else at()
        return Expected(by="replay", place=in_message, compared=compared)
    compared = at(index, paths=("result", "error.message"))
    if _is_outcome(reader, index) or is_written_by_framework(step) or (_is_words(step) and is_null):
        return Expected(by="undecided", compared=compared)
    return Expected(by="comparison", compared=compared)


def _is_words(step: Json) -> bool:
    """Why the tool did not do it, which is a text and nothing else."""
    return step.get("outcome") != "success"


def _is_outcome(reader: RecordReader, index: int) -> bool:
    """The answer of a tool that ends the run is its output."""
    return reader.last == index and equal(reader.record.get("output"), reader.step(index).get("result"))


def _with_answer(record: Json, index: int, new: Any, place: str) -> Json:
    def change(reader: RecordReader) -> None:
        told = reader.told(index)
        assert told is not None
        if place != "the message":
            reader.step(index)["result"] = new
        if place == "both" and (reader.step(index).get("error") or {}).get("message") == told.part["content"]:
            reader.step(index)["error"]["message"] = new  # why it asks for another try stands there as well
        if place != "the step":
            _tell(reader, index, told.part["content"], new)
        if place == "both":
            without_items(reader)
            reader.step(index).pop("returned", None)

    return changed(record, change)


def _tell(reader: RecordReader, index: int, old: Any, new: Any) -> None:
    """In every message that tells this answer: a history that begins anew says it again."""
    call_id = reader.step(index).get("call_id")
    for history in reader.histories():
        for message in history["messages"]:
            for part in message.get("parts", []):
                if (
                    part.get("tool_call_id") == call_id
                    and equal(part.get("content"), old)
                    and part["part_kind"] != "tool-call"
                ):
                    part["content"] = copy.deepcopy(new)


for _name, _change in CHANGES.items():
    for _place in ("the step", "the message", "both"):
        KINDS.append(Kind(f"tool answer, {_name}, in {_place}", _answers_in(_place, _name, _change)))


@kind("tool answer, left out of the step")
def _answer_left_out(record: Json) -> Made:
    reader = RecordReader(record)
    for index, _ in answered(reader):
        # Messages tell the answer as well: taking it from there is honest, and so is to end before it.
        expected = Expected(by="anybody", compared=Place())
        yield f"step {index}", changed(record, without_field(index, "result")), expected


@kind("tool answers, swapped between siblings")
def _swapped_answers(record: Json) -> Made:
    reader = RecordReader(record)
    for left, right in siblings(reader):
        one, other = reader.step(left), reader.step(right)
        if {one.get("outcome"), other.get("outcome")} != {"success"} or "result" not in one or "result" not in other:
            continue
        if equal(one["result"], other["result"]) or one.get("is_output") or other.get("is_output"):
            continue
        told = [found for found in (reader.told(left), reader.told(right)) if found]
        if len(told) < 2:
            continue
        first = min(told, key=lambda found: (found.step or 10**6, found.path))
        expected = Expected(by="replay", place=place_told(reader, first), compared=at(left, paths="result"))
        yield f"steps {left} and {right}", changed(record, swap(left, right, "result")), expected


@kind("outcome of a tool")
def _outcome(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        step, told = reader.step(index), reader.told(index)
        if (
            step.get("outcome") not in ("success", "failed", "denied", "retried")
            or told is None
            or step.get("is_output")
        ):
            continue
        new = "failed" if step["outcome"] == "success" else "success"
        if "outcome" in told.part:
            expected = Expected(by="replay", place=at(index), compared=at(index, paths=("outcome", "retry")))
        else:
            expected = Expected(by="comparison", compared=at(index, paths="outcome"))
        if step["outcome"] in ("denied",):
            expected = Expected(by="replay", place=Place(), compared=at(index, paths="outcome"))
        yield (
            f"step {index}: {new}",
            changed(record, with_fields(index, outcome=new)),
            expected,
        )


@kind("crash of a tool, its message")
def _crash_message(record: Json) -> Made:
    yield from _step_error(record, "message")


@kind("crash of a tool, its type")
def _crash_type(record: Json) -> Made:
    yield from _step_error(record, "type")


@kind("error of an answered call, in other words")
def _answered_error(record: Json) -> Made:
    """What a tool raised is an answer as good as another; the SDK's own words of broken arguments are not."""
    reader = RecordReader(record)
    if record["agent"].get("framework") != "openai-agents":
        return
    for index in reader.tools:
        step = reader.step(index)
        error, compared = step.get("error"), at(index, paths="error")
        if step.get("outcome") != "failed" or not error or step.get("result") is None:
            continue
        is_of_sdk = error["message"].startswith("Invalid JSON input for tool")
        expected = Expected(by="judge" if is_of_sdk else "comparison", place=at(index), compared=compared)
        other = {**error, "message": "Something else."}
        yield f"step {index}", changed(record, with_fields(index, error=other)), expected


@kind("error of a call that came to none")
def _error_of_none(record: Json) -> Made:
    """A tool that answered, that waits, that was refused or that never ran has no error."""
    reader = RecordReader(record)
    for index in [*reader.tools, *reader.models]:
        if "error" not in reader.step(index):
            made_up = {"type": "ValueError", "message": "made up"}
            expected = Expected(by="judge", place=at(index), compared=at(index, paths="error"))
            yield f"step {index}", changed(record, with_fields(index, error=made_up)), expected


def _step_error(record: Json, key: str) -> Made:
    """Of the step alone; the run ended with it."""
    reader = RecordReader(record)
    for index in [*reader.tools, *reader.models]:
        error = reader.step(index).get("error")
        if isinstance(error, dict) and error.get(key) and equal(error, record.get("error")):
            compared = at(index, paths="error")
            expected = Expected(
                by="replay", place=at(index, index + 1, reader.last, reader.last + 1), compared=compared
            )
            yield (
                f"step {index}",
                changed(record, with_fields(index, error={**error, key: f"{error[key]}X"})),
                expected,
            )


@kind("crash of a tool, taken away")
def _crash_gone(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        if reader.step(index).get("outcome") != "crashed":
            continue

        def change(copy: RecordReader, index: int = index) -> None:
            copy.step(index).pop("error", None)
            copy.step(index).update(outcome="success", result="ok")

        asked = reader.asked(index)
        beside = [i for i in reader.tools if asked and i > asked.step]
        place = at(index, index + 1, reader.last, reader.last + 1, *beside)
        yield f"step {index}", changed(record, change), Expected(by="replay", place=place, compared=at(index))


@kind("retry, its attempt")
def _retry_attempt(record: Json) -> Made:
    yield from _retry(record, "attempt")


@kind("retry, how many are allowed")
def _retry_maximum(record: Json) -> Made:
    yield from _retry(record, "max_retries")


def _retry(record: Json, key: str) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        retry, told = reader.step(index).get("retry"), reader.told(index)
        if (
            not isinstance(retry, dict)
            or not isinstance(retry.get(key), int)
            or told is None
            or not told.part.get("retry")
        ):
            continue
        expected = Expected(by="replay", place=at(index), compared=at(index, paths="retry"))

        def change(copy: RecordReader, index: int = index) -> None:
            copy.step(index)["retry"][key] += 1

        yield f"step {index}", changed(record, change), expected


@kind("metadata of an answer, in the step")
def _metadata(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        told = reader.told(index)
        if reader.step(index).get("metadata") is None or told is None or told.part.get("metadata") is None:
            continue

        def change(copy: RecordReader, index: int = index) -> None:
            copy.step(index)["metadata"] = {"changed": True}

        expected = Expected(
            by="replay", place=place_told(reader, told, field="metadata"), compared=at(index, paths="metadata")
        )
        yield f"step {index}", changed(record, change), expected


@kind("content beside an answer, in the step")
def _content(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.tools:
        told, content = reader.told(index), reader.step(index).get("content")
        if not isinstance(content, list) or told is None or told.step is None:
            continue

        def change(copy: RecordReader, index: int = index) -> None:
            copy.step(index)["content"] = ["Other:", *copy.step(index)["content"][1:]]

        expected = Expected(by="replay", place=at(told.step, paths="messages"), compared=at(index, paths="content"))
        yield f"step {index}", changed(record, change), expected


@kind("what a call waits for, as the loop knows it")
def _waits_by_definition(record: Json) -> Made:
    """The definition of its tool says so; and the OpenAI Agents SDK knows of approvals alone."""
    for index, known, said in _waiting(record):
        if known is not None:
            expected = Expected(by="replay", place=at(index), compared=at(index, paths="outcome") | at())
            yield f"step {index}", changed(record, with_fields(index, outcome=_OTHER[said])), expected


@kind("what a call waits for, as its tool said")
def _waits_by_its_tool(record: Json) -> Made:
    """As good as any answer that a tool gives."""
    for index, known, said in _waiting(record):
        if known is None:
            expected = Expected(by="comparison", compared=at(index, paths=("outcome", "waited_for")))
            other = with_fields(index, outcome=_OTHER[said], waited_for=_WAITED_FOR[_OTHER[said]])
            yield f"step {index}", changed(record, other), expected


@kind("what a call waits for, as one of its two fields says")
def _waits_for_two_things(record: Json) -> Made:
    for index, known, said in _waiting(record):
        if known is None and "waited_for" in RecordReader(record).step(index):
            expected = Expected(by="judge", compared=at(index, paths="outcome"))
            yield f"step {index}", changed(record, with_fields(index, outcome=_OTHER[said])), expected


_OTHER = {"unapproved": "deferred", "deferred": "unapproved"}
_WAITED_FOR = {"unapproved": "approval", "deferred": "answer"}
_BY_DEFINITION = {"unapproved": "unapproved", "external": "deferred"}


def _waiting(record: Json) -> Iterator[tuple[int, str | None, str]]:
    """Calls that the run ended with: what the loop knows that each waits for, and what the step says or would say."""
    reader = RecordReader(record)
    kinds = {tool.get("name"): tool.get("kind") for tool in record.get("tools") or []}
    is_openai = (record.get("agent") or {}).get("framework") == "openai-agents"
    for index in reader.tools:
        step = reader.step(index)
        known = "unapproved" if is_openai else _BY_DEFINITION.get(kinds.get(step.get("tool_name")) or "")
        said = step.get("outcome")
        is_last = step.get("parent") == reader.models[-1]
        if said is None and known and not is_openai and is_last and "result" not in step:
            said = known
        if said in _OTHER:
            yield index, known, said
