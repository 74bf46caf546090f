"""What redaction left behind: payloads and links of histories that nothing refers to any more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from django.db import connection

from sessions_app.core.spans.carried import apart, lacking
from sessions_app.core.spans.packing import Pieces
from sessions_app.mapping.history_nodes import read_nodes
from sessions_app.mapping.payloads import blob_store, keep
from sessions_app.mapping.references import stored_apart
from sessions_app.models import Project, Run, RunContent, SpanBatch, StoredPayload
from sessions_app.services.span_batches import open_batches

_CHUNK = 200


def waits(project: Project) -> bool:
    """Whether contents that were replaced are still there."""
    replaced = RunContent.objects.filter(project=project, released_at__isnull=False)
    return replaced.filter(run=None, followers=None, replays=None).exists()


def sweep(project: Project) -> int:
    """How many payloads went. Those that something else refers to stay."""
    doomed = {str(row) for row in StoredPayload.objects.filter(project=project, is_doomed=True).defer("data")}
    if not doomed:
        return 0
    needed = {digest for digest in _referred_to(project) if digest in doomed}
    keep(project.pk, needed)
    gone = [bytes.fromhex(digest) for digest in doomed - needed]
    with connection.cursor() as cursor:
        cursor.execute(_DELETE_NODES, {"project": project.pk, "messages": gone})
    StoredPayload.objects.filter(project=project, digest__in=gone, is_doomed=True).delete()
    for digest in gone:
        blob_store().delete(project.pk, digest.hex())
    return len(gone)


_DELETE_NODES = """
WITH RECURSIVE gone AS (
    SELECT digest FROM sessions_app_historynode WHERE project_id = %(project)s AND message = ANY(%(messages)s)
  UNION
    SELECT node.digest FROM gone JOIN sessions_app_historynode node ON node.parent = gone.digest
    WHERE node.project_id = %(project)s
)
DELETE FROM sessions_app_historynode WHERE project_id = %(project)s AND digest IN (SELECT digest FROM gone)
"""
"""With those that follow them, which nothing leads to either."""


def _referred_to(project: Project) -> Iterator[str]:
    runs = Run.objects.filter(project=project, source_digest__isnull=False)
    yield from (run.document for run in runs.only("source_digest").iterator(_CHUNK))
    for content in RunContent.objects.filter(project=project).iterator(_CHUNK):
        yield from stored_apart(content)
    batches = SpanBatch.objects.filter(trace__project=project).order_by("trace", "pk")
    for _, of_trace in groupby(batches.iterator(_CHUNK), key=lambda batch: batch.trace_id):
        yield from _of_spans(project, list(of_trace))


def _of_spans(project: Project, batches: list[SpanBatch]) -> Iterator[str]:
    opened = [apart(content) for _, content in open_batches(batches) if content is not None]
    carried = Pieces()
    for _, pieces in opened:
        carried.add(pieces)
    heads, digests = lacking([content for content, _ in opened], carried)
    yield from digests
    yield from (message for _, message in read_nodes(project.pk, heads).values())
