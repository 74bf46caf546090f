"""One run of each failure group, replayed with the team's code of today."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction

from sessions_app.core.fork.changes import ForkError
from sessions_app.models import Replay
from sessions_app.queries.failure_groups import FailureGroup
from sessions_app.services.replays import request_replay


def replay_representatives(
    groups: Sequence[FailureGroup], agents: Sequence[str], *, mode: str = "code_and_tools", user: User | None = None
) -> list[Replay]:
    """Queue a replay of each group's representative with each agent: all of them or none. They play on at a difference,
    so that a fix is seen to its end. Groups of which no run can be replayed are left out. Raises `ForkError`, and
    `NotReplayable` for a mode that is none."""
    chosen = [group for group in groups if group.can_be_replayed]
    if not chosen or not agents:
        words = "Name at least one failure group that can be replayed, and one agent."
        raise ForkError(words, field="agents" if chosen else "runs")
    with transaction.atomic():
        return [_replay(group, agent, mode, user) for group in chosen for agent in dict.fromkeys(agents)]


def _replay(group: FailureGroup, agent: str, mode: str, user: User | None) -> Replay:
    run, order = group.representative, {"agent": agent, "on_difference": "play_on"}
    try:
        return request_replay(run=run, mode=mode, order=order, user=user)
    except ForkError as error:
        raise ForkError(f"{run.run_id}: {error.message}", field=error.field) from None
