"""How the run ended: output, status, error and the last messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.trials.kinds.shared import FINAL, Made, lengthen, of_run, outcome_place, place_told
from tests.trials.mutants import Expected, Place, at, changed, kind
from tests.trials.reading_records import Json, RecordReader, Told
from tests.trials.value_changes import CHANGES


@kind("output changed")
def _output(record: Json) -> Made:
    reader = RecordReader(record)
    for path, new in _output_changes(record):
        expected = Expected(by="replay", place=outcome_place(reader, "output"), compared=Place(paths=("output",)))
        yield path, changed(record, of_run(output=new)), expected


def _output_changes(record: Json) -> Iterator[tuple[str, Any]]:
    if "output" in record and record["output"] is not None:
        for name in (
            "text",
            "number",
            "a blank at the end",
            "key removed",
            "key added",
            "order of a list",
            "true for 1",
        ):
            for path, new in CHANGES[name](record["output"]):
                yield f"{name} {path}", new


@kind("output, spelling of a number")
def _output_spelling(record: Json) -> Made:
    for path, new in CHANGES["spelling of a number"](record.get("output")):
        expected = Expected(by="undecided", compared=Place(paths=("output",)))
        yield path, changed(record, of_run(output=new)), expected


@kind("output left out")
def _output_gone(record: Json) -> Made:
    if record.get("output") is None:
        return
    place = at(RecordReader(record).last + 1, paths=("output", "outcome"))
    expected = Expected(
        by="judge",
        place=place,
        compared=Place(paths=("output",)),
        is_comparable=False,
        verdicts=frozenset({"replayable_to_step"}),
    )
    yield "output", changed(record, lambda copy: copy.record.pop("output")), expected


@kind("output that no step made")
def _output_added(record: Json) -> Made:
    """To a run that failed or waits for somebody."""
    if record.get("output") is not None:
        return
    expected = Expected(by="replay", place=outcome_place(RecordReader(record)), compared=Place())

    def change(copy: RecordReader) -> None:
        copy.record["output"] = "All is done."

    yield "beside what was there", changed(record, change), expected

    def whole(copy: RecordReader) -> None:
        copy.record.update(output="All is done.", status="ok")
        copy.record.pop("error", None)

    yield "as a run that went well", changed(record, whole), expected


@kind("status, failed without an error")
def _status_failed(record: Json) -> Made:
    yield from _status(record, "error", {"ok"})


@kind("status, well although it failed")
def _status_ok(record: Json) -> Made:
    yield from _status(record, "ok", {"error"})


@kind("status, cut off although it ended")
def _status_cut(record: Json) -> Made:
    yield from _status(record, "cut_off", {"ok", "error"})


def _status(record: Json, new: str, old: set[str]) -> Made:
    if record.get("status") in old:
        expected = Expected(by="replay", place=outcome_place(RecordReader(record)), compared=Place(paths=("status",)))
        yield new, changed(record, of_run(status=new)), expected


@kind("status, still running")
def _status_running(record: Json) -> Made:
    if record.get("status") in ("ok", "error"):
        expected = Expected(by="judge", compared=Place(paths=("status",)), verdicts=frozenset({"cold"}))
        yield "running", changed(record, of_run(status="running")), expected


@kind("error of the run, its message")
def _error_message(record: Json) -> Made:
    yield from _run_error(record, "message")


@kind("error of the run, its type")
def _error_type(record: Json) -> Made:
    yield from _run_error(record, "type")


def _run_error(record: Json, key: str) -> Made:
    if isinstance(record.get("error"), dict) and record["error"].get(key):
        place = outcome_place(RecordReader(record))
        expected = Expected(by="replay", place=place, compared=Place(paths=("error",)))
        yield key, changed(record, lambda copy: lengthen(copy.record["error"], key)), expected


@kind("error of the run left out")
def _error_gone(record: Json) -> Made:
    if record.get("error"):
        expected = Expected(by="replay", place=outcome_place(RecordReader(record)), is_comparable=False)
        yield "error", changed(record, lambda copy: copy.record.pop("error")), expected


@kind("error beside an output")
def _error_added(record: Json) -> Made:
    if record.get("status") == "ok":
        error = {"type": "Down", "message": "it was down"}
        expected = Expected(by="replay", place=outcome_place(RecordReader(record)), compared=Place(paths=("error",)))
        yield "error", changed(record, of_run(error=error)), expected


@kind("a run that went well as one that failed")
def _failed_instead(record: Json) -> Made:
    if record.get("status") != "ok":
        return
    for error in ({"type": "Down", "message": "it was down"}, {"type": "UsageLimitExceeded", "message": "limit of 50"}):

        def change(copy: RecordReader, error: Json = error) -> None:
            copy.record.pop("output", None)
            copy.record.update(status="error", error=error)

        expected = Expected(
            by="replay", place=outcome_place(RecordReader(record)), compared=Place(paths=("status", "output", "error"))
        )
        yield error["type"], changed(record, change), expected


@kind("final messages, text changed")
def _final_text(record: Json) -> Made:
    reader = RecordReader(record)
    for number, message in enumerate((record.get("final") or {}).get("messages", [])):
        for position, part in enumerate(message.get("parts", [])):
            if isinstance(part.get("content"), str) and part["content"]:

                def change(copy: RecordReader, number: int = number, position: int = position) -> None:
                    lengthen(copy.record["final"]["messages"][number]["parts"][position], "content")

                place = place_told(reader, Told(None, part, "")) | outcome_place(reader, *FINAL)
                expected = Expected(by="replay", place=place, compared=Place(paths=FINAL))
                yield f"message {number}", changed(record, change), expected


@kind("final messages, one added")
def _final_added(record: Json) -> Made:
    reader = RecordReader(record)
    if record.get("final"):
        message = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "And then?"}]}
        expected = Expected(
            by="replay", place=at(reader.last, reader.last + 1, paths=FINAL), compared=Place(paths=FINAL)
        )
        yield "a prompt", changed(record, lambda copy: copy.record["final"]["messages"].append(message)), expected
