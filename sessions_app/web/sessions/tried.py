"""What was tried with a run: its replays and forks, as the head of its session lists them."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from sessions_app.models import Replay, Run
from sessions_app.models.replays import FORK_MODES, IS_ATTEMPT
from sessions_app.queries.run_lists import OF_CONTENT

REPLAYS = 10
_LISTED = Q(is_golden=False)


def tried_context(run: Run) -> dict[str, Any]:
    replays = first_to_know(replays_of(run))
    return {"replays": replays, "fork_count": _forks_among(replays), "made_by": getattr(run, "produced_by", None)}


def replays_of(run: Run, which: Q = _LISTED) -> list[Replay]:
    """Without those of goldens, which have pages of their own."""
    found = run.replays.filter(which).select_related("requested_by", "produced_run", "content")
    return list(found.defer(*OF_CONTENT).order_by("-pk")[:REPLAYS])


def attempts_of(run: Run) -> list[Replay]:
    """Without its forks, which are other runs."""
    return first_to_know(replays_of(run, IS_ATTEMPT))


def first_to_know(replays: list[Replay]) -> list[Replay]:
    """Those that go on, then those that reproduced the run; the newest of each first."""
    return sorted(replays, key=lambda replay: (replay.is_over, not _reproduces(replay)))


def _reproduces(replay: Replay) -> bool:
    return replay.verdict == "reproduced" and replay.mode not in FORK_MODES


def _forks_among(replays: list[Replay]) -> int | None:
    """None when there may be more than are listed."""
    return sum(replay.mode in FORK_MODES for replay in replays) if len(replays) < REPLAYS else None
