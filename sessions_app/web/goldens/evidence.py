"""Runs side by side, each with what the checks of a golden say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay_goldens.checks import Judged
from replay_goldens.judged import Check
from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.run import Run as RecordedRun
from sessions_app.mapping.load import load_run
from sessions_app.models import Run
from sessions_app.queries.goldens import answered_by_hand
from sessions_app.services.goldens import judge_run, outcome_of

OUTCOMES = {True: "pass", False: "fail", None: "nothing_covered"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One run."""

    run: Run
    judged: Sequence[Judged]
    is_by_hand: bool
    """Whether somebody wrote one of its answers, so that it says nothing of the code."""

    @property
    def outcome(self) -> str:
        return OUTCOMES[outcome_of(self.run, self.judged)]

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Of each check the outcome, and what was seen."""
        return [(OUTCOMES[each.seen.passed], each.seen.words) for each in self.judged]


def columns_of(runs: Sequence[Run], checks: Sequence[Check], scene: Run) -> list[Column]:
    """Without runs whose bytes are gone."""
    played, by_hand = load_run(scene), answered_by_hand(runs)
    return [column for run in runs if (column := _column(run, checks, played, run.pk in by_hand)) is not None]


def _column(run: Run, checks: Sequence[Check], scene: RecordedRun, is_by_hand: bool) -> Column | None:
    try:
        return Column(run=run, judged=judge_run(run, checks, scene), is_by_hand=is_by_hand)
    except StoredBytesMissing:
        return None


def by_check(checks: Sequence[Check], columns: Sequence[Column]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Each check in words, with its cell in every column."""
    return [(check.words, [column.cells[place] for column in columns]) for place, check in enumerate(checks)]
