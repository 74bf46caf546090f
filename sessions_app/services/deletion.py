"""Deleting a run for good."""

from __future__ import annotations

from django.db import transaction
from django.db.models import Q

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import Run, RunContent, Trace
from sessions_app.models.replays import OPEN_STATES
from sessions_app.services.contents import release
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.run_store import delete_empty, lock_name, lock_trace


class RunInUse(ReplayProductError):
    """A replay of it has not come to its end."""


@again_after_deadlock
@transaction.atomic
def delete_run(run: Run) -> None:
    """Delete the run, the spans that it was made of, its replays and what these produced. Raises `RunInUse`.

    Forks that were made of it by themselves stay, with the steps that they share, and so does what later turns of its
    conversation go on from. Long payloads stay in the store: other runs may hold the same.
    """
    for trace_id in Trace.objects.filter(Q(run=run) | Q(joined__run=run)).values_list("trace_id", flat=True):
        # Whoever makes the run of it anew at this moment would write it once more behind us.
        lock_trace(run.project, trace_id)
    lock_name(run.project, run.run_id)
    if run.replays.filter(state__in=OPEN_STATES).exists():
        raise RunInUse("A replay of this run has not ended; cancel it first.")
    doomed = Run.objects.filter(Q(pk=run.pk) | Q(produced_by__run=run, origin="replay"))
    sessions = set(doomed.values_list("session_id", flat=True))
    contents = list(doomed.values_list("content", flat=True))
    Trace.objects.filter(run=run).delete()
    keys = list(doomed.values_list("pk", flat=True))
    Run.objects.filter(pk__in=keys).delete()
    release(RunContent.objects.filter(pk__in=contents))
    delete_empty(sessions)
