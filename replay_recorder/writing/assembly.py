"""From the lines of a spool file to a native record.

A line is an event: where it belongs, and one or more fields, each with its value as JSON; tabs between them.

    replay-recorder 1                                     the first line: the version of this format
    0       run_id      "r_8821"    started_at  "2026…"   fields of the run
    prior   +           {...}                             a message of the run's earlier turns
    tools   +           {...}                             a row of a table (tools, parameters)
    3       kind        "tool"      tool_name   "search"  fields of step 3

The last value of a field counts. JSON on one line holds no tab and no line end, so values are put together
without being parsed, and stay as they were spelled. An event that was not written to its end is left out, and a
run without `status` was cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from replay_recorder.guard import logger

HEADER = "replay-recorder 1\n"
_LISTS = ("prior", "tools", "parameters")


class SpoolError(ValueError):
    """The file is no recording of this recorder; the message says where."""


def is_spool_file(content: bytes) -> bool:
    return content.startswith(b"replay-recorder ")


def is_empty(content: bytes) -> bool:
    """Whether the process was killed before it could write anything about the run."""
    return content.count(b"\n", 0, 4096) < 2 and HEADER.encode().startswith(content[: len(HEADER)])


def assemble(content: bytes) -> bytes:
    """The record as JSON. Raises `SpoolError`; a last event that was not written whole is left out."""
    lines = _lines(content)
    fields: dict[str, str] = {"format": '"agent-replay.run"', "version": "1"}
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    steps: dict[int, dict[str, str]] = {}
    for number, line in enumerate(lines, start=2):
        place, said = _columns(line, number)
        if place in lists:
            lists[place] += [value for _, value in said]
        else:
            held = fields if place == "0" else steps.setdefault(_index(place, number), {})
            held.update(said)
    fields.setdefault("status", '"cut_off"')
    return _record(fields, lists, steps)


def _lines(content: bytes) -> list[str]:
    if not content.startswith(HEADER.encode()):
        raise SpoolError("The file does not begin as a recording of this version.")
    whole = content[: content.rfind(b"\n") + 1]
    return whole.decode().split("\n")[1:-1]


def event(place: str, columns: str) -> str:
    """A line; no line when there are no columns."""
    return f"{place}{columns}\n" if columns else ""


def column(field: str, value: str) -> str:
    """A field with its value as JSON on one line without tabs."""
    return f"\t{field if field.isprintable() else _printable(field)}\t{value}"


def _printable(field: str) -> str:
    """A name from outside may hold what separates the columns."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in field)


def _columns(line: str, number: int) -> tuple[str, list[tuple[str, str]]]:
    place, *columns = line.split("\t")
    if not columns or len(columns) % 2:
        raise SpoolError(f"Line {number} is not made of fields and values.")
    return place, list(zip(columns[::2], columns[1::2], strict=True))


def _index(place: str, number: int) -> int:
    if not place.isdecimal():
        raise SpoolError(f"Line {number} belongs to {place[:40]!r}, which is unknown.")
    return int(place)


def _record(fields: dict[str, str], lists: dict[str, list[str]], steps: dict[int, dict[str, str]]) -> bytes:
    tables = {name: "[" + ",".join(rows) + "]" for name, rows in lists.items() if rows}
    listed = "[" + ",".join(map(_object, _in_order(steps))) + "]"
    return _object({**fields, **tables, "steps": listed}).encode()


def _in_order(steps: dict[int, dict[str, str]]) -> Iterator[dict[str, str]]:
    """Up to the first gap: what comes after it would get the wrong indexes."""
    for index in range(1, max(steps, default=0) + 1):
        if "kind" not in steps.get(index, {}):
            logger.warning("A recording lacks its step %d; it is sent up to there.", index)
            return
        yield steps[index]


def _object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"
