"""Proving the store whole: every digest computed again, every reference followed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from django.db import connection, transaction
from django.db.models import QuerySet
from zstandard import ZstdError

from sessions_app.core.errors import ReplayProductError, StepMissing
from sessions_app.core.formats.native import run_digest
from sessions_app.core.history import node_digest
from sessions_app.core.payload import sha256_hex
from sessions_app.core.spans.carried import apart, lacking
from sessions_app.core.spans.packing import Pieces
from sessions_app.mapping.content_keys import holding_content, keys_of
from sessions_app.mapping.load import load_content
from sessions_app.mapping.payloads import blob_store, read_many
from sessions_app.mapping.pieces import read_pieces, step_texts
from sessions_app.mapping.references import payload_references
from sessions_app.mapping.run_contents import own_links
from sessions_app.models import HistoryNode, Project, Run, RunContent, SpanBatch, StoredPayload
from sessions_app.services.span_batches import open_batches

_CHUNK = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Orphans:
    """Files that no row speaks of: what a crash between file and commit leaves behind."""

    blobs: tuple[tuple[int, str], ...]
    """Project id and digest."""
    unfinished: tuple[Path, ...]
    """Temporary files of writes that never ended."""

    @property
    def count(self) -> int:
        return len(self.blobs) + len(self.unfinished)


def problems() -> Iterator[str]:
    """What is wrong, one sentence each; nothing when the store is whole. What is written meanwhile is not seen."""
    with _snapshot():
        yield from _problems()


@contextmanager
def _snapshot() -> Iterator[None]:
    """All that is read is of one moment; inside a transaction of the caller's, what that sees."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _problems() -> Iterator[str]:
    for project in Project.objects.order_by("pk"):
        known = set(_digests(StoredPayload.objects.filter(project=project)))
        yield from _payload_problems(project)
        yield from _node_problems(project, known)
        yield from _batch_problems(project, known)
        runs = Run.objects.filter(project=project, source_digest__isnull=False)
        for run in runs.only("project", "run_id", "source_digest").iterator(_CHUNK):
            if run.document not in known:
                yield f"run {project.pk}/{run.run_id}: the document as received is not stored."
        contents = RunContent.objects.filter(project=project).select_related("run").order_by("pk")
        for content in contents.iterator(_CHUNK):
            yield from _content_problems(content, known)


def _payload_problems(project: Project) -> Iterator[str]:
    rows = StoredPayload.objects.filter(project=project).defer("data").order_by("digest")
    every = rows.iterator(_CHUNK)
    while some := list(islice(every, _CHUNK)):
        contents = read_many(project.pk, map(str, some))
        found = ((row, _problem(row, contents.get(str(row)))) for row in some)
        yield from (f"{project}: payload {row} {problem}." for row, problem in found if problem)


def _problem(row: StoredPayload, data: bytes | None) -> str | None:
    if data is None:
        return _why_unreadable(row)
    return None if sha256_hex(data) == str(row) and len(data) == row.size else "does not match its digest"


def _why_unreadable(row: StoredPayload) -> str:
    if row.data is None and blob_store().read(row.project_id, str(row)) is None:
        return "is missing from the blob folder"
    return "cannot be decompressed"


def _node_problems(project: Project, payloads: set[str]) -> Iterator[str]:
    nodes = HistoryNode.objects.filter(project=project)
    known = set(_digests(nodes))
    for node in nodes.order_by("digest").iterator(_CHUNK):
        parent = bytes(node.parent).hex() if node.parent is not None else None
        message = bytes(node.message).hex()
        if node_digest(parent, message) != str(node):
            yield f"{project}: history node {node} does not match its digest."
        if parent is not None and parent not in known:
            yield f"{project}: history node {node} follows {parent}, which is not stored."
        if message not in payloads:
            yield f"{project}: history node {node} adds message {message}, which is not stored."


def _batch_problems(project: Project, payloads: set[str]) -> Iterator[str]:
    nodes = set(_digests(HistoryNode.objects.filter(project=project)))
    batches = SpanBatch.objects.filter(trace__project=project).order_by("trace", "pk")
    for _, of_trace in groupby(batches.iterator(_CHUNK), key=lambda batch: batch.trace_id):
        yield from _trace_problems(project, list(of_trace), nodes, payloads)


def _trace_problems(project: Project, batches: list[SpanBatch], nodes: set[str], payloads: set[str]) -> Iterator[str]:
    """Of one trace: a batch names pieces that others of it carry."""
    opened = [(batch, *_apart(content)) for batch, content in open_batches(batches)]
    every = Pieces()
    for _, _, carried in opened:
        every.add(carried)
    for batch, data, carried in opened:
        if sha256_hex(data) != str(batch):
            yield f"{project}: spans {batch} do not match their digest."
            continue
        heads, digests = lacking([data], carried)
        for digest in sorted(heads - every.nodes.keys() - nodes | digests - every.payloads.keys() - payloads):
            yield f"{project}: spans {batch} refer to {digest}, which is not stored."


def _apart(content: bytes | None) -> tuple[bytes, Pieces]:
    try:
        return apart(content or b"")
    except (ValueError, LookupError):
        return b"", Pieces()


def _content_problems(content: RunContent, payloads: set[str]) -> Iterator[str]:
    name = _name_of(content)
    try:
        texts = step_texts(content, content.own_steps)
    except StepMissing as gone:
        yield f"run {name}: its steps cannot be read, from step {gone.index} on."
        return
    steps = ((f"step {step.index}", text) for step, text in zip(content.own_steps, texts, strict=True))
    stored = [("header", bytes(content.header)), *steps]
    missing = [
        f"run {name}: {place} refers to payload {digest}, which is not stored."
        for place, text in stored
        for digest in sorted(each for each in payload_references(text) if isinstance(each, str))
        if digest not in payloads
    ]
    yield from missing or _load_problems(content, name) or _column_problems(content, name)


def _name_of(content: RunContent) -> str:
    """One that its run does not have any more is needed by a fork or a replay."""
    run = getattr(content, "run", None)
    return f"{content.project_id}/{run.run_id if run else f'content {content.pk}'}"


def _load_problems(content: RunContent, name: str) -> list[str]:
    try:
        digest = run_digest(load_content(content))
    except (ReplayProductError, ZstdError) as error:
        return [f"run {name}: cannot be loaded ({type(error).__name__})."]
    return [] if digest == str(content) else [f"run {name}: does not match its digest."]


def _column_problems(content: RunContent, name: str) -> list[str]:
    """Of what it is found by, and of where what goes on from it begins to count."""
    steps, texts = content.own_steps, {step.text for step in content.own_steps}
    pieces = read_pieces(content, range(content.first_piece, content.next_piece + 1))
    base = content.base
    counted = {
        "step_count": len(steps),
        "change_count": sum(step.state_changes is not None for step in steps),
        "piece_count": len(pieces),
        "node_count": len(own_links(content)),
        "first_piece": base.next_piece if base else 0,
        "first_node": base.next_node if base else 0,
    }
    keys = keys_of(steps, [holding_content(piece) for number, piece in pieces.items() if number not in texts])
    wrong = [column for column, value in counted.items() if getattr(content, column) != value]
    wrong += ["keys"] if set(keys) - set(content.keys) else []
    return [f"run {name}: {column} does not match its content." for column in wrong]


_MEANWHILE = 3600
"""Seconds: a blob lies there for a moment before its row is committed."""


def find_orphans() -> Orphans:
    """Files of the last hour are not looked at."""
    folder, before = blob_store(), time.time() - _MEANWHILE
    blobs = [
        (project_id, digest)
        for project_id in folder.projects()
        for digest in sorted(folder.digests(project_id, written_before=before) - set(_digests(_in_folder(project_id))))
    ]
    return Orphans(blobs=tuple(blobs), unfinished=tuple(folder.leftovers(written_before=before)))


def remove(orphans: Orphans) -> None:
    folder = blob_store()
    for project_id, digest in orphans.blobs:
        folder.delete(project_id, digest)
    for file in orphans.unfinished:
        file.unlink(missing_ok=True)


def _in_folder(project_id: int) -> QuerySet[StoredPayload]:
    return StoredPayload.objects.filter(project_id=project_id, data=None)


def _digests(rows: QuerySet[StoredPayload] | QuerySet[HistoryNode]) -> Iterator[str]:
    return (bytes(digest).hex() for digest in rows.values_list("digest", flat=True).iterator())
