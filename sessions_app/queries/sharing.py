"""Links to a run, and what belongs to the run that they show."""

from __future__ import annotations

from typing import Any

from django.db import connection

from sessions_app.mapping.references import payload_references
from sessions_app.models import Run, ShareLink

LINKS = 50


def links_of(run: Run) -> list[ShareLink]:
    """Those made last, with who made them; revoked and expired ones stay listed."""
    links = ShareLink.objects.filter(run=run).select_related("created_by")
    return list(links.order_by("-pk")[:LINKS])


def run_holds(run: Run, digest: str) -> bool:
    """Whether the payload is part of the run: of its header, of a step, or a message that a step saw."""
    return digest in payload_references(bytes(run.header)) or _in_a_step(run, digest) or _in_a_history(run, digest)


def _in_a_step(run: Run, digest: str) -> bool:
    details = run.steps.values_list("detail", flat=True)
    return any(digest in payload_references(bytes(detail)) for detail in details)


_MESSAGE = """
WITH RECURSIVE heads AS (
    SELECT unnest(ARRAY[prior_node, final_node]) AS digest FROM sessions_app_run WHERE id = %(run)s
  UNION
    SELECT unnest(%(heads)s::bytea[])
), chain AS (
    SELECT node.digest, node.parent, node.message FROM sessions_app_historynode node
    JOIN heads ON node.project_id = %(project)s AND node.digest = heads.digest
  UNION
    SELECT node.digest, node.parent, node.message FROM sessions_app_historynode node
    JOIN chain ON node.project_id = %(project)s AND node.digest = chain.parent
)
SELECT EXISTS (SELECT 1 FROM chain WHERE message = %(message)s)
"""


def _in_a_history(run: Run, digest: str) -> bool:
    ends = run.steps.filter(kind="model").values_list("input_node", "output_node")
    heads = {bytes(node) for pair in ends for node in pair if node is not None}
    asked: dict[str, Any] = {
        "run": run.pk,
        "project": run.project_id,
        "heads": list(heads),
        "message": bytes.fromhex(digest),
    }
    with connection.cursor() as cursor:
        cursor.execute(_MESSAGE, asked)
        return bool(cursor.fetchone()[0])
