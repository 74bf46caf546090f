"""From the lines of a spool file to a native record.

A line is three columns with a tab between them: where it belongs, the field, the value as JSON.

    replay-recorder 1                  the first line: the version of this format
    0       run_id      "r_8821"      a field of the run
    prior   +           {...}         a message of the run's earlier turns
    tools   +           {...}         a row of a table (tools, parameters)
    3       kind        "tool"        a field of step 3

The last value of a field counts. JSON on one line holds no tab and no line end, so values are put together
without being parsed, and stay as they were spelled. A run without `status` was cut off.
"""

from __future__ import annotations

import json

from replay_recorder.guard import logger

HEADER = "replay-recorder 1\n"
_LISTS = ("prior", "tools", "parameters")


class SpoolError(ValueError):
    """The file is no recording of this recorder; the message says where."""


def is_spool_file(content: bytes) -> bool:
    return content.startswith(b"replay-recorder ")


def assemble(content: bytes) -> bytes:
    """The record as JSON. Raises `SpoolError`; a last line that was not written whole is left out."""
    lines = _lines(content)
    fields: dict[str, str] = {"format": '"agent-replay.run"', "version": "1"}
    lists: dict[str, list[str]] = {name: [] for name in _LISTS}
    steps: dict[int, dict[str, str]] = {}
    for number, line in enumerate(lines, start=2):
        place, field, value = _columns(line, number)
        if place in lists:
            lists[place].append(value)
        elif place == "0":
            fields[field] = value
        else:
            steps.setdefault(_index(place, number), {})[field] = value
    fields.setdefault("status", '"cut_off"')
    return _record(fields, lists, steps)


def _lines(content: bytes) -> list[str]:
    if not content.startswith(HEADER.encode()):
        raise SpoolError("The file does not begin as a recording of this version.")
    whole = content[: content.rfind(b"\n") + 1]
    return whole.decode().split("\n")[1:-1]


def _columns(line: str, number: int) -> tuple[str, str, str]:
    columns = line.split("\t", 2)
    if len(columns) != 3:
        raise SpoolError(f"Line {number} is not three columns.")
    return columns[0], columns[1], columns[2]


def _index(place: str, number: int) -> int:
    if not place.isdecimal():
        raise SpoolError(f"Line {number} belongs to {place[:40]!r}, which is unknown.")
    return int(place)


def _record(fields: dict[str, str], lists: dict[str, list[str]], steps: dict[int, dict[str, str]]) -> bytes:
    if sorted(steps) != list(range(1, len(steps) + 1)):
        logger.warning("A recording has gaps in its steps; it is sent up to the first one.")
    whole = [steps[index] for index in range(1, len(steps) + 1) if index in steps and "kind" in steps[index]]
    tables = {name: "[" + ",".join(rows) + "]" for name, rows in lists.items() if rows}
    listed = "[" + ",".join(map(_object, whole)) + "]"
    return _object({**fields, **tables, "steps": listed}).encode()


def _object(fields: dict[str, str]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{value}" for name, value in fields.items()) + "}"
