"""Reading and writing the nodes of hash chains."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from sessions_app.core.history import Link
from sessions_app.mapping.binary_rows import binary_cursor

_CHAIN = """
WITH RECURSIVE chain AS (
    SELECT digest, parent, message FROM sessions_app_historynode
    WHERE project_id = %(project)s AND digest = ANY(%(heads)b)
  UNION
    SELECT node.digest, node.parent, node.message FROM chain CROSS JOIN LATERAL (
        SELECT digest, parent, message FROM sessions_app_historynode
        WHERE project_id = %(project)s AND digest = chain.parent LIMIT 1
    ) node
)
SELECT digest, parent, message FROM chain
"""
"""UNION and not UNION ALL: each node once, however many heads lead to it. The limit keeps PostgreSQL to the index: with
many heads it would read the whole table."""


_ADD = """
INSERT INTO sessions_app_historynode (project_id, digest, parent, message)
SELECT %(project)s, * FROM unnest(%(digests)b::bytea[], %(parents)b::bytea[], %(messages)b::bytea[])
ON CONFLICT DO NOTHING
"""


def write_nodes(project_id: int, nodes: Mapping[str, Link]) -> None:
    """Store those that are not stored yet; in the order of digests, so that two writers never wait in a circle."""
    digests = sorted(nodes)
    links = [nodes[digest] for digest in digests]
    rows: dict[str, Any] = {
        "project": project_id,
        "digests": [bytes.fromhex(digest) for digest in digests],
        "parents": [None if parent is None else bytes.fromhex(parent) for parent, _ in links],
        "messages": [bytes.fromhex(message) for _, message in links],
    }
    if digests:
        with binary_cursor() as cursor:
            cursor.execute(_ADD, rows)


def read_nodes(project_id: int, heads: Iterable[str | None]) -> dict[str, Link]:
    """All nodes that these lead to, by digest; one query."""
    wanted = [bytes.fromhex(head) for head in heads if head]
    if not wanted:
        return {}
    with binary_cursor() as cursor:
        cursor.execute(_CHAIN, {"project": project_id, "heads": wanted})
        return {
            bytes(digest).hex(): (None if parent is None else bytes(parent).hex(), bytes(message).hex())
            for digest, parent, message in cursor.fetchall()
        }
