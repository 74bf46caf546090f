"""What models answered, which a replay is given and does not make."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.trials.kinds.shared import Made, lengthen, lengthen_part, outcome_place, without_field, without_items
from tests.trials.mutants import Expected, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader


def _texts(reader: RecordReader) -> Iterator[tuple[int, int, str, bool]]:
    """Texts of answers: step, position, path, and whether it is the run's output."""
    for index in reader.models:
        parts = list(reader.response_parts(index))
        texts = [part for _, part in parts if part.get("part_kind") == "text"]
        whole = "".join(part["content"] for part in texts)
        for position, (path, part) in enumerate(parts):
            if part.get("part_kind") == "text" and part["content"]:
                is_last = index == reader.models[-1] and whole == reader.record.get("output")
                yield index, position, path, is_last


@kind("text of the last answer")
def _last_text(record: Json) -> Made:
    reader = RecordReader(record)
    for index, position, path, is_last in _texts(reader):
        if is_last:
            change = lengthen_part(index, position, "content")
            expected = Expected(by="replay", place=outcome_place(reader, "output"), compared=at(index, paths=path))
            yield f"step {index}", changed(record, change), expected


@kind("text of an earlier answer")
def _earlier_text(record: Json) -> Made:
    reader = RecordReader(record)
    for index, position, path, _ in _texts(reader):
        if index != reader.models[-1]:

            def change(copy: RecordReader, index: int = index, position: int = position) -> None:
                lengthen_part(index, position, "content")(copy)
                without_items(copy)

            yield f"step {index}", changed(record, change), Expected(by="comparison", compared=at(index, paths=path))


@kind("text and output both")
def _text_and_output(record: Json) -> Made:
    reader = RecordReader(record)
    for index, position, path, is_last in _texts(reader):
        parts = [part for _, part in reader.response_parts(index) if part.get("part_kind") == "text"]
        if is_last and len(parts) == 1:

            def change(copy: RecordReader, index: int = index, position: int = position) -> None:
                lengthen_part(index, position, "content")(copy)
                lengthen(copy.record, "output")
                without_items(copy)

            # Functions of the team may have made the output of the text.
            by: Any = "undecided" if record.get("agent", {}).get("output_function") else "comparison"
            yield f"step {index}", changed(record, change), Expected(by=by, compared=at(index, paths=path))


@kind("thought of a model")
def _thought(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        for position, (path, part) in enumerate(reader.response_parts(index)):
            if part.get("part_kind") == "thinking" and part.get("content"):

                def change(copy: RecordReader, index: int = index, position: int = position) -> None:
                    lengthen_part(index, position, "content")(copy)
                    without_items(copy)

                expected = Expected(by="comparison", compared=at(index, paths=path))
                yield f"step {index}", changed(record, change), expected


@kind("text added to a model's calls")
def _text_added(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models[:-1]:
        if record.get("agent", {}).get("entry_point") == "run_stream":
            return  # there the first text ends the run
        if any(part.get("part_kind") == "tool-call" for _, part in reader.response_parts(index)):

            def change(copy: RecordReader, index: int = index) -> None:
                copy.step(index)["response"]["parts"].insert(0, {"part_kind": "text", "content": "Let me see."})

            yield f"step {index}", changed(record, change), _in_answer(reader, index, "response")


def _in_answer(reader: RecordReader, index: int, *paths: str) -> Expected:
    """A change of an answer alone; a request that tells the past again, tells it otherwise."""
    compared, again = at(index, paths=paths), reader.told_again(index)
    return Expected(by="replay" if again else "comparison", place=at(*([again] if again else [])), compared=compared)


@kind("answer of a model left out")
def _response_gone(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if reader.step(index).get("response"):
            expected = Expected(
                by="judge", place=at(index), compared=Place(), verdicts=frozenset({"replayable_to_step", "cold"})
            )
            yield f"step {index}", changed(record, without_field(index, "response")), expected


@kind("finish reason")
def _finish_reason(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if not isinstance(reader.step(index).get("response"), dict):
            continue

        other = "stop" if reader.step(index).get("finish_reason") == "length" else "length"

        def change(copy: RecordReader, index: int = index, other: str = other) -> None:
            copy.step(index)["finish_reason"] = other
            if isinstance(copy.step(index).get("response"), dict):
                copy.step(index)["response"]["finish_reason"] = other

        expected = _in_answer(reader, index, "finish_reason", "response")
        if index == reader.models[-1] or not list(reader.response_parts(index)):
            # An answer that was cut short may be judged otherwise by the loop.
            expected = Expected(by="undecided", compared=expected.compared)
        yield f"step {index}", changed(record, change), expected


@kind("a last answer of one message more")
def _message_more(record: Json) -> Made:
    """Of which the OpenAI Agents SDK would have taken the last; the output is the first."""
    reader = RecordReader(record)
    if record["agent"].get("framework") != "openai-agents" or not record.get("output"):
        return
    index = reader.models[-1]
    parts = (reader.step(index).get("response") or {}).get("parts") or []
    if [part["part_kind"] for part in parts] != ["text"]:
        return

    def change(copy: RecordReader) -> None:
        parts = copy.step(index)["response"]["parts"]
        parts.append({**parts[0], "content": "And more.", "id": "msg_more"})

    compared = at(index, paths=("response", "messages"))
    expected = Expected(by="judge", place=at(reader.last, reader.last + 1), compared=compared)
    yield f"step {index}", changed(record, change), expected


@kind("answer, a field that was not captured")
def _field_null(record: Json) -> Made:
    """Null says no more."""
    reader = RecordReader(record)
    for index in reader.models:
        response = reader.step(index).get("response") or {}
        for field in ("run_id", "conversation_id", "timestamp", "state"):
            if response.get(field) is None or response.get("state") not in (None, "complete"):
                continue
            expected = Expected(by="comparison", is_comparable=False)
            change = partial(_set, index=index, field=field, value=None)
            yield f"step {index}, {field}", changed(record, change), expected


@kind("answer, a field that nobody can read")
def _field_unreadable(record: Json) -> Made:
    reader = RecordReader(record)
    for index in reader.models:
        if not reader.step(index).get("response"):
            continue
        for field, value in (("finish_reason", "end_turn"), ("timestamp", "yesterday"), ("metadata", "none")):
            expected = Expected(by="judge", place=at(index), is_comparable=False)
            change = partial(_set, index=index, field=field, value=value)
            yield f"step {index}, {field}", changed(record, change), expected


def _set(copy: RecordReader, *, index: int, field: str, value: Any) -> None:
    copy.step(index)["response"][field] = value


@kind("field that nobody knows, in an answer")
def _unknown_field(record: Json) -> Made:
    """The loop leaves it out, which is seen where the replay comes to the end of the run."""
    ended_elsewhere = (record.get("error") or {}).get("type") == "MaxTurnsExceeded"
    for index in [] if ended_elsewhere else RecordReader(record).models:
        if record["steps"][index - 1].get("response"):

            def change(copy: RecordReader, index: int = index) -> None:
                copy.step(index)["response"]["of_tomorrow"] = 1
                without_items(copy)

            place = at(index, paths="response.of_tomorrow")
            yield f"step {index}", changed(record, change), Expected(by="replay", place=place, compared=place)
