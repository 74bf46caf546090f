"""The four things that a replay does, each as this replay did it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sessions_app.core.judge.reading import count
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.words import ReplayFacts


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessStep:
    """One of the four, and why it was not done."""

    title: str
    not_done: str | None = None
    """None when it was done."""

    @property
    def is_done(self) -> bool:
        return self.not_done is None

    @property
    def words(self) -> str:
        return self.title if self.not_done is None else f"{self.title}: {self.not_done}"

    def to_json(self) -> JsonObject:
        return {"title": self.title, "done": self.is_done, "why_not": self.not_done}


def harness_of(replay: ReplayFacts) -> list[HarnessStep]:
    """Empty for a replay that never ran."""
    return [HarnessStep(title=title, not_done=why_not(replay)) for title, why_not in HARNESS] if replay.has_run else []


def harness_in_words(steps: Sequence[HarnessStep]) -> str:
    """Those that were done, then those that were not and why."""
    done = ", ".join(step.title for step in steps if step.is_done)
    return "; ".join([*([done] if done else []), *(f"not done: {step.words}" for step in steps if not step.is_done)])


def _always(replay: ReplayFacts) -> None:
    return None


def _tools_ran(replay: ReplayFacts) -> str | None:
    if replay.runs_tools:
        ran = replay.tools_that_ran
        return f"your own code answered {count(ran, 'call')}" if ran else "no tool was called"
    if replay.live_tools:
        return f"{', '.join(replay.live_tools)} ran live"
    return None


def _model_answered(replay: ReplayFacts) -> str | None:
    return "a live model answered" if replay.has_live_model else None


def _nothing_to_compare(replay: ReplayFacts) -> str | None:
    compared = replay.proof is not None and replay.proof.has_same_outcome is not None
    return None if compared else "the outcomes were not compared"


HARNESS: tuple[tuple[str, Callable[[ReplayFacts], str | None]], ...] = (
    ("load run", _always),
    ("stub tools", _tools_ran),
    ("pin model", _model_answered),
    ("diff output", _nothing_to_compare),
)
"""What a replay does, in this order, and what to say where it did otherwise."""
