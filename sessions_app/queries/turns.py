"""The runs of a session: their order, and the newest replay of each."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F, Q
from django.db.models.expressions import OrderBy
from django.db.models.functions import Coalesce

from sessions_app.models import Replay
from sessions_app.models.replays import IS_ATTEMPT, ReplayState

_OF_REPLAY = ("replay_id", "run_id", "run__session_id", "state", "verdict", "facts", "stopped_at", "expectation_met")


def in_turn(prefix: str = "") -> tuple[Coalesce | OrderBy | str, ...]:
    """By their start: a sub-agent is recorded when it is over, and so arrives before the run that called it."""
    started = Coalesce(f"{prefix}started_at", f"{prefix}received_at")
    return started, F(f"{prefix}parent_run_id").asc(nulls_first=True), f"{prefix}pk"


def newest_replays(session_pks: Iterable[int]) -> dict[int, Replay]:
    """Of each run that was replayed, by its key; one that is paused only where no other is. One that was cancelled, or
    that replayed what the run no longer says, says nothing of the run."""
    attempts = Replay.objects.filter(IS_ATTEMPT, content=F("run__content"), run__session__in=list(session_pks))
    said = attempts.exclude(state=ReplayState.CANCELLED).alias(is_paused=Q(state=ReplayState.PAUSED))
    newest = said.order_by("run_id", "is_paused", "-pk").distinct("run_id")
    return {replay.run_id: replay for replay in newest.select_related("run").only(*_OF_REPLAY)}


def is_other(replay: Replay) -> bool:
    """Whether it came to another end than its recording."""
    return replay.state == ReplayState.DONE and replay.verdict != "reproduced"
