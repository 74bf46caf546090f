"""Runs that a run is usually compared with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sessions_app.models import Replay
from sessions_app.web.run_pages import RunPlace

PARTNERS = 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Partner:
    """The two run ids in the order in which they are shown: what was recorded stands on the left."""

    left: str
    right: str
    name: str
    what: str


def _named(replay: Replay) -> str:
    return f"{replay.kind} #{replay.number}"


def diff_partners(place: RunPlace, replays: Iterable[Replay]) -> list[Partner]:
    """What its replays produced, what it came from, and the other runs of its session."""
    run = place.run
    found = [
        Partner(left=run.run_id, right=made.run_id, name=made.run_id, what=_named(replay))
        for replay in replays
        if (made := replay.produced_run) is not None
    ]
    if run.parent_run_id:
        found.append(Partner(left=run.parent_run_id, right=run.run_id, name=run.parent_run_id, what="came from"))
    named = {partner.name for partner in found} | {run.run_id}
    found += [
        Partner(left=run.run_id, right=other.run_id, name=other.run_id, what=f"run {number}")
        for number, other in enumerate(place.siblings, start=1)
        if other.run_id not in named
    ]
    return found[:PARTNERS]
