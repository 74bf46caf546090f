"""Side effects that happen once, however often they are asked for.

    task = IdempotentTask("order-5521-refund")
    task.execute(send_email, to="user@example.com", subject="Refund")
    task.execute(send_email, to="user@example.com", subject="Refund")   # the first result, no second email

Before an operation runs, a claim is written; after it, its result. A process that dies in between leaves a claim
without a result, and nobody can know whether the side effect has happened. The operation is then never run again
by itself: `execute` raises `OutcomeUnknown` until somebody who has looked says which it is, with `settle` or
`forget`.

Unlike the rest of this package, errors here reach the caller: an operation that cannot be claimed does not run.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from replay_recorder.delivery.locks import is_same_file, try_lock
from replay_recorder.tools.calls import is_coroutine_function
from replay_recorder.tools.operation_keys import name_of_operation, operation_key
from replay_recorder.writing.json_text import dumps

P = ParamSpec("P")
T = TypeVar("T")
_LOOK_EVERY = 0.02
_TABLE = """
CREATE TABLE IF NOT EXISTS executions (
    key TEXT PRIMARY KEY,
    task_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    claimed_at TEXT NOT NULL,
    result TEXT
)
"""
"""A claim is a row without a result; a result is JSON, and `null` where the operation gave None."""


class OutcomeUnknown(Exception):
    """The process that ran the operation died before it could say how it ended.

    Look whether the side effect has happened. If so, `task.settle(error.key, result)` keeps what it gave; if not,
    `task.forget(error.key)` lets the next call run it.
    """

    def __init__(self, key: str, operation: str, claimed_at: str) -> None:
        super().__init__(
            f"{operation} was begun at {claimed_at} and its process died before it ended. If it has happened, say so "
            f"with settle({key!r}, result); if it has not, with forget({key!r})."
        )
        self.key = key
        self.operation = operation
        self.claimed_at = claimed_at


class IdempotentTask:
    """Operations of one task, each executed once for the same arguments, also across restarts and processes."""

    def __init__(self, task_id: str, store: str | os.PathLike[str] | None = None) -> None:
        """`store` is an SQLite file, by default one for this user; not on a network disk, where locks may not hold.

        Raises `OSError` or `sqlite3.Error` when it cannot be written.
        """
        if sys.platform == "win32":
            raise NotImplementedError("IdempotentTask needs file locks that this system does not have.")
        self.task_id = task_id
        self._path = Path(store) if store is not None else _default_store()
        self._locks = self._path.with_name(self._path.name + ".locks")
        self._locks.mkdir(parents=True, exist_ok=True)
        with self._transaction() as database:
            database.execute(_TABLE)

    def execute(self, operation: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run the operation, or give what it gave the first time.

        The first result comes back from JSON: a tuple as a list, an unknown object as text. The same arguments in
        another order, or by name instead of by position, are the same; defaults that are not passed do not count.
        What the operation raises is raised and not kept: the next call tries again. While another thread or process
        makes the same call, this one waits for it.

        Raises `OutcomeUnknown`, and `TypeError` for arguments that cannot be compared after a restart, for lambdas,
        which have no name of their own, and for coroutine functions, which `execute_async` takes.
        """
        if is_coroutine_function(operation):
            raise TypeError(f"{operation!r} is a coroutine function: await execute_async() instead.")
        key = operation_key(self.task_id, operation, args, kwargs)
        known = self._result(key)
        if known is None:
            with self._turn(key, _wait(self._lock_file(key))), self._claim(key, operation) as claim:
                if claim.known is None:
                    return claim.settled(operation(*args, **kwargs))
                known = claim.known
        result: T = json.loads(known)
        return result

    async def execute_async(self, operation: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """`execute` for a coroutine function. A call that is cancelled half way is one of unknown outcome."""
        key = operation_key(self.task_id, operation, args, kwargs)
        known = self._result(key)
        if known is None:
            descriptor = await _wait_async(self._lock_file(key))
            with self._turn(key, descriptor), self._claim(key, operation) as claim:
                if claim.known is None:
                    return claim.settled(await operation(*args, **kwargs))
                known = claim.known
        result: T = json.loads(known)
        return result

    def settle(self, key: str, result: Any) -> None:
        """A call of unknown outcome has happened, and this is its result. Raises `BlockingIOError` while it runs."""
        with self._turn(key, _lock_at_once(self._lock_file(key))):
            self._settle(key, result)

    def forget(self, key: str) -> None:
        """A call of unknown outcome has not happened; the next one runs it. A result that is known stays.

        Raises `BlockingIOError` while it runs.
        """
        with self._turn(key, _lock_at_once(self._lock_file(key))):
            self._forget(key)

    # --- the table

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Begins with the right to write; nothing is written when the block raises."""
        database = sqlite3.connect(self._path, timeout=30, isolation_level=None)
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            database.close()

    def _result(self, key: str) -> str | None:
        """JSON; None when there is none yet."""
        with self._transaction() as database:
            found = database.execute("SELECT result FROM executions WHERE key = ?", (key,)).fetchone()
        return None if found is None else found[0]

    @contextlib.contextmanager
    def _claim(self, key: str, operation: Callable[..., Any]) -> Iterator[Claim]:
        """Only in the turn of this key: a claim that is there already belongs to a process that is gone."""
        claim = Claim(self._written_claim(key, name_of_operation(operation)), lambda result: self._settle(key, result))
        try:
            yield claim
        except Exception:
            if not claim.has_happened:
                # Where even this fails the claim stays, and the next call says so.
                with contextlib.suppress(sqlite3.Error):
                    self._forget(key)
            raise
        # Anything else that is raised, such as KeyboardInterrupt, may come from the middle: the claim stays.

    def _written_claim(self, key: str, name: str) -> str | None:
        """None when it is written, or the result that is there. Raises `OutcomeUnknown`."""
        with self._transaction() as database:
            query = "SELECT operation, claimed_at, result FROM executions WHERE key = ?"
            found = database.execute(query, (key,)).fetchone()
            if found is None:
                row = (key, self.task_id, name, datetime.now(timezone.utc).isoformat())
                database.execute("INSERT INTO executions VALUES (?, ?, ?, ?, NULL)", row)
                return None
        operation, claimed_at, result = found
        if result is None:
            raise OutcomeUnknown(key, operation, claimed_at)
        return str(result)

    def _settle(self, key: str, result: Any) -> None:
        with self._transaction() as database:
            database.execute("UPDATE executions SET result = ? WHERE key = ? AND result IS NULL", (dumps(result), key))

    def _forget(self, key: str) -> None:
        with self._transaction() as database:
            database.execute("DELETE FROM executions WHERE key = ? AND result IS NULL", (key,))

    # --- one at a time

    def _lock_file(self, key: str) -> Path:
        if (str(self._path), key) in _turns.get():
            raise RuntimeError("An operation executes itself with the same arguments, and would wait for itself.")
        return self._locks / key

    @contextlib.contextmanager
    def _turn(self, key: str, descriptor: int) -> Iterator[None]:
        """While it lasts nobody else has the lock file; the system lets go of it when this process dies."""
        token = _turns.set(_turns.get() | {(str(self._path), key)})
        try:
            yield
        finally:
            _turns.reset(token)
            with contextlib.suppress(OSError):
                (self._locks / key).unlink()
            os.close(descriptor)


class Claim:
    """What is known of a call in its turn."""

    def __init__(self, known: str | None, settle: Callable[[Any], None]) -> None:
        self.known = known
        """The first result as JSON; None when the call is to be made now."""
        self.has_happened = False
        self._settle = settle

    def settled(self, result: T) -> T:
        self.has_happened = True
        self._settle(result)
        return result


_turns: ContextVar[frozenset[tuple[str, str]]] = ContextVar("replay_recorder_turns", default=frozenset())


def _default_store() -> Path:
    """Never among the temporary files: what was forgotten there would happen twice."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "replay-recorder" / "idempotent.sqlite3"


def _wait(path: Path) -> int:
    while (descriptor := _lock(path)) is None:
        time.sleep(_LOOK_EVERY)
    return descriptor


async def _wait_async(path: Path) -> int:
    while (descriptor := _lock(path)) is None:
        await asyncio.sleep(_LOOK_EVERY)
    return descriptor


def _lock_at_once(path: Path) -> int:
    descriptor = _lock(path)
    if descriptor is None:
        raise BlockingIOError("This call runs at this moment; its outcome will be known when it ends.")
    return descriptor


def _lock(path: Path) -> int | None:
    """A descriptor that has the lock, or None while another one has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if try_lock(descriptor) and is_same_file(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None
