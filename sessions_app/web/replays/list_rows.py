"""The rows of the list of replays: those of one session replay are one row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sessions_app.models import GoldenRun, Replay, SessionReplay
from sessions_app.queries.replays import Row
from sessions_app.services.fork_facts import samples_of
from sessions_app.web.badges import state_of
from sessions_app.web.replays.words import short_title_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A replay with its words."""

    replay: Replay
    took_ms: float | None
    what: str
    samples: str
    """How its samples ended."""
    verdict: str
    reason: str
    """Why the verdict is not a good one; empty where the verdict says all."""
    golden_run: GoldenRun | None

    @property
    def place(self) -> str:
        """Where it went another way, or could not go on; of one that names a step."""
        word = "stopped before" if self.replay.is_in_part else "at"
        return f"{word} step {(self.replay.divergence or {}).get('step')}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Replays of a session's runs that were asked for together and stand together in the list."""

    asked: SessionReplay
    newest: Replay
    total: int
    states: tuple[tuple[str, str, int], ...]
    """Table and key of what they came to, and how many; the rarest first, for it is the news."""


def lines_of(rows: Sequence[Row], golden_runs: Mapping[int, GoldenRun]) -> Iterator[Line | Batch]:
    for asked, group in groupby(rows, key=lambda row: row.replay.session_replay):
        found = list(group)
        if asked is None or len(found) == 1:
            yield from (_line(row, golden_runs.get(row.replay.pk)) for row in found)
        else:
            yield _batch(asked, [row.replay for row in found])


def _line(row: Row, golden_run: GoldenRun | None) -> Line:
    replay = row.replay
    samples = samples_of(replay)
    return Line(
        replay=replay,
        took_ms=row.took_ms,
        what=short_title_of(replay),
        samples=samples.words if samples else "",
        verdict=state_of("replay_verdict", replay.shown_verdict).word if replay.verdict else "",
        reason=(replay.facts.get("limit") or {}).get("reason") or replay.error or "",
        golden_run=golden_run,
    )


def _batch(asked: SessionReplay, replays: list[Replay]) -> Batch:
    counted = Counter(map(_state, replays))
    rarest_first = sorted(counted.items(), key=lambda each: each[1])
    states = tuple((table, key, number) for (table, key), number in rarest_first)
    return Batch(asked=asked, newest=replays[0], total=len(replays), states=states)


def _state(replay: Replay) -> tuple[str, str]:
    is_told = replay.state == "done" and replay.verdict
    return ("replay_verdict", replay.shown_verdict or "") if is_told else ("replay", replay.state)
