"""What a golden's run came to: the checks first, and where they cannot say, what became of the replay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def worst_of(results: Iterable[Result | None]) -> Result | None:
    """What runs that were made together came to; `nothing_covered` where there is none, None while one is open."""
    found = set(results)
    if None in found:
        return None
    return next((result for result in WORST_FIRST if result in found), "nothing_covered")


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """What became of the replay, as far as a result depends on it."""

    ran: bool
    """Whether the loop was played at all."""
    stopped_at: int | None = None
    """The step at which it stopped, for something there was another than in the recording."""
    unplayable: str = ""
    """Why no replay comes further, where nothing is known to be another; else empty."""
    words: str
    """The verdict of the replay."""
    asked: int = 1
    """Runs that it was to produce: one, or as many samples as a live model was asked for."""
    enough: int = 1
    """How many of them have to pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """One run that the replay produced."""

    judged: Sequence[Judged]
    error: str | None = None
    """With which it ended, where an error ended it."""
    missing_tools: tuple[str, ...] = ()
    """Those that the recorded answers call and the agent does not have."""
    is_recording: bool = False
    """Whether the recording was judged in its place: it fails already, and the replay runs no code."""

    @property
    def outcome(self) -> bool | None:
        """Code that ends with an error has failed, whatever else it did."""
        return False if self.error is not None else all_passed(self.judged)


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldenResult:
    """The result with its reason and the checks that it was made of."""

    result: Result
    words: str
    checks: tuple[JsonObject, ...]


def result_of(samples: Sequence[Sample], played: Played) -> GoldenResult:
    """Of the runs that the replay produced."""
    result, words = _result(samples, played)
    return GoldenResult(result=result, words=words, checks=tuple(_merged([sample.judged for sample in samples])))


def _result(samples: Sequence[Sample], played: Played) -> tuple[Result, str]:
    if not played.ran or not samples:
        return "could_not_run", played.words
    if missing := samples[0].missing_tools:
        return "could_not_run", _without_tools(missing)
    passed = sum(sample.outcome is True for sample in samples)
    if passed >= played.enough:
        return "pass", _passed(samples, passed, played)
    failed = next((sample for sample in samples if sample.outcome is False), None)
    if failed is not None:
        return "fail", _share(passed, played) + _failed(failed, played)
    if played.unplayable:
        return "could_not_run", played.unplayable
    if played.stopped_at is not None:
        return "fail", f"Behaves differently from step {played.stopped_at} on: {played.words}"
    return "nothing_covered", _share(passed, played) + _uncovered(samples, played)


def _without_tools(names: tuple[str, ...]) -> str:
    return f"The agent has no tool {' or '.join(names)}, which the recorded answers call"


def _share(passed: int, played: Played) -> str:
    if played.asked == 1:
        return ""
    needed = f", {played.enough} must" if played.enough < played.asked else ""
    return f"{passed} of {played.asked} samples passed{needed}. "


def _failed(sample: Sample, played: Played) -> str:
    first = next((each for each in sample.judged if each.seen.passed is False), None)
    if first is None:
        return f"It ended with an error: {sample.error}"
    words = f"Expected: {first.check.words}; {first.seen.words}"
    return f"{words}. {played.unplayable}" if sample.is_recording else words


def _passed(samples: Sequence[Sample], passed: int, played: Played) -> str:
    if passed < played.asked:
        return _share(passed, played).removesuffix(". ")
    number = len(samples[0].judged)
    checks = {1: "the check passed", 2: "both checks passed"}.get(number, f"all {number} checks passed")
    return checks.capitalize() if played.asked == 1 else f"In all {played.asked} samples {checks}"


def _uncovered(samples: Sequence[Sample], played: Played) -> str:
    unseen = (each for sample in samples for each in sample.judged if each.seen.passed is None)
    first = next(unseen, None)
    if first is None:
        return f"Only {len(samples)} were made: {played.words}"
    return f"Not judged: {first.check.words}; {first.seen.words}"


def _merged(samples: Sequence[Sequence[Judged]]) -> list[JsonObject]:
    """Each check once; of several samples the first in which it failed is told, and in how many it held."""
    return [_of_one(column) for column in zip(*samples, strict=True)]


def _of_one(column: tuple[Judged, ...]) -> JsonObject:
    told = min(column, key=lambda each: _ORDER[each.seen.passed])
    counted = {"samples": len(column), "held": sum(each.seen.passed is True for each in column)}
    return told.to_json() | (counted if len(column) > 1 else {})


_ORDER = {False: 0, None: 1, True: 2}
