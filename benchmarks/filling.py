"""Fills an instance with many runs: some are sent, the others copied from them inside the database."""

from __future__ import annotations

from typing import Any

import psycopg

from benchmarks.measured import database
from benchmarks.posting import post_all, wait_for_runs
from benchmarks.traces import Shape, requests
from tests.instances import Instance

SPANS_A_SESSION = 20
_COPY_SESSIONS = """
INSERT INTO sessions_app_session ({columns})
SELECT {values} FROM sessions_app_session old WHERE id = ANY(%(sessions)s)
"""
_COPY_CONTENTS = """
INSERT INTO sessions_app_runcontent ({columns})
SELECT {values} FROM sessions_app_runcontent old
JOIN sessions_app_run r ON r.content_id = old.id
WHERE r.session_id = ANY(%(sessions)s)
"""
_COPY_RUNS = """
INSERT INTO sessions_app_run ({columns})
SELECT {values} FROM sessions_app_run old
JOIN sessions_app_runcontent content ON content.digest = sha256(old.content_digest || %(mark)s::text::bytea)
JOIN sessions_app_session new ON new.project_id = old.project_id
 AND new.session_id = (SELECT session_id FROM sessions_app_session s WHERE s.id = old.session_id) || %(mark)s
WHERE old.session_id = ANY(%(sessions)s)
"""
_COPY_BLOCKS = """
INSERT INTO {table} ({columns})
SELECT {values} FROM {table} old
JOIN sessions_app_run r ON r.content_id = old.content_id
JOIN sessions_app_run new ON new.project_id = r.project_id AND new.run_id = r.run_id || %(mark)s
WHERE r.session_id = ANY(%(sessions)s)
"""
_SENT = "SELECT session_id FROM sessions_app_run WHERE source_format = 'otlp'"


def fill(instance: Instance, spans: int, *, sent: int) -> None:
    """As if so many spans had been stored in sessions of ten steps; `sent` sessions are sent, of other words each."""
    post_all(instance, requests("fill", sent, Shape(steps=10)), connections=2)
    wait_for_runs(instance, sent)
    with database(instance) as connection:
        sessions = [key for (key,) in connection.execute(_SENT)]
        for number in range(1, spans // (sent * SPANS_A_SESSION)):
            _copy(connection, sessions, f"-{number}")
        connection.execute("VACUUM ANALYZE")


def _copy(connection: psycopg.Connection[tuple[Any, ...]], sessions: list[int], mark: str) -> None:
    """Each copy is a little older than the one before."""
    facts = {"sessions": sessions, "mark": mark, "ago": f"{mark[1:]} hours"}
    changed = {
        "sessions_app_session": {
            "session_id": "old.session_id || %(mark)s",
            "started_at": "old.started_at - %(ago)s::interval",
            "last_at": "old.last_at - %(ago)s::interval",
        },
        "sessions_app_runcontent": {"digest": "sha256(old.digest || %(mark)s::text::bytea)"},
        "sessions_app_run": {
            "content_id": "content.id",
            "run_id": "old.run_id || %(mark)s",
            "session_id": "new.id",
            "started_at": "old.started_at - %(ago)s::interval",
        },
        "sessions_app_contentblock": {"content_id": "new.content_id"},
    }
    statements = (_COPY_SESSIONS, _COPY_CONTENTS, _COPY_RUNS, _COPY_BLOCKS)
    for statement, (table, values) in zip(statements, changed.items(), strict=True):
        names = _columns(connection, table)
        told = ", ".join(values.get(name, f'old."{name}"') for name in names)
        columns = ", ".join(f'"{name}"' for name in names)
        connection.execute(statement.format(table=table, columns=columns, values=told), facts)


def _columns(connection: psycopg.Connection[tuple[Any, ...]], table: str) -> list[str]:
    asked = "SELECT column_name FROM information_schema.columns WHERE table_name = %s AND column_name <> 'id'"
    return [name for (name,) in connection.execute(asked, [table])]
