"""Runs side by side, each with what the checks of a golden say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay_goldens.checks import Judged
from replay_goldens.judged import Check
from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.models import Replay, Run
from sessions_app.queries.goldens import is_by_hand, made_by
from sessions_app.services.goldens import judge_run, outcome_of

OUTCOMES = {True: "pass", False: "fail", None: "nothing_covered"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """What a check gives on a run."""

    outcome: str
    seen: str
    run_id: str
    step: int | None
    """Where the run shows it; None where no single step does."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One run."""

    run: Run
    judged: Sequence[Judged]
    replay: Replay | None
    """The one that produced the run."""

    @property
    def words(self) -> str:
        """What made the run, as its page says; the id of one that was recorded."""
        return f"{self.replay.kind} #{self.replay.number}" if self.replay else self.run.run_id

    @property
    def is_by_hand(self) -> bool:
        """Whether somebody wrote one of its answers, so that it says nothing of the code."""
        return self.replay is not None and is_by_hand(self.replay)

    @property
    def outcome(self) -> str:
        return OUTCOMES[outcome_of(self.run, self.judged)]

    @property
    def cells(self) -> list[Cell]:
        """Of each check the outcome, and what was seen."""
        return [self._cell(each) for each in self.judged]

    def _cell(self, judged: Judged) -> Cell:
        step, seen = step_of(self.run, judged.check.to_json()), judged.seen
        return Cell(outcome=OUTCOMES[seen.passed], seen=seen.words, run_id=self.run.run_id, step=step)


def step_of(run: Run, check: JsonObject) -> int | None:
    """What a check speaks of: the last call of its tool, the step of its state; the last one for the answer."""
    if isinstance(step := check.get("step"), int):
        return step
    if tool := check.get("tool"):
        return next((each.index for each in reversed(run.steps) if each.tool_name == tool), None)
    return (len(run.steps) or None) if check["kind"] in ("output", "ends_within") else None


def columns_of(runs: Sequence[Run], checks: Sequence[Check], scene: Run) -> list[Column]:
    """Without runs whose bytes are gone."""
    played, replays = load_run(scene), made_by(runs)
    return [column for run in runs if (column := _column(run, checks, played, replays.get(run.pk))) is not None]


def _column(run: Run, checks: Sequence[Check], scene: RecordedRun, replay: Replay | None) -> Column | None:
    try:
        return Column(run=run, judged=judge_run(run, checks, scene), replay=replay)
    except StoredBytesMissing:
        return None


def by_check(checks: Sequence[Check], columns: Sequence[Column]) -> list[tuple[str, list[Cell]]]:
    """Each check in words, with its cell in every column."""
    return [(check.words, [column.cells[place] for column in columns]) for place, check in enumerate(checks)]
