"""What an instance of the product costs: CPU and memory of its processes, bytes on disk; what the machine can do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no stubs
import psycopg

from tests.instances import Instance

_EVERY = 0.5
"""Seconds from one look at memory to the next."""


@dataclass
class Costs:
    """Of all processes that `up` started, PostgreSQL and Redis among them."""

    cpu_seconds: float = 0.0
    memory_at_rest: int = 0
    """Bytes; pages that processes share count once (PSS)."""
    memory_peak: int = 0
    _done: threading.Event = field(default_factory=threading.Event)


@contextmanager
def costs_of(instance: Instance) -> Iterator[Costs]:
    """What is used from here to the end of the block."""
    found = Costs(cpu_seconds=-_cpu(instance), memory_at_rest=memory(instance))
    watching = threading.Thread(target=_watch, args=(instance, found), daemon=True)
    watching.start()
    try:
        yield found
    finally:
        found._done.set()
        watching.join()
        found.cpu_seconds += _cpu(instance)


def _watch(instance: Instance, found: Costs) -> None:
    while not found._done.wait(_EVERY):
        found.memory_peak = max(found.memory_peak, memory(instance))


def processes(instance: Instance) -> list[psutil.Process]:
    top = psutil.Process(instance.process.pid)
    return [top, *top.children(recursive=True)]


def memory(instance: Instance) -> int:
    return int(sum(_of_each(instance, lambda process: float(process.memory_full_info().pss))))


def _cpu(instance: Instance) -> float:
    return sum(_of_each(instance, _cpu_of))


def _cpu_of(process: psutil.Process) -> float:
    return float(sum(process.cpu_times()[:4]))


def _of_each(instance: Instance, read: Callable[[psutil.Process], float]) -> Iterator[float]:
    """Processes may end while they are looked at."""
    for process in processes(instance):
        try:
            yield read(process)
        except psutil.Error:
            continue


# --- the database ------------------------------------------------------------------------------


def database(instance: Instance) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(instance.home.environment()["DATABASE_URL"], autocommit=True)


_SIZE = """
SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
WHERE relkind = 'r' AND relname LIKE 'sessions\\_app\\_%%'
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disk:
    """Bytes."""

    tables: int
    """With indexes and what lies outside the rows."""
    log: int
    """Written ahead, since the beginning of the database."""


def disk(instance: Instance) -> Disk:
    with database(instance) as connection:
        tables = connection.execute(_SIZE).fetchone()
        log = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::bigint").fetchone()
    assert tables is not None
    assert log is not None
    return Disk(tables=tables[0], log=log[0])


_COLUMNS = 14
_A_COMMIT = 200
_COMMITS = 150


def raw_copy_rows_per_second(instance: Instance) -> float:
    """What this machine's PostgreSQL does at most: plain rows of 14 columns by COPY, 200 a commit."""
    columns = ", ".join(f"c{n} {'bigint' if n % 2 else 'text'}" for n in range(_COLUMNS))
    row = [n if n % 2 else f"value {n} of a row" for n in range(_COLUMNS)]
    with database(instance) as connection:
        connection.execute(f"CREATE TABLE raw_copy ({columns})")
        began = time.perf_counter()
        for _ in range(_COMMITS):
            with connection.transaction(), connection.cursor().copy("COPY raw_copy FROM STDIN") as copy:
                for _ in range(_A_COMMIT):
                    copy.write_row(row)
        seconds = time.perf_counter() - began
        connection.execute("DROP TABLE raw_copy")
    return _COMMITS * _A_COMMIT / seconds
