"""Notes of a session, a run and a step, the oldest first."""

from __future__ import annotations

from django.db.models import QuerySet

from sessions_app.models import Note, Project, Run, Session


def notes_in(project: Project) -> QuerySet[Note]:
    return Note.objects.filter(run__project=project)


def notes_of_session(session: Session) -> QuerySet[Note]:
    return _listed(Note.objects.filter(run__session=session))


def notes_of_run(run: Run) -> QuerySet[Note]:
    return _listed(Note.objects.filter(run=run))


def notes_of_step(run: Run, step: int) -> QuerySet[Note]:
    return notes_of_run(run).filter(step=step)


def _listed(notes: QuerySet[Note]) -> QuerySet[Note]:
    return notes.select_related("author", "key", "run").order_by("pk")
