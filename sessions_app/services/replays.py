"""Asking for replays and cancelling them."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from sessions_app.core.errors import NotReplayable
from sessions_app.models import Project, Replay, Run
from sessions_app.models.replays import HELD_STATES, OPEN_STATES, ReplayState
from sessions_app.services.wakeups import wake

MODES = ("recording",)


def request_replay(
    *, run: Run, user: User | None = None, mode: str = "recording", request_key: str | None = None
) -> Replay:
    """Queue a replay of a run. The same `request_key` again gives the replay that it gave before.

    Raises `NotReplayable` for a mode that this server does not have, and for a key that was used for
    another run.
    """
    if mode not in MODES:
        raise NotReplayable(f"Mode {mode!r} is not available here; this server replays: {', '.join(MODES)}.")
    with transaction.atomic():
        # Numbers and keys are given one after the other; who only refers to the project does not wait.
        Project.objects.select_for_update(no_key=True).get(pk=run.project_id)
        known = _known(run, request_key)
        if known is not None:
            return known
        replay = _queue(run, user, mode, request_key)
        transaction.on_commit(lambda: wake(replay))
    return replay


def _known(run: Run, request_key: str | None) -> Replay | None:
    if request_key is None:
        return None
    known = Replay.objects.filter(project=run.project_id, request_key=request_key).first()
    if known is not None and known.run_id != run.pk:
        raise NotReplayable(f"The request key {request_key!r} was used for a replay of another run.")
    return known


def _queue(run: Run, user: User | None, mode: str, request_key: str | None) -> Replay:
    last = Replay.objects.filter(run=run).aggregate(last=Max("number"))["last"] or 0
    return Replay.objects.create(
        project_id=run.project_id,
        run=run,
        number=last + 1,
        mode=mode,
        requested_by=user,
        request_key=request_key,
        woken_at=timezone.now(),
        progress_total=run.model_call_count + run.tool_call_count,
    )


def cancel_replay(replay: Replay) -> Replay:
    """A waiting replay is cancelled at once; a running one as soon as its worker sees the wish."""
    open_replay = Replay.objects.filter(pk=replay.pk, state__in=OPEN_STATES)
    waiting = open_replay.exclude(state__in=HELD_STATES)
    waiting.update(state=ReplayState.CANCELLED, verdict="cancelled", finished_at=timezone.now())
    open_replay.update(is_cancel_wanted=True)
    replay.refresh_from_db()
    return replay
