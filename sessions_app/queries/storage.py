"""What a project's recordings cost: what came, what is left when each thing is kept once, what that takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection

from sessions_app.core.packed_nodes import NumberedLink
from sessions_app.mapping.run_contents import read_histories
from sessions_app.models import Project, RunContent

AT_MOST = 500_000
"""Rows of a table that one query adds up; a project that holds more learns that it is more."""
LARGEST = 10
_AT_MOST_NODES = 10_000
_OF_HISTORIES = ("project", "base", "base_steps", "outline", "nodes", "first_node", "node_count")
_NODE_BYTES = 96
"""Three SHA-256 digests: of the link itself, the one before it, and its message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Amount:
    """So many things of so many bytes."""

    count: int
    size: int | None
    """None when it was not measured."""
    stored: int = 0
    """What they take where they lie: after compression, where that saves bytes."""
    is_cut: bool = False
    """There are more than were added up, so that all numbers are too small."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LargeRun:
    """One of the runs that brought most bytes."""

    pk: int
    run_id: str
    session_id: str
    started_at: datetime | None
    step_count: int
    size: int | None
    """As it was received; None for a document that is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Histories:
    """What the model was given in some runs, and what of it is stored."""

    requests: int
    references: int
    """Messages of all requests together; one that stands in forty requests counts forty times."""
    links: int
    """Links of chains that stand for all of these."""
    messages: int
    """Different messages that these links name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Storage:
    """The sums of one project; bytes everywhere. Row headers and indexes of the database are not in them."""

    documents: Amount
    spans: Amount
    payloads: Amount
    """Those that are stored apart, in the database, each once."""
    blobs: Amount
    """In the blob folder, each once."""
    batches: Amount
    """What spans say beside payloads."""
    runs: Amount
    recorded: int
    """Of the runs, those that were sent; the others are replays and forks."""
    steps: Amount
    """With their payloads that are not stored apart."""
    links: Amount
    """Of message histories, in runs and in spans."""
    largest: list[LargeRun]
    histories: Histories | None
    """Of the largest runs; None when they are too long to be walked for a page."""

    @property
    def kept(self) -> tuple[Amount, ...]:
        return self.payloads, self.blobs, self.batches, self.runs, self.steps, self.links

    @property
    def received_bytes(self) -> int:
        return (self.documents.size or 0) + (self.spans.size or 0)

    @property
    def stored_bytes(self) -> int:
        return sum(amount.stored for amount in self.kept)

    @property
    def is_cut(self) -> bool:
        return any(amount.is_cut for amount in (self.documents, self.spans, *self.kept))

    @property
    def is_empty(self) -> bool:
        return not (self.documents.count or self.spans.count or self.stored_bytes)

    @property
    def made(self) -> int:
        """Replays and forks."""
        return max(self.runs.count - self.recorded, 0)

    @property
    def parts(self) -> list[tuple[str, Amount, int]]:
        """What takes space, in words, with its share in percent; the largest first."""
        named = (
            ("Recordings as sent, and long values", self.payloads),
            ("Very long values, in files", self.blobs),
            ("Spans as received", self.batches),
            ("Runs, replays and forks", self.runs),
            ("Steps", self.steps),
            ("Message histories", self.links),
        )
        whole = self.stored_bytes or 1
        found = [(words, amount, 100 * amount.stored // whole) for words, amount in named if amount.count]
        return sorted(found, key=lambda part: -part[1].stored)

    @property
    def bytes_a_step(self) -> int | None:
        return None if self.is_cut or not self.steps.count else round(self.stored_bytes / self.steps.count)


def storage_of(project: Project) -> Storage:
    """As many queries whatever is stored; each reads `AT_MOST` rows of a table at most."""
    payloads, blobs = _payloads(project)
    contents, links = _contents(project)
    documents, recorded = _documents(project)
    largest = _largest(project)
    return Storage(
        documents=documents,
        recorded=recorded,
        spans=_spans(project),
        payloads=payloads,
        blobs=blobs,
        batches=_batches(project),
        runs=contents,
        steps=_steps(project),
        links=links,
        largest=largest,
        histories=_histories([run.pk for run in largest]),
    )


# --- what was received -------------------------------------------------------------------------

_RECEIVED = """
SELECT run.*, trace.id IS NULL AND run.origin = 'recorded' AS is_document,
    CASE WHEN trace.id IS NOT NULL THEN trace.said_bytes + (
        SELECT coalesce(sum(said_bytes), 0) FROM sessions_app_trace other WHERE other.joined_id = trace.id
    ) ELSE (
        SELECT size FROM sessions_app_storedpayload payload
        WHERE payload.project_id = run.project_id AND payload.digest = run.source_digest
    ) END AS size
FROM (
    SELECT id, project_id, session_id, run_id, origin, source_digest, step_count, started_at
    FROM sessions_app_run WHERE project_id = %(project)s LIMIT %(most)s
) run
LEFT JOIN sessions_app_trace trace ON trace.run_id = run.id
"""
"""A join with payloads would read all of them, where most runs came as spans."""
_RUNS = f"""
SELECT count(*), count(*) FILTER (WHERE origin = 'recorded'),
    count(*) FILTER (WHERE is_document), sum(size) FILTER (WHERE is_document)
FROM ({_RECEIVED}) received
"""
_LARGEST = f"""
SELECT received.id, run_id, session.session_id, received.started_at, step_count, size
FROM ({_RECEIVED}) received JOIN sessions_app_session session ON session.id = received.session_id
WHERE origin = 'recorded' ORDER BY size DESC NULLS LAST, received.id LIMIT %(largest)s
"""
_SPANS = """
SELECT count(*), sum(span_count), sum(said_bytes)
FROM (SELECT span_count, said_bytes FROM sessions_app_trace WHERE project_id = %(project)s LIMIT %(most)s) trace
"""


def _documents(project: Project) -> tuple[Amount, int]:
    """With the number of runs that were recorded, in whatever way they came."""
    runs, recorded, documents, size = _row(_RUNS, project)
    return Amount(count=documents, size=int(size or 0), is_cut=runs >= AT_MOST), recorded


def _largest(project: Project) -> list[LargeRun]:
    names = ("pk", "run_id", "session_id", "started_at", "step_count", "size")
    return [LargeRun(**dict(zip(names, row, strict=True))) for row in _rows(_LARGEST, project, largest=LARGEST)]


def _spans(project: Project) -> Amount:
    traces, spans, said = _row(_SPANS, project)
    return Amount(count=spans or 0, size=int(said or 0), is_cut=traces >= AT_MOST)


# --- what is kept ------------------------------------------------------------------------------

_PAYLOADS = """
SELECT in_folder, count(*), sum(size), sum(stored_size)
FROM (
    SELECT data IS NULL AS in_folder, size, stored_size
    FROM sessions_app_storedpayload WHERE project_id = %(project)s LIMIT %(most)s
) payload
GROUP BY 1
"""
_BATCHES = """
SELECT count(*), sum(bytes) FROM (
    SELECT octet_length(batch.content) AS bytes FROM sessions_app_spanbatch batch
    JOIN sessions_app_trace trace ON trace.id = batch.trace_id
    WHERE trace.project_id = %(project)s LIMIT %(most)s
) batch
"""
_STEPS = """
SELECT count(*), coalesce(sum(steps), 0), coalesce(sum(outline), 0), (
    SELECT coalesce(sum(bytes), 0) FROM (
        SELECT octet_length(block.data) AS bytes FROM sessions_app_contentblock block
        JOIN sessions_app_runcontent content ON content.id = block.content_id
        WHERE content.project_id = %(project)s LIMIT %(most)s
    ) block
) FROM (
    SELECT step_count AS steps, octet_length(outline) AS outline
    FROM sessions_app_runcontent WHERE project_id = %(project)s LIMIT %(most)s
) content
"""
_CONTENTS = """
SELECT (SELECT count(*) FROM (SELECT FROM sessions_app_historynode WHERE project_id = %(project)s LIMIT %(most)s) node),
       count(*), coalesce(sum(node_count), 0), coalesce(sum(nodes), 0), coalesce(sum(header), 0)
FROM (
    SELECT node_count, octet_length(nodes) AS nodes, octet_length(header) AS header
    FROM sessions_app_runcontent WHERE project_id = %(project)s LIMIT %(most)s
) content
"""


def _payloads(project: Project) -> tuple[Amount, Amount]:
    """In the database, in the blob folder."""
    found = {in_folder: facts for in_folder, *facts in _rows(_PAYLOADS, project)}
    is_cut = sum(count for count, _, _ in found.values()) >= AT_MOST
    rows = [found.get(in_folder, (0, 0, 0)) for in_folder in (False, True)]
    first, second = (Amount(count=n, size=int(size), stored=int(took), is_cut=is_cut) for n, size, took in rows)
    return first, second


def _batches(project: Project) -> Amount:
    count, stored = _row(_BATCHES, project)
    return Amount(count=count, size=None, stored=int(stored or 0), is_cut=count >= AT_MOST)


def _steps(project: Project) -> Amount:
    contents, count, outlines, blocks = _row(_STEPS, project)
    return Amount(count=count, size=None, stored=int(outlines + blocks), is_cut=contents >= AT_MOST)


def _contents(project: Project) -> tuple[Amount, Amount]:
    """What is recorded of runs beside their steps, and the links of histories."""
    rows, contents, in_contents, nodes, headers = _row(_CONTENTS, project)
    count, is_cut = rows + in_contents, max(rows, contents) >= AT_MOST
    return (
        Amount(count=contents, size=None, stored=int(headers), is_cut=contents >= AT_MOST),
        Amount(count=count, size=count * _NODE_BYTES, stored=rows * _NODE_BYTES + nodes, is_cut=is_cut),
    )


# --- what histories stand for ------------------------------------------------------------------


def _histories(keys: list[int]) -> Histories | None:
    contents = list(RunContent.objects.filter(run__in=keys).only(*_OF_HISTORIES))
    if sum(content.next_node for content in contents) >= _AT_MOST_NODES:
        return None
    requests = [[step.input_node for step in content.own_steps if step.input_node is not None] for content in contents]
    if sum(map(len, requests)) >= _AT_MOST_NODES:
        return None
    links = read_histories(contents, requests)
    lengths = list(map(_lengths, links))
    return Histories(
        requests=sum(map(len, requests)),
        references=sum(known.get(head, 0) for heads, known in zip(requests, lengths, strict=True) for head in heads),
        links=sum(map(len, links)),
        messages=sum(len({message for _, message in each.values()}) for each in links),
    )


def _lengths(links: Mapping[int, NumberedLink]) -> dict[int, int]:
    """Messages from the beginning of its chain to each link, which stands behind the one it follows."""
    lengths: dict[int, int] = {}
    for number, (parent, _) in links.items():
        lengths[number] = 1 + (0 if parent is None else lengths.get(parent, 0))
    return lengths


def _row(query: str, project: Project) -> tuple[Any, ...]:
    return _rows(query, project)[0]


def _rows(query: str, project: Project, **more: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(query, {"project": project.pk, "most": AT_MOST, **more})
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found
