"""Writing a run into its rows. Texts are redacted already; the caller says which document the run was read from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Value
from django.db.models.functions import Greatest, Least
from django.utils import timezone

from sessions_app import models
from sessions_app.core.errors import RunConflict
from sessions_app.core.formats.native import run_digest
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run
from sessions_app.mapping import payloads
from sessions_app.mapping.history_nodes import write_nodes
from sessions_app.mapping.rows import clean, digest_bytes, run_columns, step_row, storable
from sessions_app.mapping.stored import Collector
from sessions_app.services.judgement import judgement_columns

_BATCH = 500
_SEARCH_CHARACTERS = 100_000
"""How much of a run's texts the full-text index reads; a tsvector holds 1 MB at most."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """What became of a document."""

    run: models.Run
    created: bool
    """False when the same run was stored before."""


def store_run(project: models.Project, run: Run, *, source: bytes) -> Ingested:
    """Store a run; `source` is the document it was read from. Raises `RunConflict` for another one of this id."""
    digest = run_digest(run)
    with transaction.atomic():
        lock_name(project, run.run_id)
        stored = _stored(project, run)
        if stored is not None and bytes(stored.content_digest).hex() == digest:
            return Ingested(run=stored, created=_adopt(stored))
        if stored is not None and stored.status != "running":
            raise RunConflict(run.run_id)
        if stored is not None:
            stored.delete()
        return Ingested(run=_insert(project, run, digest, source), created=True)


def store_assembled(project: models.Project, run: Run, *, source: bytes) -> models.Run:
    """Store a run that was put together from what arrived so far.

    The same run made of less is written over and keeps what people and replays said of it. Raises `RunConflict` when
    somebody sent a whole recording under this id.
    """
    digest = run_digest(run)
    with transaction.atomic():
        lock_name(project, run.run_id)
        stored = _stored(project, run)
        if stored is None:
            return _insert(project, run, digest, source)
        if stored.source_format != run.source_format:
            raise RunConflict(run.run_id)
        if bytes(stored.content_digest).hex() != digest:
            _write_over(stored, project, run, digest, source)
        return stored


def _stored(project: models.Project, run: Run) -> models.Run | None:
    return models.Run.objects.filter(project=project, run_id=run.run_id).first()


def _adopt(run: models.Run) -> bool:
    """Whether this is the first time that somebody sends the run: an example was there before anybody."""
    was_example, run.is_example = run.is_example, False
    if was_example:
        run.save(update_fields=["is_example"])
    return was_example


def lock_name(project: models.Project, name: str) -> None:
    """Two posts of one run take turns, to the end of the transaction; others do not wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, %s))", [name, project.pk])


def _insert(project: models.Project, run: Run, digest: str, source: bytes) -> models.Run:
    columns, steps = _written(project, run, digest, source)
    row = models.Run.objects.create(project=project, run_id=run.run_id, **columns)
    _write_steps(row, steps)
    _index_text(row, run)
    return row


def _write_over(row: models.Run, project: models.Project, run: Run, digest: str, source: bytes) -> None:
    columns, steps = _written(project, run, digest, source)
    before = row.session
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()
    row.steps.all().delete()
    _write_steps(row, steps)
    _index_text(row, run)
    if before.pk != row.session.pk and not before.runs.exists():
        before.delete()


def _written(
    project: models.Project, run: Run, digest: str, source: bytes
) -> tuple[dict[str, object], list[models.Step]]:
    """The columns of the run's row and the rows of its steps, after what they refer to was written."""
    collector = Collector()
    received = Payload(content=source)
    collector.payload(received)
    columns = storable({**run_columns(run, collector), **judgement_columns(run)})
    steps = [step_row(step, collector) for step in run.steps]
    payloads.write_many(project.pk, {d: p.content for d, p in collector.payloads.items()})
    write_nodes(project.pk, collector.links())
    facts = {
        "session": _session(project, run),
        "content_digest": digest_bytes(digest),
        "source_digest": digest_bytes(received.digest),
    }
    return {**columns, **facts}, steps


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
