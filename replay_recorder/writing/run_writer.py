"""The recording of one run, written down as it happens."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from replay_recorder.guard import FAULTS
from replay_recorder.settings import Redact
from replay_recorder.writing.assembly import HEADER, column, event
from replay_recorder.writing.json_text import JsonText, encode

if TYPE_CHECKING:
    from replay_recorder.delivery.run_file import RunFile
    from replay_recorder.delivery.sampling import Tree

STRUCTURE = frozenset(
    {"kind", "parent", "started_at", "first_token_at", "duration_ms", "status", "run_id", "session_id", "origin",
     "outcome", "tool_ran", "waited_for", "is_output", "tool_name", "call_id", "tools", "parameters", "state",
     "initial_state", "code", "recorder", "recorder.lost", "recorder.ran_with",
     "sampling"}
)  # fmt: skip
"""Fields that hold nothing of what was said, and states, which are redacted before they are compared; the redaction
hook does not see them."""

NULL = JsonText("null")
"""A null that was really said."""


def now() -> str:
    """The time as ISO 8601 in UTC, to the microsecond; the date is written anew once a second."""
    global _second
    moment = time.time()
    second, text = _second
    if int(moment) != second:
        second = int(moment)
        text = datetime.fromtimestamp(second, timezone.utc).isoformat()[:19]
        _second = second, text
    return f"{text}.{int((moment - second) * 1_000_000):06d}+00:00"


_second: tuple[int, str] = (0, "1970-01-01T00:00:00")
"""The newest whole second with its text."""


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
        self.inner_steps = 0
        """Steps that tell more of another one, such as a request that a client made again."""
        self.failed = False
        """Whether the run, or a part of it, ended badly; failures are always kept."""
        self.summary: dict[str, Any] = {"run_id": run_id, "started_at": now()}
        """Once the run is over also `status`, `duration_ms` and `error`."""
        self.file = file
        self.tree: Tree | None = None
        """The runs that are kept or dropped with this one."""
        self.inside: dict[int, Callable[..., None]] = {}
        """What ends the steps of runs inside this one that go on, by step."""
        self.tool_steps: Counter[str] = Counter()
        """How many tool steps have begun, by the tool's name."""
        self.on_step_end: Callable[[int], None] | None = None
        self._redact = redact
        self._tables: dict[tuple[str, str], int] = {}
        self._sizes: dict[str, int] = {}
        self._marks: dict[int, float] = {0: time.perf_counter()}
        self._pending: dict[int, dict[str, Any]] = {}
        self._held: list[str] = []
        """Lines that are written with the next event."""
        self._blocks = 0
        """How many `together` are open."""
        self._agent: dict[str, Any] = {}
        # In one write: a process that is killed leaves a file of which something can be said, or an empty one.
        file.append(HEADER + event("0", self.columns(**self.summary)))

    # --- the run

    def put(self, **fields: Any) -> None:
        """Fields of the run. One that was there already is replaced."""
        self._write("0", fields)

    def put_agent(self, **facts: Any) -> None:
        """Facts of the agent, added to those that are there; dicts are merged."""
        with self.file.lock:
            for key, value in facts.items():
                known = self._agent.get(key)
                is_both = isinstance(known, dict) and isinstance(value, dict)
                self._agent[key] = {**(known or {}), **value} if is_both else value
            self.put(agent={key: value for key, value in self._agent.items() if value is not None})

    def put_prior(self, messages: list[JsonText]) -> None:
        """The messages that the run started from."""
        columns = "".join([column("+", encode(self.redacted(message))) for message in messages])
        with self.file.lock:
            self._append(event("prior", columns))

    def row(self, table: str, row: JsonText) -> int:
        """The position of this row in `tools` or `parameters`; equal rows are written once."""
        with self.file.lock:
            known = self._tables.get((table, row))
            if known is not None:
                return known
            position = self._sizes.get(table, 0)
            self._append(event(table, column("+", encode(self.redacted(row)))))
            self._sizes[table] = position + 1
            self._tables[table, row] = position
            return position

    def together(self) -> AbstractContextManager[None]:
        """What is said inside the block is one event, written in one go at its end."""
        return _Together(self)

    # --- steps

    def begin(self, kind: str, **fields: Any) -> int:
        """A step starts now; returns its index."""
        with self.file.lock:
            index, line = self._begun(kind, fields)
            self._append(line)
        return index

    def begin_soon(self, kind: str, **fields: Any) -> int:
        """The same, written with the next event: whoever lets time pass before that calls `write_begun`."""
        with self.file.lock:
            index, line = self._begun(kind, fields)
            self._held.append(line)
        return index

    def write_begun(self) -> None:
        with self.file.lock:
            self._append("")

    def _begun(self, kind: str, fields: Mapping[str, Any]) -> tuple[int, str]:
        self.steps += 1
        if kind == "tool":
            self.tool_steps[str(fields.get("tool_name"))] += 1
        self._marks[self.steps] = time.perf_counter()
        said = self._encoded({"kind": kind, "started_at": now(), **fields})
        return self.steps, event(str(self.steps), said)

    def started(self, index: int, **fields: Any) -> None:
        """The step really starts only now; written when it ends, for the step itself is there already."""
        self._marks[index] = time.perf_counter()
        self._pending[index] = {"started_at": now(), **fields}

    def elapsed(self, index: int) -> float:
        """Milliseconds since the step began; the run for 0."""
        return _since(self._marks[index])

    def amend(self, index: int, same: str = "", /, **fields: Any) -> None:
        """More fields of a step; `same` as for `end`."""
        self._write(str(index), fields, same)

    def columns(self, **fields: Any) -> str:
        """Fields as they are written, for `end`: those that come again at each step are encoded once."""
        return self._encoded(fields)

    def end(self, index: int, same: str = "", /, **fields: Any) -> None:
        """The step is over; its duration is taken unless it is among the fields. `same` is made by `columns`."""
        mark = self._marks.pop(index, None)
        if mark is not None:
            fields.setdefault("duration_ms", _since(mark))
        if fields.get("error") is not None:
            self.failed = True
        self._write(str(index), {**self._pending.pop(index, {}), **fields}, same)
        if self.on_step_end is not None and mark is not None:
            self.on_step_end(index)

    def is_open(self, index: int) -> bool:
        return index in self._marks

    def step(self, kind: str, **fields: Any) -> int:
        """A step that is over already."""
        index = self.begin(kind, **fields)
        self.end(index)
        return index

    def inner_step(self, parent: int, **fields: Any) -> None:
        """A step that tells more of another one and is over already. The agent made none, so no snapshot follows."""
        index = self.begin("other", parent=parent)
        self.inner_steps += 1
        del self._marks[index]
        self.end(index, **fields)

    # --- the end

    def finish(self, status: str, **fields: Any) -> None:
        """The last lines. What was lost above a limit makes the run a cut-off one."""
        fields.setdefault("duration_ms", self.elapsed(0))
        self.failed = self.failed or status != "ok"
        self.summary.update(status=status, duration_ms=fields["duration_ms"], error=fields.get("error"))
        self._write("0", {**fields, "status": status})
        with self.file.lock:
            if self.file.lost is not None:
                self.failed = True
                self.put_last({"status": "cut_off", "recorder.lost": self.file.lost})

    def put_last(self, fields: Mapping[str, Any]) -> None:
        """Small fields of the run that are written also when a limit was reached."""
        with self.file.lock:
            self.file.append_last(event("0", self._encoded(fields)))

    # --- writing

    def _write(self, place: str, fields: Mapping[str, Any], same: str = "") -> None:
        line = event(place, same + self._encoded(fields))
        if line:
            with self.file.lock:
                self._append(line)

    def _append(self, text: str) -> None:
        """The caller holds the lock."""
        if self._blocks:
            self._held.append(text)
            return
        if self._held:
            text = "".join(self._held) + text
            self._held.clear()
        if text:
            self.file.append(text)

    def _encoded(self, fields: Mapping[str, Any]) -> str:
        """The fields as columns. One that cannot be redacted or written down is left out, and the others stay."""
        said = []
        for field, value in fields.items():
            if value is not None:
                try:
                    kept = value if self._redact is None or field in STRUCTURE else self.redacted(value)
                    said.append(column(field, encode(kept)))
                except Exception as error:
                    FAULTS.note(f"the field {field}", error)
        return "".join(said)

    def redacted(self, value: Any) -> Any:
        """The value as the redaction hook leaves it; without a hook as it is."""
        return value if self._redact is None else self._redact(_plain(value))


class _Together:
    """A class: a context manager made of a generator takes several times as long, and this one is entered at every
    step."""

    __slots__ = ("_lock", "_run")

    def __init__(self, run: RunWriter) -> None:
        self._run = run
        self._lock = run.file.lock

    def __enter__(self) -> None:
        self._lock.acquire()
        self._run._blocks += 1

    def __exit__(self, *error: object) -> None:
        try:
            self._run._blocks -= 1
            self._run._append("")
        finally:
            self._lock.release()


def _since(mark: float) -> float:
    """Milliseconds, to the microsecond."""
    return int((time.perf_counter() - mark) * 1_000_000) / 1000


def _plain(value: Any) -> Any:
    """JSON values without `JsonText`, for a hook that changes them."""
    return json.loads(encode(value))
