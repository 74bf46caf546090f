"""Taking in a recording: check, redact, parse, judge, store. Answered only after commit.

Redaction is the first thing that happens to a document that is JSON at all, so everything stored is
derived from redacted bytes. When redaction fails, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from sessions_app import models
from sessions_app.core.errors import RecordError, RecordTooLarge, RunConflict
from sessions_app.core.formats.detect import parser_of
from sessions_app.core.formats.native import run_digest
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonValue, Payload, compact_json
from sessions_app.core.redaction import Redactor
from sessions_app.core.run import Run
from sessions_app.mapping import payloads
from sessions_app.mapping.rows import clean, digest_bytes, run_columns, step_row, storable
from sessions_app.mapping.stored import Collector
from sessions_app.services.judgement import judgement_columns

_BATCH = 500
_MAX_STATE_BYTES = 64 * 1024 * 1024
_SEARCH_CHARACTERS = 100_000
"""How much of a run's texts the full-text index reads; a tsvector holds 1 MB at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """What became of a document."""

    run: models.Run
    created: bool
    """False when the same run was stored before."""


def limits() -> Limits:
    return Limits(max_bytes=settings.REPLAY_MAX_INFLATED_BYTES)


def ingest_document(project: models.Project, content: bytes) -> Ingested:
    """Store one recording in any accepted format.

    Raises `RecordError` naming the field, `RunConflict` when another run has this id, and
    `RedactionFailed`; nothing is stored then.
    """
    return ingest_checked(project, content, load_strict(content, limits()))


def ingest_checked(project: models.Project, content: bytes, value: JsonValue) -> Ingested:
    """The same for a document that `load_strict` has read already: the check is a whole parse."""
    run, source = _read(project, content, value)
    return store_run(project, run, source=source)


def ingest_batch(project: models.Project, documents: Sequence[bytes]) -> list[Ingested]:
    """Store several recordings in one transaction: all of them or none.

    Errors are those of `ingest_document`, with `runs[3].` before the field.
    """
    read = [_read_nth(project, document, position) for position, document in enumerate(documents)]
    stored: dict[int, Ingested] = {}
    with transaction.atomic():
        # In the order of their ids, so that two batches never wait for each other.
        for position in sorted(range(len(read)), key=lambda each: read[each][0].run_id):
            run, source = read[position]
            stored[position] = store_run(project, run, source=source)
    return [stored[position] for position in range(len(read))]


def _read_nth(project: models.Project, document: bytes, position: int) -> tuple[Run, bytes]:
    try:
        return _read(project, document, load_strict(document, limits()))
    except RecordError as error:
        place = f"runs[{position}]"
        field = f"{place}.{error.field}" if error.field else place
        raise type(error)(f"{place}: {error.message}", field=field) from None


def _read(project: models.Project, content: bytes, value: JsonValue) -> tuple[Run, bytes]:
    """The run, and the redacted document that it was read from."""
    redacted = Redactor(bytes(project.redaction_secret)).redact(content).content
    run = parser_of(value)(redacted, limits())
    _check_growth(run)
    return run, redacted


def _check_growth(run: Run) -> None:
    """JSON Patch can copy a state into itself: forty such lines would give a page of a terabyte."""
    changes = [step.state for step in run.steps if step.state is not None]
    operations = [operation for change in changes for operation in (*change.before, *change.after)]
    copies = sum(operation["op"] == "copy" for operation in operations)
    if copies == 0:
        return
    start = run.initial_state.size if run.initial_state else 0
    if (start + len(compact_json(operations))) << min(copies, 64) > _MAX_STATE_BYTES:
        raise RecordTooLarge("The state could grow too large by copy operations; write them as add.", field="steps")


def store_run(project: models.Project, run: Run, *, source: bytes) -> Ingested:
    """Store a run whose texts are redacted already; `source` is the document it was read from."""
    digest = run_digest(run)
    with transaction.atomic():
        _lock(project, run.run_id)
        stored = models.Run.objects.filter(project=project, run_id=run.run_id).first()
        if stored is not None and bytes(stored.content_digest).hex() == digest:
            return Ingested(run=stored, created=_adopt(stored))
        if stored is not None and stored.status != "running":
            raise RunConflict(run.run_id)
        if stored is not None:
            stored.delete()
        return Ingested(run=_insert(project, run, digest, source), created=True)


def _adopt(run: models.Run) -> bool:
    """Whether this is the first time that somebody sends the run: an example was there before anybody."""
    was_example, run.is_example = run.is_example, False
    if was_example:
        run.save(update_fields=["is_example"])
    return was_example


def _lock(project: models.Project, run_id: str) -> None:
    """Two posts of one run id take turns; others do not wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [run_id, project.pk])


def _insert(project: models.Project, run: Run, digest: str, source: bytes) -> models.Run:
    collector = Collector()
    received = Payload(content=source)
    collector.payload(received)
    columns = storable({**run_columns(run, collector), **judgement_columns(run)})
    steps = [step_row(step, collector) for step in run.steps]
    payloads.write_many(project.pk, {d: p.content for d, p in collector.payloads.items()})
    _write_nodes(project, collector)
    row = models.Run.objects.create(
        project=project,
        session=_session(project, run),
        run_id=run.run_id,
        content_digest=digest_bytes(digest),
        source_digest=digest_bytes(received.digest),
        **columns,
    )
    _write_steps(row, steps)
    _index_text(row, run)
    return row


def _session(project: models.Project, run: Run) -> models.Session:
    at = run.started_at or timezone.now()
    session, created = models.Session.objects.get_or_create(
        project=project, session_id=run.session_id, defaults={"started_at": at, "last_at": at}
    )
    if not created and run.origin == "recorded":
        _widen(session, at)
    return session


def _widen(session: models.Session, at: datetime) -> None:
    """In the database, for two runs of one session may arrive at once."""
    models.Session.objects.filter(pk=session.pk).update(
        started_at=Least("started_at", Value(at)), last_at=Greatest("last_at", Value(at))
    )


def _write_nodes(project: models.Project, collector: Collector) -> None:
    rows = [
        models.HistoryNode(
            project=project,
            digest=digest_bytes(node.digest),
            parent=digest_bytes(node.parent.digest if node.parent else None),
            message=digest_bytes(node.message.digest),
        )
        for node in sorted(collector.nodes.values(), key=lambda node: node.digest)
    ]
    models.HistoryNode.objects.bulk_create(rows, ignore_conflicts=True, batch_size=_BATCH)


def _write_steps(row: models.Run, steps: list[models.Step]) -> None:
    for step in steps:
        step.run = row
    models.Step.objects.bulk_create(steps, batch_size=_BATCH)


def _index_text(row: models.Run, run: Run) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE sessions_app_run SET search = to_tsvector('simple', %s) WHERE id = %s",
            [_searchable(run), row.pk],
        )


def _searchable(run: Run) -> str:
    """Input, output, errors and ids: what a person types into the query bar."""
    ids = [run.run_id, run.session_id, run.user_id, run.tenant_id, run.code.commit]
    errors = [run.error, *(step.error for step in run.steps)]
    texts = [p.as_text() for p in (run.input, run.output) if p is not None]
    words = [f"{e.type or ''} {e.message or ''}" for e in errors if e is not None]
    return clean("\n".join([text for text in ids if text] + texts + words)[:_SEARCH_CHARACTERS])
