"""Who works on which replay: claimed by compare-and-set, kept by heartbeat, fenced against latecomers.

queued → claimed → running → done | failed | cancelled | crashed, or paused until somebody lets it go on. Each claim
raises the fence, and every later write names the fence that it was made under, so a worker that was given up for dead
can wake again and change nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from sessions_app.core.errors import LeaseLost
from sessions_app.core.formats.json_writer import iso
from sessions_app.core.payload import compact_json
from sessions_app.models import Replay
from sessions_app.models.replays import HELD_STATES, ReplayState
from sessions_app.services.redaction import redactor_of

_UNHEARD = timedelta(seconds=10)
"""A queued replay that nobody took up within this time is announced again."""


def claim(replay_id: int, worker: str) -> Replay | None:
    """Take up a queued replay; None when another worker was faster or it is over."""
    now = timezone.now()
    claimed = Replay.objects.filter(
        pk=replay_id, state=ReplayState.QUEUED, attempt__lt=settings.REPLAY_MAX_ATTEMPTS
    ).update(
        state=ReplayState.CLAIMED,
        attempt=F("attempt") + 1,
        fence=F("fence") + 1,
        worker=worker,
        claimed_at=now,
        lease_until=_lease_end(now),
        progress_done=0,
    )
    return Replay.objects.select_related("run", "project", "produced_run").get(pk=replay_id) if claimed else None


def beat(replay: Replay, *, done: int, total: int) -> bool:
    """Keep the lease and write the progress down. True when somebody wants the replay cancelled.

    Raises `LeaseLost` when another worker has taken over.
    """
    kept = _held(replay).update(
        state=ReplayState.RUNNING,
        lease_until=_lease_end(timezone.now()),
        progress_done=done,
        progress_total=total,
    )
    if not kept:
        raise LeaseLost(replay.replay_id)
    return Replay.objects.filter(pk=replay.pk, is_cancel_wanted=True).exists()


def note(replay: Replay, **found: object) -> None:
    """Write down what is known so far. Raises `LeaseLost`."""
    if not _held(replay).update(lease_until=_lease_end(timezone.now()), **found):
        raise LeaseLost(replay.replay_id)


def finish(replay: Replay, *, state: str, **result: object) -> None:
    """Write the outcome, once, or that it pauses; no worker holds it any more. Call it in the transaction that stores
    what the replay produced."""
    at = None if state == ReplayState.PAUSED else timezone.now()
    told = without_secrets(replay, result)
    finished = _held(replay).update(state=state, finished_at=at, lease_until=None, **told)
    if not finished:
        raise LeaseLost(replay.replay_id)


_TOLD = ("error", "divergence", "facts", "stopped_at")


def without_secrets(replay: Replay, result: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of an outcome as they may be stored: what code says, an exception's text above all, may hold what no
    recording may."""
    told = {name: result[name] for name in _TOLD if result.get(name)}
    redacted = redactor_of(replay.project).redact(compact_json(told)).content
    return {**result, **json.loads(redacted)}


def give_up(replay: Replay, *, reason: str) -> None:
    """The attempt died. Try again while attempts are left, else the replay has crashed."""
    with transaction.atomic():
        row = _held(replay).select_for_update().first()
        if row is not None:
            _next_attempt(row, reason)


def take_back_expired() -> int:
    """Give replays whose worker went silent to somebody else. Returns how many."""
    with transaction.atomic():
        expired = Replay.objects.select_for_update(skip_locked=True).filter(
            state__in=HELD_STATES, lease_until__lt=timezone.now()
        )
        rows = list(expired)
        for row in rows:
            _next_attempt(row, "The worker stopped answering.")
    return len(rows)


def unheard() -> list[Replay]:
    """Queued replays that have to be announced (again); marks them as announced."""
    now = timezone.now()
    with transaction.atomic():
        silent = Q(woken_at=None) | Q(woken_at__lt=now - _UNHEARD)
        queued = Replay.objects.select_for_update(skip_locked=True).filter(silent, state=ReplayState.QUEUED)
        rows = list(queued.order_by("pk")[:200])
        Replay.objects.filter(pk__in=[row.pk for row in rows]).update(woken_at=now)
    return rows


def waiting_since() -> datetime | None:
    """When the replay was asked for that has waited longest for a worker."""
    oldest: datetime | None = Replay.objects.filter(state=ReplayState.QUEUED).aggregate(at=Min("created_at"))["at"]
    return oldest


def _held(replay: Replay) -> QuerySet[Replay]:
    return Replay.objects.filter(pk=replay.pk, fence=replay.fence, state__in=HELD_STATES)


def _next_attempt(row: Replay, reason: str) -> None:
    row.lease_until = None
    row.fence += 1
    if row.is_cancel_wanted:
        row.state, row.verdict, row.finished_at = ReplayState.CANCELLED, "cancelled", timezone.now()
    elif row.attempt >= settings.REPLAY_MAX_ATTEMPTS:
        row.state, row.error, row.finished_at = ReplayState.CRASHED, reason, timezone.now()
        row.verdict = "could_not_run"
    else:
        row.state, row.woken_at = ReplayState.QUEUED, None
        row.takeovers = [*row.takeovers, iso(timezone.now())]
    row.save()


def _lease_end(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.REPLAY_LEASE_SECONDS)
