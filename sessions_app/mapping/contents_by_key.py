"""Contents by what is looked for in them."""

from __future__ import annotations

from collections.abc import Iterable

from sessions_app.mapping.binary_rows import binary_cursor

NEWEST = 200
"""Contents that a search gives at most: whoever asks looks at the runs that have them."""
_FIND = """
WITH found AS MATERIALIZED (
    SELECT id FROM sessions_app_runcontent WHERE keys && %(keys)b::bigint[] AND project_id = ANY(%(projects)b::bigint[])
)
SELECT id FROM found ORDER BY id DESC LIMIT %(most)s
"""
"""How rare a key is PostgreSQL does not know. Were it told the order and the limit with the question, it would walk
through contents in that order until it has enough, which for a key that nobody has is all of them."""


def contents_by_key(projects: Iterable[int], keys: Iterable[int]) -> list[int]:
    """Primary keys of the newest contents that have one of these (mapping/content_keys.py), the newest first."""
    with binary_cursor() as cursor:
        cursor.execute(_FIND, {"keys": list(keys), "projects": list(projects), "most": NEWEST})
        return [key for (key,) in cursor.fetchall()]
