"""A store of checkpoints: metadata in SQLite, payloads as compressed blobs that are named by their SHA-256.

    python -m examples.checkpoint_store

A small agent runs and ends in the middle; the store is opened anew, and the agent goes on from every step.

A history is a chain: each link holds one item and the name of the link before it. So a checkpoint writes only the
messages that are new, and forks of a run share everything up to the step where they part.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
import tempfile
import uuid
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is needed to go on from a step. All payloads are JSON values."""

    run_id: str
    step: int
    """How many steps the run has taken."""
    history: list[Any]
    """The messages so far."""
    tool_calls: list[Any] = field(default_factory=list)
    model_config: dict[str, Any] = field(default_factory=dict)
    state: Any = None
    agent_version: str | None = None
    taken_at: datetime | None = None


class CheckpointMissing(LookupError):
    """The store holds no checkpoint of this run behind this step."""


class CheckpointStore(Protocol):
    def save(self, checkpoint: Checkpoint) -> None:
        """Keep it; one that was there for the same run and step is replaced."""

    def load(self, run_id: str, step: int) -> Checkpoint:
        """An equal one. Raises `CheckpointMissing`."""

    def steps(self, run_id: str) -> list[int]:
        """The steps of a run that it can go on from, in order."""


class BlobStore:
    """JSON values in files, compressed, each named by the SHA-256 of its bytes. Equal values are kept once."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def put(self, value: Any) -> str:
        """The name under which `get` finds it."""
        content = json.dumps(value, separators=(",", ":")).encode()
        name = hashlib.sha256(content).hexdigest()
        path = self.folder / name
        if not path.exists():
            # Renamed when it is whole: a process that dies leaves no half blob under a good name.
            unfinished = path.with_suffix(f".{uuid.uuid4().hex}")
            unfinished.write_bytes(gzip.compress(content, mtime=0))
            unfinished.replace(path)
        return name

    def get(self, name: str) -> Any:
        """Raises `ValueError` when the bytes are not those that were put there."""
        content = gzip.decompress((self.folder / name).read_bytes())
        if hashlib.sha256(content).hexdigest() != name:
            raise ValueError(f"The blob {name} was changed.")
        return json.loads(content)

    def put_chain(self, items: list[Any]) -> str | None:
        """The name of the last link; only links that are new take space."""
        link = None
        for item in items:
            link = self.put({"before": link, "item": item})
        return link

    def get_chain(self, link: str | None) -> list[Any]:
        items = []
        while link is not None:
            found = self.get(link)
            items.append(found["item"])
            link = found["before"]
        return items[::-1]


TABLE = """
CREATE TABLE IF NOT EXISTS checkpoints (
    run_id TEXT, step INTEGER, agent_version TEXT, taken_at TEXT,
    history TEXT, tool_calls TEXT, model_config TEXT NOT NULL, state TEXT NOT NULL,  -- names of blobs
    PRIMARY KEY (run_id, step)
)
"""


class SqliteCheckpointStore:
    def __init__(self, folder: Path) -> None:
        self.blobs = BlobStore(folder / "blobs")
        self.path = folder / "checkpoints.sqlite3"
        self._execute(TABLE)

    def save(self, checkpoint: Checkpoint) -> None:
        # Blobs first: a row never names a blob that is not there.
        chains = [self.blobs.put_chain(items) for items in (checkpoint.history, checkpoint.tool_calls)]
        values = [self.blobs.put(value) for value in (checkpoint.model_config, checkpoint.state)]
        taken_at = checkpoint.taken_at and checkpoint.taken_at.isoformat()
        row = [checkpoint.run_id, checkpoint.step, checkpoint.agent_version, taken_at, *chains, *values]
        self._execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *row)

    def load(self, run_id: str, step: int) -> Checkpoint:
        rows = self._execute("SELECT * FROM checkpoints WHERE run_id = ? AND step = ?", run_id, step)
        if not rows:
            raise CheckpointMissing(f"Run {run_id!r} has no checkpoint behind step {step}.")
        _, _, agent_version, taken_at, history, tool_calls, model_config, state = rows[0]
        return Checkpoint(
            run_id=run_id,
            step=step,
            history=self.blobs.get_chain(history),
            tool_calls=self.blobs.get_chain(tool_calls),
            model_config=self.blobs.get(model_config),
            state=self.blobs.get(state),
            agent_version=agent_version,
            taken_at=taken_at and datetime.fromisoformat(taken_at),
        )

    def steps(self, run_id: str) -> list[int]:
        rows = self._execute("SELECT step FROM checkpoints WHERE run_id = ? ORDER BY step", run_id)
        return [step for (step,) in rows]

    def _execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows, in a transaction and a connection of their own."""
        with closing(sqlite3.connect(self.path)) as database, database:
            return database.execute(statement, values).fetchall()


# --- an agent that can stop and go on

TOOLS = ("lookup_order", "check_stock", "quote_shipping", "book_courier")

START = Checkpoint(
    run_id="run_abc123",
    step=0,
    history=[{"role": "user", "content": "Send order ORD-5521 again, please."}],
    model_config={"model": "scripted-1", "settings": {"temperature": 0}},
    state={"done": []},
    agent_version="v1",
)


def next_step(now: Checkpoint) -> Checkpoint:
    """The agent: one tool after the other. It knows nothing but the checkpoint."""
    tool = TOOLS[now.step]
    message = {"role": "tool", "name": tool, "content": "went well"}
    call = {"tool_name": tool, "args": {"order_id": "ORD-5521"}, "result": "went well"}
    state = {"done": [*now.state["done"], tool]}
    history, tool_calls = [*now.history, message], [*now.tool_calls, call]
    moment = datetime.now().astimezone()
    return replace(now, step=now.step + 1, history=history, tool_calls=tool_calls, state=state, taken_at=moment)


def go_on(store: CheckpointStore, now: Checkpoint, until: int = len(TOOLS)) -> Checkpoint:
    """Take steps up to this one, and save each."""
    while now.step < until:
        now = next_step(now)
        store.save(now)
    return now


def main(folder: Path) -> None:
    go_on(SqliteCheckpointStore(folder), START, until=3)
    store = SqliteCheckpointStore(folder)
    steps = store.steps(START.run_id)
    print(f"The process ended in the middle of the run; the store holds steps {steps}.")
    for step in steps:
        end = go_on(store, store.load(START.run_id, step))
        print(f"Resumed behind step {step}: {' -> '.join(end.state['done'][step:])}")
    saved = [store.load(START.run_id, step) for step in store.steps(START.run_id)]
    values = sum(len(each.history) + len(each.tool_calls) + 2 for each in saved)
    print(f"{len(saved)} checkpoints of {values} values are kept as {len(list(store.blobs.folder.iterdir()))} blobs.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
