"""Whether the fixes of a project still hold: all its goldens, the ones that need somebody first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sessions_app.core.goldens.results import Result
from sessions_app.models import Project
from sessions_app.models.replays import ReplayMode
from sessions_app.queries.goldens import goldens_of, last_results, unsettled_runs
from sessions_app.services.golden_runs import settle

_WORDS = {
    "fail": "failed",
    "could_not_run": "could not run",
    "nothing_covered": "not judged",
    "open": "not finished",
    "never": "never run",
    "pass": "passed",
    "quarantined": "in quarantine",
}
"""In the order in which they need somebody."""
_PLACE = {name: place for place, name in enumerate(_WORDS)}
_UNJUDGED = ("could_not_run", "nothing_covered")


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """All goldens of a project by what their last runs came to; those in quarantine are counted apart."""

    ranked: Sequence[int]
    """Their keys, the ones that need somebody first and of these the newest."""
    tells_of_code: bool
    """Whether one that fails runs code: what repeats a recording fails whatever the code does."""
    counted: Mapping[str, int]
    without_code: int
    """Those that repeat their recording, which no code can make fail."""
    of_recordings: int
    """Of those that passed, the ones that replay their recording and run no code."""

    @property
    def total(self) -> int:
        return len(self.ranked)

    @property
    def fails(self) -> int:
        return self._of("fail")

    @property
    def others(self) -> list[tuple[int, str]]:
        """What the story leaves out."""
        told = ("fail", "never") if self.fails else ("pass", "never") if self._is_about_passes else ("pass",)
        return [(number, words) for name, words in _WORDS.items() if name not in told and (number := self._of(name))]

    @property
    def story(self) -> str:
        if self.fails:
            return self._failing
        if unjudged := self._of(*_UNJUDGED):
            return f"No golden failed, but {unjudged} of {self.total} could not be judged."
        if still := self._of("open"):
            return f"{still} golden{'' if still == 1 else 's'} still running, none failed."
        return self._passes

    @property
    def _failing(self) -> str:
        """What never ran is none of those that could have failed."""
        failed = "failed" if self.tells_of_code else f"fail{'s' if self.fails == 1 else ''} on the recording itself"
        if never := self._of("never"):
            return f"{_goldens(self.fails)} {failed}, {never} not run yet."
        return f"{self.fails} of {_goldens(self.total)} {failed}."

    @property
    def _is_about_passes(self) -> bool:
        return not self._of("fail", "open", *_UNJUDGED)

    @property
    def _passes(self) -> str:
        total, holding, never = self.total, self._of("pass"), self._of("never")
        whose = (
            "Your golden"
            if total == 1
            else f"All {total} goldens"
            if holding == total
            else f"{holding} of {_goldens(total)}"
        )
        told = [f"{whose} {self._hold}{self._untested}"] if holding else []
        told += [f"{never if told else _goldens(never)} not run yet"] if never else []
        return f"{'; '.join(told) or 'All goldens are in quarantine'}."

    @property
    def _hold(self) -> str:
        """A recording that passes again shows nothing of the code, so that nothing is said to hold."""
        verb = "pass" if self.of_recordings == self._of("pass") else "hold"
        return verb if self._of("pass") > 1 else f"{verb}es" if verb == "pass" else f"{verb}s"

    @property
    def _untested(self) -> str:
        if not self.of_recordings:
            return ""
        if self.of_recordings < self._of("pass"):
            return f", {self.of_recordings} of them on {_recordings(self.of_recordings)} alone"
        return f" on {_recordings(self.of_recordings)} alone, which runs none of your code"

    def _of(self, *names: str) -> int:
        return sum(self.counted.get(name, 0) for name in names)


def standing_of(project: Project) -> Standing:
    """Four queries; what is over is judged first."""
    settle(unsettled_runs(project))
    results = last_results(project)
    rows = goldens_of(project).select_related(None).values_list("pk", "quarantined_at", "mode")
    modes = {pk: mode for pk, _, mode in rows}
    named = [(pk, "quarantined" if since else _name(pk, results)) for pk, since, _ in rows]
    ranked = sorted(named, key=lambda each: _PLACE[each[1]])
    return Standing(
        ranked=[pk for pk, _ in ranked],
        counted=Counter(name for _, name in named),
        without_code=sum(mode == ReplayMode.RECORDING for mode in modes.values()),
        of_recordings=sum(name == "pass" and modes[pk] == ReplayMode.RECORDING for pk, name in named),
        tells_of_code=any(name == "fail" and modes[pk] != ReplayMode.RECORDING for pk, name in named),
    )


def _name(pk: int, results: Mapping[int, Result | None]) -> str:
    return results[pk] or "open" if pk in results else "never"


def _goldens(number: int) -> str:
    return f"{number} golden{'' if number == 1 else 's'}"


def _recordings(number: int) -> str:
    return "its own recording" if number == 1 else "their own recordings"
