"""What a golden's run came to: the checks first, and where they cannot say, what became of the replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replay_goldens.checks import Judged, all_passed
from sessions_app.core.payload import JsonObject

Result = Literal["pass", "fail", "could_not_run", "nothing_covered"]
RESULT_WORDS: dict[Result, str] = {
    "pass": "Passed",
    "fail": "Failed",
    "could_not_run": "Could not run",
    "nothing_covered": "Not judged",
}
EXIT_CODES: dict[Result, int] = {"pass": 0, "fail": 1, "could_not_run": 2, "nothing_covered": 3}
"""Of commands that run goldens; of several, the first of fail, could_not_run, nothing_covered, pass that occurs."""
WORST_FIRST: tuple[Result, ...] = ("fail", "could_not_run", "nothing_covered", "pass")


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """What became of the replay, as far as a result depends on it."""

    ran: bool
    """Whether the loop was played at all."""
    error: str | None = None
    """With which it ended, where an error ended it."""
    stopped_at: int | None = None
    """The step at which it stopped, for something there was another than in the recording."""
    words: str
    """The verdict of the replay."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenResult:
    """The result with its reason and the checks that it was made of."""

    result: Result
    words: str
    checks: tuple[JsonObject, ...]


def result_of(samples: Sequence[Sequence[Judged]], played: Played) -> GoldenResult:
    """`samples` holds the judged checks of each run that the replay produced: one, or as many as a live model was asked
    for."""
    result, words = _result(samples, played)
    return GoldenResult(result=result, words=words, checks=tuple(_merged(samples)))


def _result(samples: Sequence[Sequence[Judged]], played: Played) -> tuple[Result, str]:
    if not played.ran or not samples:
        return "could_not_run", played.words
    outcomes = [all_passed(judged) for judged in samples]
    if False in outcomes:
        return "fail", _failed(samples, outcomes)
    if played.error is not None:
        return "fail", f"It ended with an error: {played.error}"
    if None not in outcomes:
        return "pass", _passed(samples)
    if played.stopped_at is not None:
        return "fail", f"Behaves differently from step {played.stopped_at} on: {played.words}"
    return "nothing_covered", _uncovered(samples)


def _failed(samples: Sequence[Sequence[Judged]], outcomes: list[bool | None]) -> str:
    first = next(each for judged in samples for each in judged if each.seen.passed is False)
    share = "" if len(samples) == 1 else f"{outcomes.count(True)} of {len(samples)} samples passed. "
    return f"{share}Expected: {first.check.words}; {first.seen.words}"


def _passed(samples: Sequence[Sequence[Judged]]) -> str:
    number = len(samples[0])
    checks = {1: "its only check holds", 2: "both checks hold"}.get(number, f"all {number} checks hold")
    return checks.capitalize() if len(samples) == 1 else f"In all {len(samples)} samples {checks}"


def _uncovered(samples: Sequence[Sequence[Judged]]) -> str:
    first = next(each for judged in samples for each in judged if each.seen.passed is None)
    return f"Cannot be judged: {first.check.words}; {first.seen.words}"


def _merged(samples: Sequence[Sequence[Judged]]) -> list[JsonObject]:
    """Each check once; of several samples the first in which it failed is told, and in how many it held."""
    return [_of_one(column) for column in zip(*samples, strict=True)]


def _of_one(column: tuple[Judged, ...]) -> JsonObject:
    told = min(column, key=lambda each: _ORDER[each.seen.passed])
    counted = {"samples": len(column), "held": sum(each.seen.passed is True for each in column)}
    return told.to_json() | (counted if len(column) > 1 else {})


_ORDER = {False: 0, None: 1, True: 2}
