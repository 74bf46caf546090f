"""Writing a run into its rows. Texts are redacted already; the caller says which document the run was read from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.contrib.postgres.search import SearchVector
from django.db import transaction
from django.db.models import Case, CharField, F, Func, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Cast
from django.utils import timezone

from sessions_app import models
from sessions_app.core.errors import RunConflict, StoredBytesMissing
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import run_digest
from sessions_app.core.payload import Payload
from sessions_app.core.run import AgentCall, Run
from sessions_app.core.search.run_text import searched_text
from sessions_app.mapping import payloads
from sessions_app.mapping.bases import find_base, numbers_of
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.mapping.load import load_run
from sessions_app.mapping.pieces import step_texts
from sessions_app.mapping.rows import STRIP, clean, content_columns, digest_bytes, run_columns, step_rows, storable
from sessions_app.mapping.run_contents import write_content
from sessions_app.mapping.stored import Collector
from sessions_app.services.contents import release
from sessions_app.services.judgement import judgement_columns, rules, wrong_in_called
from sessions_app.services.tags import MOST

_TEXT = TextField()
_ID = CharField(max_length=512)


@dataclass(frozen=True, kw_only=True, slots=True)
class Ingested:
    """What became of a document."""

    run: models.Run
    created: bool
    """False when the same run was stored before."""


_PIECES = {
    "checkpoints": "checkpoints",
    "state-snapshots": "snapshots",
    "step-events": "events",
    "tool-recordings": "recordings",
}
"""What people send one by one, in formats whose lists are one run."""


def store_run(project: models.Project, run: Run, *, source: bytes) -> Ingested:
    """Store a run; `source` is the document it was read from. Raises `RunConflict` for another one of this id."""
    digest = run_digest(run)
    with transaction.atomic():
        lock_name(project, run.run_id)
        stored = _stored(project, run).first()
        if stored is not None and bytes(stored.content_digest).hex() == digest:
            return Ingested(run=stored, created=_adopt(stored))
        if stored is not None and stored.status != "running":
            raise RunConflict(run.run_id, pieces=_PIECES.get(run.source_format))
        if stored is not None:
            release(models.RunContent.objects.filter(pk=stored.content_id))
            stored.delete()
        return Ingested(run=_insert(project, run, digest, source), created=True)


def store_assembled(project: models.Project, run: Run, *, source: bytes | None, made_before: int | None) -> models.Run:
    """Store a run that was put together from what arrived so far; `source` is None where that was no document.

    `made_before` is the key of the run that was made of less: it is written over and keeps what people and replays
    said of it. Raises `RunConflict` when somebody sent a whole recording under this id.
    """
    digest = run_digest(run)
    # Whoever calls this in a transaction gives all of it up when it fails.
    with transaction.atomic(savepoint=False):
        lock_name(project, run.run_id)
        stored = _stored(project, run).only(*_TO_WRITE_OVER).first()
        if stored is not None and bytes(stored.content_digest).hex() == digest:
            return stored
        if stored is not None and stored.pk != made_before:
            raise RunConflict(run.run_id)
        # It may have got its name only now, from a span that came after the others.
        before = stored or _made(made_before)
        if before is None:
            return _insert(project, run, digest, source)
        _write_over(before, project, run, digest, source)
        return before


def rewrite(row: models.Run, run: Run, *, source: bytes | None) -> None:
    """Write it over with what was made of it; what people and replays said of it stays.

    Raises `RunConflict` where it gets another id that a run of the project has.
    """
    if run.run_id != row.run_id:
        _rename(row, run.run_id)
    _write_over(row, row.project, run, run_digest(run), source)


def _rename(row: models.Run, name: str) -> None:
    """Forks and goldens name runs by their ids; so do runs in their content, which is not written here."""
    lock_name(row.project, name)
    if models.Run.objects.filter(project=row.project, run_id=name).exists():
        raise RunConflict(row.run_id)
    models.Replay.objects.filter(project=row.project, fork_id=row.run_id).update(fork_id=name)
    ids = {column: _replaced(column, row.run_id, name) for column in ("fails_on", "passes_on")}
    models.Golden.objects.filter(project=row.project).update(**ids)


def _replaced(column: str, old: str, new: str) -> Func:
    return Func(F(column), Cast(Value(old), _ID), Cast(Value(new), _ID), function="array_replace")


def rewrite_content(content: models.RunContent, run: Run) -> models.RunContent:
    """The same of a content that no run has, and that replays need."""
    written = _content(content.project, run, run_digest(run), None)
    release(models.RunContent.objects.filter(pk__in=[content.pk, written.pk]))
    return written


def _made(key: int | None) -> models.Run | None:
    return None if key is None else models.Run.objects.filter(pk=key).only(*_TO_WRITE_OVER).first()


_TO_WRITE_OVER = ("run_id", "project", "session", "content", "content_digest")
"""What has to be known of a run before all else of it is written anew."""


def _stored(project: models.Project, run: Run) -> QuerySet[models.Run]:
    return models.Run.objects.filter(project=project, run_id=run.run_id)


def _adopt(run: models.Run) -> bool:
    """Whether this is the first time that somebody sends the run: an example was there before anybody."""
    was_example, run.is_example = run.is_example, False
    if was_example:
        run.save(update_fields=["is_example"])
    return was_example


_NAME = "hashtextextended(%(name)s::text, %(project)s::bigint)"
_LOCK = f"SELECT pg_advisory_xact_lock({_NAME})"
_TRY_LOCK = f"SELECT pg_try_advisory_xact_lock({_NAME})"


def lock_name(project: models.Project, name: str, *, waits: bool = True) -> bool:
    """Two posts of one run take turns, to the end of the transaction; others do not wait.

    False where somebody else has it and `waits` is not set.
    """
    with binary_cursor() as cursor:
        cursor.execute(_LOCK if waits else _TRY_LOCK, {"name": name, "project": project.pk})
        (is_mine,) = cursor.fetchone()
    return waits or bool(is_mine)


def lock_trace(project: models.Project, trace_id: str, *, waits: bool = True) -> bool:
    """The same of a trace of which a run is made, or which goes; before the name of the run where both are needed."""
    return lock_name(project, f"trace {trace_id}", waits=waits)


def _insert(project: models.Project, run: Run, digest: str, source: bytes | None) -> models.Run:
    row = models.Run.objects.create(project=project, run_id=run.run_id, **_written(project, run, digest, source))
    _claim_caller(row)
    _claim_called(row, run)
    return row


def _claim_caller(row: models.Run) -> None:
    """The run that called it and arrived before it, where it does not say so itself; what went wrong in it is told
    there."""
    if row.parent_run_id or row.origin != "recorded":
        return
    has_agents = Q(strip__icontains="a") | Q(step_count__gt=STRIP)
    earlier = models.Run.objects.filter(has_agents, session=row.session, origin="recorded").exclude(pk=row.pk)
    for caller in earlier.select_related("content", "project").order_by("-pk")[:_CALLERS]:
        if step := _step_that_called(caller, row.run_id):
            row.parent_run_id, row.parent_step = caller.run_id, step
            row.save(update_fields=["parent_run_id", "parent_step"])
            _judge_again(caller, row.run_id)
            return


_CALLERS = 50
"""Runs of a session, the newest first, that are asked whether they called one."""


def _step_that_called(caller: models.Run, run_id: str) -> int | None:
    try:
        steps = [step for step in caller.steps if step.kind == "agent"]
        texts = step_texts(caller.content, steps)
    except StoredBytesMissing:
        return None
    called = zip(steps, map(Fields, texts), strict=True)
    return next((step.index for step, fields in called if fields.text("run_id") == run_id), None)


def _judge_again(caller: models.Run, run_id: str) -> None:
    """Where all of it is still stored."""
    try:
        run = load_run(caller)
    except StoredBytesMissing:
        return
    wrong = wrong_in_called(caller.project, run)
    if run_id in wrong:
        columns = storable(judgement_columns(run, rules(caller.project), wrong))
        models.Run.objects.filter(pk=caller.pk).update(**columns)


def _claim_called(row: models.Run, run: Run) -> None:
    """Runs of its sub-agents, which arrived before it and did not say who called them."""
    calls = [(step.index, step.call.run_id) for step in run.steps if isinstance(step.call, AgentCall)]
    steps = [When(run_id=name, then=Value(index)) for index, name in calls if name and name != run.run_id]
    if not steps:
        return
    called = models.Run.objects.filter(session=row.session, run_id__in=[name for _, name in calls], parent_run_id=None)
    others = called.exclude(run_id__in=[row.run_id, row.parent_run_id or ""])
    others.update(parent_run_id=run.run_id, parent_step=Case(*steps))


def _write_over(row: models.Run, project: models.Project, run: Run, digest: str, source: bytes | None) -> None:
    columns = _written(project, run, digest, source)
    session, content = row.session, row.content_id
    row.run_id = run.run_id
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()
    _claim_called(row, run)
    release(models.RunContent.objects.filter(pk=content))
    if session.pk != row.session.pk:
        _follow(session, row.session)


def _follow(left: models.Session, joined: models.Session) -> None:
    """What people made of a session goes where its last run went."""
    held = models.Session.objects.select_for_update().filter(pk=left.pk).first()
    if held is None or models.Run.objects.filter(session=held).exists():
        return
    models.SessionReplay.objects.filter(session=held).update(session=joined)
    if held.tags:
        joined.tags = sorted({*joined.tags, *held.tags})[:MOST]
        joined.save(update_fields=["tags"])
    held.delete()


def _written(project: models.Project, run: Run, digest: str, source: bytes | None) -> dict[str, object]:
    """The columns of a run's row, with all that they refer to stored."""
    received = None if source is None else Payload(content=source)
    judged = judgement_columns(run, rules(project), wrong_in_called(project, run))
    columns = storable({**run_columns(run), **judged})
    facts = {
        "session": _session(project, run),
        "content": _content(project, run, digest, received),
        "content_digest": digest_bytes(digest),
        "source_digest": received and digest_bytes(received.digest),
        "search": SearchVector(Value(clean(searched_text(run)), output_field=_TEXT), config="simple"),
    }
    return {**columns, **facts}


def _content(project: models.Project, run: Run, digest: str, received: Payload | None) -> models.RunContent:
    base = find_base(project, run)
    collected = Collector(numbers_of(base))
    steps, columns = step_rows(run, collected), content_columns(run, collected)
    apart = collected.apart if received is None else {received.digest: received, **collected.apart}
    payloads.write_many(project.pk, {name: payload.content for name, payload in apart.items()})
    return write_content(project, base, steps, collected, digest=digest_bytes(digest), **columns)


_ADD_SESSION = """\
INSERT INTO sessions_app_session (project_id, session_id, started_at, last_at)
VALUES (%(project)s, %(session)s, %(at)s, %(at)s)
ON CONFLICT (project_id, session_id) DO UPDATE SET
    started_at = CASE WHEN %(widens)s THEN least(sessions_app_session.started_at, EXCLUDED.started_at)
                      ELSE sessions_app_session.started_at END,
    last_at = CASE WHEN %(widens)s THEN greatest(sessions_app_session.last_at, EXCLUDED.last_at)
                   ELSE sessions_app_session.last_at END
RETURNING id, project_id, session_id, started_at, last_at
"""


def _session(project: models.Project, run: Run) -> models.Session:
    """The run's session, which reaches from its first recorded run to its last; two may arrive at once.

    A sender's clock may be ahead: what has arrived is not later than now, or it would top each list until then.
    """
    now = timezone.now()
    at = min(run.started_at or now, now)
    facts = {"project": project.pk, "session": run.session_id, "at": at, "widens": run.origin == "recorded"}
    return models.Session.objects.raw(_ADD_SESSION, facts)[0]


def delete_empty(sessions: Collection[int]) -> None:
    """Those of these sessions that have no runs. A run that is being stored holds its session: it is waited for."""
    held = models.Session.objects.filter(pk__in=sessions).order_by("pk").select_for_update()
    models.Session.objects.filter(pk__in=[session.pk for session in held], runs=None).delete()
