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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What is needed to go on from a step. All payloads are JSON values."""

    run_id: str
    step_id: str
    step_number: int
    """How many steps the run has taken."""
    timestamp: datetime
    messages: list[Any]
    """The conversation so far."""
    tool_calls: list[Any]
    model_config: dict[str, Any]
    state: Any
    agent_version: str


class CheckpointMissing(LookupError):
    """The store holds no checkpoint of this run behind this step."""


class CheckpointStore(Protocol):
    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Keep it; one that was there for the same run and step is replaced."""

    def load_checkpoint(self, run_id: str, step_id: str) -> Checkpoint:
        """An equal one. Raises `CheckpointMissing`."""

    def step_ids(self, run_id: str) -> list[str]:
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
    run_id TEXT, step_id TEXT, step_number INTEGER, timestamp TEXT, agent_version TEXT,
    messages TEXT, tool_calls TEXT, model_config TEXT NOT NULL, state TEXT NOT NULL,  -- names of blobs
    PRIMARY KEY (run_id, step_id)
)
"""


class SqliteCheckpointStore:
    def __init__(self, db: sqlite3.Connection, blob_store: BlobStore) -> None:
        self.db = db
        self.blob_store = blob_store
        self.db.execute(TABLE)

    def save_checkpoint(self, checkpoint: Checkpoint) -> None:
        # Blobs first: a row never names a blob that is not there.
        chains = [self.blob_store.put_chain(items) for items in (checkpoint.messages, checkpoint.tool_calls)]
        values = [self.blob_store.put(value) for value in (checkpoint.model_config, checkpoint.state)]
        place = [checkpoint.run_id, checkpoint.step_id, checkpoint.step_number]
        row = [*place, checkpoint.timestamp.isoformat(), checkpoint.agent_version, *chains, *values]
        with self.db:
            self.db.execute("INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def load_checkpoint(self, run_id: str, step_id: str) -> Checkpoint:
        found = self.db.execute("SELECT * FROM checkpoints WHERE run_id = ? AND step_id = ?", (run_id, step_id))
        row = found.fetchone()
        if row is None:
            raise CheckpointMissing(f"Run {run_id!r} has no checkpoint {step_id!r}.")
        _, _, step_number, timestamp, agent_version, messages, tool_calls, model_config, state = row
        return Checkpoint(
            run_id=run_id,
            step_id=step_id,
            step_number=step_number,
            timestamp=datetime.fromisoformat(timestamp),
            messages=self.blob_store.get_chain(messages),
            tool_calls=self.blob_store.get_chain(tool_calls),
            model_config=self.blob_store.get(model_config),
            state=self.blob_store.get(state),
            agent_version=agent_version,
        )

    def step_ids(self, run_id: str) -> list[str]:
        rows = self.db.execute("SELECT step_id FROM checkpoints WHERE run_id = ? ORDER BY step_number", (run_id,))
        return [step_id for (step_id,) in rows]


@contextmanager
def open_store(folder: Path) -> Iterator[SqliteCheckpointStore]:
    """The store in a folder, closed at the end of the block."""
    with closing(sqlite3.connect(folder / "checkpoints.sqlite3")) as db:
        yield SqliteCheckpointStore(db, BlobStore(folder / "blobs"))


# --- an agent that can stop and go on

TOOLS = ("lookup_order", "check_stock", "quote_shipping", "book_courier")

START = Checkpoint(
    run_id="run_abc123",
    step_id="step_0",
    step_number=0,
    timestamp=datetime.now().astimezone(),
    messages=[{"role": "user", "content": "Send order ORD-5521 again, please."}],
    tool_calls=[],
    model_config={"model": "scripted-1", "settings": {"temperature": 0}},
    state={"done": []},
    agent_version="v1",
)


def step_to(now: Checkpoint, message: Any, **changes: Any) -> Checkpoint:
    """The checkpoint of the step that follows."""
    number, moment = now.step_number + 1, datetime.now().astimezone()
    place: dict[str, Any] = {"step_id": f"step_{number}", "step_number": number, "timestamp": moment}
    return replace(now, **place, messages=[*now.messages, message], **changes)


def next_step(now: Checkpoint) -> Checkpoint:
    """The agent: one tool after the other. It knows nothing but the checkpoint."""
    tool = TOOLS[now.step_number]
    call = {"tool_name": tool, "args": {"order_id": "ORD-5521"}, "result": "went well"}
    message = {"role": "tool", "name": tool, "content": "went well"}
    state = {"done": [*now.state["done"], tool]}
    return step_to(now, message, state=state, tool_calls=[*now.tool_calls, call])


def go_on(store: CheckpointStore, now: Checkpoint, until: int = len(TOOLS)) -> Checkpoint:
    """Take steps up to this one, and save each."""
    while now.step_number < until:
        now = next_step(now)
        store.save_checkpoint(now)
    return now


def main(folder: Path) -> None:
    with open_store(folder) as store:
        go_on(store, START, until=3)
    with open_store(folder) as store:
        show(store)


def show(store: SqliteCheckpointStore) -> None:
    step_ids = store.step_ids(START.run_id)
    print(f"The process ended in the middle of the run; the store holds {', '.join(step_ids)}.")
    for step_id in step_ids:
        origin = store.load_checkpoint(START.run_id, step_id)
        end = go_on(store, origin)
        print(f"Resumed behind {step_id}: {' -> '.join(end.state['done'][origin.step_number :])}")
    saved = [store.load_checkpoint(START.run_id, step_id) for step_id in store.step_ids(START.run_id)]
    values = sum(len(each.messages) + len(each.tool_calls) + 2 for each in saved)
    blobs = len(list(store.blob_store.folder.iterdir()))
    print(f"{len(saved)} checkpoints of {values} values are kept as {blobs} blobs.")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
