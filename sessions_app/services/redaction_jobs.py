"""Rules of redaction applied to what is stored: asked for, counted, looked at, started, and gone through by workers.

Each piece of the work is one transaction, in which the job's row is held: a worker that is killed takes back what it
had not finished, and another one goes on there. What was redacted once is not changed by doing it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import Project, RedactionJob, Run, RunContent, Trace
from sessions_app.models.redaction_jobs import AT_WORK, RedactionPhase, RedactionState
from sessions_app.services import redacted_remains, redacted_runs, redacted_traces, redacted_words
from sessions_app.services.redaction import counts_of

_Row = TypeVar("_Row", Trace, RunContent)
_COUNTED_AT_ONCE = 20
_NAMED = 20
"""Ids of what could not be changed that are kept."""


class NotCounted(ReplayProductError):
    """Nobody has seen yet what the rules of now would take out."""


def open_job(project: Project) -> RedactionJob | None:
    """The one that is not over."""
    over = (RedactionState.DONE, RedactionState.CANCELLED)
    return RedactionJob.objects.filter(project=project).exclude(state__in=over).first()


def last_job(project: Project) -> RedactionJob | None:
    """The open one, or the one that was over last."""
    return RedactionJob.objects.filter(project=project).order_by("-pk").first()


def ask_for_count(project: Project, user: User | None) -> RedactionJob:
    """Count what the rules of now would change. One that was counted before, and not started, is dropped."""
    with transaction.atomic():
        cancel(project)
        at_work = open_job(project)
        return at_work or RedactionJob.objects.create(project=project, rules=project.redaction, requested_by=user)


def start(project: Project, user: User | None) -> None:
    """Apply what was counted. Raises `NotCounted`."""
    counted = RedactionJob.objects.filter(project=project, state=RedactionState.COUNTED)
    if counted.exclude(rules=project.redaction).exists():
        raise NotCounted("The rules were changed after the count; count again.")
    started = counted.update(
        state=RedactionState.APPLYING,
        phase=RedactionPhase.TRACES,
        position=0,
        looked_at=0,
        started_by=user,
        started_at=timezone.now(),
    )
    if not started:
        raise NotCounted("Nothing was counted yet, or it was started already.")


def cancel(project: Project) -> None:
    """Before it is started."""
    dropped = RedactionJob.objects.filter(project=project, state__in=(RedactionState.COUNTING, RedactionState.COUNTED))
    dropped.update(state=RedactionState.CANCELLED, finished_at=timezone.now())


def size_of(job: RedactionJob) -> int:
    """How much there is to look at."""
    if job.state == RedactionState.APPLYING:
        return job.project.contents.count() + job.project.traces.count()
    return job.project.runs.count()


# --- the work ----------------------------------------------------------------------------------


@transaction.atomic
def go_on() -> bool:
    """One piece of the oldest job that nobody else is at; whether there was something to do."""
    waiting = RedactionJob.objects.filter(state__in=AT_WORK).order_by("pk").select_related("project")
    job = waiting.select_for_update(skip_locked=True, of=("self",)).first()
    if job is None:
        return False
    has_worked = _count(job) if job.state == RedactionState.COUNTING else _APPLY[RedactionPhase(job.phase)](job)
    job.save()
    return has_worked


def _count(job: RedactionJob) -> bool:
    runs = list(Run.objects.filter(project=job.project, pk__gt=job.position).order_by("pk")[:_COUNTED_AT_ONCE])
    values = Counter({rule: said[0] for rule, said in job.counts.items()})
    in_runs = Counter({rule: said[1] for rule, said in job.counts.items()})
    for run in runs:
        found = counts_of(run, job.project)
        values.update(found)
        in_runs.update(found.keys())
    job.counts = {rule: [values[rule], in_runs[rule]] for rule in sorted(values)}
    if runs:
        job.position, job.looked_at = runs[-1].pk, job.looked_at + len(runs)
    else:
        job.state = RedactionState.COUNTED
    return True


def _each_trace(job: RedactionJob) -> bool:
    traces = Trace.objects.filter(project=job.project).select_related("project")
    return _next(job, traces, redacted_traces.redact_trace, "traces", RedactionPhase.CONTENTS)


def _each_content(job: RedactionJob) -> bool:
    contents = RunContent.objects.filter(project=job.project).select_related("run", "project")
    return _next(job, contents, redacted_runs.redact_content, "runs", RedactionPhase.WORDS)


def _next(
    job: RedactionJob, rows: QuerySet[_Row], change: Callable[[_Row], bool], name: str, then: RedactionPhase
) -> bool:
    row = rows.filter(pk__gt=job.position).order_by("pk").first()
    if row is None:
        job.phase, job.position = then, 0
        return True
    try:
        with transaction.atomic():
            is_changed = change(row)
    except ReplayProductError:
        job.unchanged = [*job.unchanged, redacted_runs.name_of(row)][:_NAMED]
    else:
        job.changed[name] = job.changed.get(name, 0) + is_changed
    job.position, job.looked_at = row.pk, job.looked_at + 1
    return True


def _words(job: RedactionJob) -> bool:
    job.changed["words"] = redacted_words.redact_words(job.project)
    job.phase = RedactionPhase.REMAINS
    return True


def _remains(job: RedactionJob) -> bool:
    """Not before contents that were replaced are gone: whoever was reading them may finish."""
    if redacted_remains.waits(job.project):
        return False
    job.changed["payloads"] = redacted_remains.sweep(job.project)
    job.state, job.finished_at = RedactionState.DONE, timezone.now()
    return True


_APPLY: dict[RedactionPhase, Callable[[RedactionJob], bool]] = {
    RedactionPhase.TRACES: _each_trace,
    RedactionPhase.CONTENTS: _each_content,
    RedactionPhase.WORDS: _words,
    RedactionPhase.REMAINS: _remains,
}
