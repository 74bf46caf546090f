"""The recording of one run, written down as it happens."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from typing import Any

from replay_recorder.assembly import HEADER
from replay_recorder.json_text import JsonText, encode
from replay_recorder.settings import Redact
from replay_recorder.spool import RunFile

STRUCTURE = frozenset(
    {"kind", "parent", "started_at", "first_token_at", "duration_ms", "status", "run_id", "session_id", "origin",
     "outcome", "is_output", "tools", "parameters"}
)  # fmt: skip
"""Fields that hold nothing of what was said; the redaction hook does not see them."""

NULL = JsonText("null")
"""A null that was really said."""


def now() -> str:
    return datetime.now(timezone.utc).isoformat()


class RunWriter:
    """Fields of a run and its steps, in the words of the record format; each call is written at once.

    Steps are numbered from 1 in the order in which they begin. Safe for several threads. Values are JSON,
    `JsonText`, or anything that `json_text.jsonable` can turn into JSON. None is not written: it means "not
    captured"; an answer that really was null is `NULL`.
    """

    def __init__(self, run_id: str, file: RunFile, *, redact: Redact | None = None) -> None:
        self.run_id = run_id
        self.session_id = run_id
        self.steps = 0
        self.failed = False
        """Whether the run, or a part of it, ended badly; failures are always kept."""
        self.file = file
        self.on_step_end: Callable[[int], None] | None = None
        self._redact = redact
        self._tables: dict[tuple[str, str], int] = {}
        self._sizes: dict[str, int] = {}
        self._marks: dict[int, float] = {0: time.perf_counter()}
        self._agent: dict[str, Any] = {}
        self._lock = threading.RLock()
        file.append(HEADER)
        self.put(run_id=run_id, started_at=now())

    # --- the run

    def put(self, **fields: Any) -> None:
        """Fields of the run. One that was there already is replaced."""
        self._write("0", fields)

    def put_agent(self, **facts: Any) -> None:
        """Facts of the agent, added to those that are there; dicts are merged."""
        with self._lock:
            for key, value in facts.items():
                known = self._agent.get(key)
                both = isinstance(known, dict) and isinstance(value, dict)
                self._agent[key] = {**known, **value} if both else value
            self.put(agent={key: value for key, value in self._agent.items() if value is not None})

    def put_prior(self, messages: list[JsonText]) -> None:
        """The messages that the run started from."""
        self.file.append("".join(self._line("prior", "+", message) for message in messages))

    def row(self, table: str, row: JsonText) -> int:
        """The position of this row in `tools` or `parameters`; equal rows are written once."""
        with self._lock:
            known = self._tables.get((table, row))
            if known is not None:
                return known
            position = self._sizes.get(table, 0)
            self.file.append(self._line(table, "+", row))
            self._sizes[table] = position + 1
            self._tables[table, row] = position
            return position

    # --- steps

    def begin(self, kind: str, **fields: Any) -> int:
        """A step starts now; returns its index."""
        with self._lock:
            self.steps += 1
            index = self.steps
            self._marks[index] = time.perf_counter()
            self._write(str(index), {"kind": kind, "started_at": now(), **fields})
        return index

    def started(self, index: int) -> None:
        """The step really starts only now."""
        self._marks[index] = time.perf_counter()
        self._write(str(index), {"started_at": now()})

    def amend(self, index: int, **fields: Any) -> None:
        """More fields of a step."""
        self._write(str(index), fields)

    def end(self, index: int, **fields: Any) -> None:
        """The step is over; its duration is taken unless it is among the fields."""
        mark = self._marks.pop(index, None)
        if mark is not None:
            fields.setdefault("duration_ms", round((time.perf_counter() - mark) * 1000, 3))
        if fields.get("error") is not None:
            self.failed = True
        self._write(str(index), fields)
        if self.on_step_end is not None and mark is not None:
            self.on_step_end(index)

    def is_open(self, index: int) -> bool:
        return index in self._marks

    def step(self, kind: str, **fields: Any) -> int:
        """A step that is over already."""
        index = self.begin(kind, **fields)
        self.end(index)
        return index

    # --- the end

    def finish(self, status: str, **fields: Any) -> None:
        """The last lines. What was lost above a limit makes the run a cut-off one."""
        fields.setdefault("duration_ms", round((time.perf_counter() - self._marks[0]) * 1000, 3))
        self.failed = self.failed or status == "error"
        with self._lock:
            self._write("0", {**fields, "status": status})
            if self.file.lost is not None:
                self.failed = True
                self.file.append_last(self._line("0", "status", JsonText('"cut_off"')))
                self.file.append_last(self._line("0", "recorder.lost", self.file.lost))

    # --- writing

    def _write(self, place: str, fields: Mapping[str, Any]) -> None:
        lines = [self._line(place, field, value) for field, value in fields.items() if value is not None]
        if lines:
            with self._lock:
                self.file.append("".join(lines))

    def _line(self, place: str, field: str, value: Any) -> str:
        if self._redact is not None and field not in STRUCTURE:
            value = self._redact(_plain(value))
        return f"{place}\t{field}\t{encode(value)}\n"


def _plain(value: Any) -> Any:
    """JSON values without `JsonText`, for a hook that changes them."""
    return json.loads(encode(value))
