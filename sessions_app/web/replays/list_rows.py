"""The rows of the list of replays: those of one session replay are one row. Each has a state, and what there is to say
beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sessions_app.core.fork.expected_words import why_unproven
from sessions_app.core.replay.words import beside_state
from sessions_app.core.reports.session_report import CONTRADICTORY
from sessions_app.models import GoldenRun, Replay, SessionReplay
from sessions_app.models.replays import ReplayState
from sessions_app.queries.replays import Row
from sessions_app.services.fork_facts import samples_of
from sessions_app.services.reports import plain_facts
from sessions_app.web.badges import replay_key, state_of
from sessions_app.web.replays.words import cancelled_words, short_title_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """A replay with its words."""

    replay: Replay
    took_ms: float | None
    what: str
    state: tuple[str, str]
    """The table of its state, and the key there."""
    detail: str
    """Where it stands, what is the same, or why the state is not a good one; empty where the state says all."""
    golden_run: GoldenRun | None

    @property
    def is_open(self) -> bool:
        return not self.replay.is_over


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Replays of a session's runs that were asked for together and stand together in the list."""

    asked: SessionReplay
    newest: Replay
    total: int
    state: tuple[str, str]
    """Of most of those that were not reproduced."""
    detail: str
    """How many came to what, the most first."""
    is_open: bool
    """Whether one of them is."""
    took_ms: float | None
    """From when the first was picked up to the end of the last; None while one is open."""


def lines_of(rows: Sequence[Row], golden_runs: Mapping[int, GoldenRun]) -> list[Line | Batch]:
    """Those that are not over first."""
    return sorted(_lines(rows, golden_runs), key=lambda line: not line.is_open)


def _lines(rows: Sequence[Row], golden_runs: Mapping[int, GoldenRun]) -> Iterator[Line | Batch]:
    for asked, group in groupby(rows, key=lambda row: row.replay.session_replay):
        found = list(group)
        if asked is None or len(found) == 1:
            yield from (_line(row, golden_runs.get(row.replay.pk)) for row in found)
        else:
            yield _batch(asked, [row.replay for row in found])


def _line(row: Row, golden_run: GoldenRun | None) -> Line:
    judged = golden_run if golden_run is not None and golden_run.result else None
    return Line(
        replay=row.replay,
        took_ms=row.took_ms,
        what=short_title_of(row.replay),
        state=("golden", judged.result or "") if judged else state_key(row.replay),
        detail=_of_golden(judged) if judged else detail_of(row.replay),
        golden_run=golden_run,
    )


def _batch(asked: SessionReplay, replays: list[Replay]) -> Batch:
    counted = _counted(replays)
    others = [state for state, _ in counted if state != REPRODUCED]
    state = others[0] if others else of_session(asked, counted[0][0])
    is_open = any(not replay.is_over for replay in replays)
    return Batch(
        asked=asked,
        newest=replays[0],
        total=len(replays),
        state=state,
        detail=batch_words(replays),
        is_open=is_open,
        took_ms=None if is_open else _took_together(replays),
    )


def _took_together(replays: list[Replay]) -> float | None:
    begun = [replay.claimed_at for replay in replays if replay.claimed_at]
    ended = [replay.finished_at for replay in replays if replay.finished_at]
    return (max(ended) - min(begun)).total_seconds() * 1000 if begun and ended else None


def of_session(asked: SessionReplay | None, state: tuple[str, str]) -> tuple[str, str]:
    """The state of all runs together, where it is that of each of them."""
    is_contradictory = state == REPRODUCED and asked is not None and bool(asked.contradictions)
    return ("replay_verdict", CONTRADICTORY) if is_contradictory else state


REPRODUCED = ("replay_verdict", "reproduced")


def batch_words(replays: Sequence[Replay]) -> str:
    """How many came to what, the most first."""
    return " · ".join(f"{number} {state_of(*state).word}" for state, number in _counted(replays))


def _counted(replays: Sequence[Replay]) -> list[tuple[tuple[str, str], int]]:
    return Counter(map(state_key, replays)).most_common()


def state_key(replay: Replay) -> tuple[str, str]:
    """Why the outcome of a fork proves nothing stands beside it."""
    return replay_key(replay, "expectation_short")


def _of_golden(run: GoldenRun) -> str:
    """Why it passed or did not; what became of the replay is told where that is not the same as then."""
    words = [run.words]
    if run.replay.shown_verdict not in (None, "reproduced"):
        verdict = state_of("replay_verdict", run.replay.shown_verdict)
        words.append(f"replay {verdict.word} {_where(run.replay)}".strip())
    return "; ".join(filter(None, words))


def _where(replay: Replay) -> str:
    step = (replay.shown_divergence or {}).get("step")
    return f"at step {step}" if step else ""


def detail_of(replay: Replay) -> str:
    """Where it stands, what is the same, or why the state is not a good one."""
    if not replay.is_over:
        return _progress(replay)
    if replay.state == ReplayState.CANCELLED:
        return cancelled_words(replay)
    samples = samples_of(replay)
    if samples is not None:
        return samples.words
    if replay.waits_for_answer or replay.expectation_met is not None:
        return _of_fork(replay)
    return beside_state(plain_facts(replay))


def _progress(replay: Replay) -> str:
    if replay.state == ReplayState.PAUSED and replay.stopped_at:
        return f"before step {replay.stopped_at['step']}, {replay.stopped_at['name']}"
    if replay.state != ReplayState.RUNNING:
        return "waits for a worker" if replay.state == ReplayState.QUEUED else ""
    tries = f", try {replay.attempt}" if replay.attempt > 1 else ""
    return f"{replay.progress_done} of {replay.progress_total} steps{tries}"


def _of_fork(replay: Replay) -> str:
    if replay.stopped_at:
        of = "the model" if replay.stopped_at["kind"] == "model" else replay.stopped_at["name"]
        return f"at step {replay.stopped_at['step']}: {of}'s answer is unknown"
    source, where = replay.unproven_source, _where(replay)
    return "; ".join([*([why_unproven(source)] if source else []), *([f"differs {where}"] if where else [])])
