"""What a report says of a fork: what was changed, what was expected, and who answered after that."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.clipping import shortened
from sessions_app.core.fork.expected_words import (
    UNPROVEN,
    Unproven,
    ended_in_words,
    met_but_proves_nothing,
    met_in_words,
    proves_nothing,
    unproven_json,
)
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.proof import OutcomeKind, Proof

STEPS_IN_WORDS = 30
SEEN_IN_WORDS = 160


@dataclass(frozen=True, kw_only=True, slots=True)
class ForkedStep:
    """One step of the fork, from the step on at which it was forked."""

    index: int
    name: str
    source: str
    taken_from: tuple[str, int] | None = None
    """Run id and step of the recorded answer that stands in for one of its own."""
    arguments: str = ""
    """As lists show them."""
    error: str | None = None
    """What it failed with; empty where that was not recorded."""

    @property
    def words(self) -> str:
        source = self.source.replace("_", " ")
        place = f" from {self.taken_from[0]} step {self.taken_from[1]}" if self.taken_from else ""
        return f"{self.index} {self.name}: {source}{place}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """The outcomes of a fork, or of an unchanged scene, that ran several times with a live model."""

    n: int
    judged: int
    """Those that came to an outcome which a check could judge."""
    met: int | None
    """None when the expectation is one that only a person can judge."""
    interval: tuple[float, float] | None = None
    """Of the share that was met, 95 %; from 0 to 1."""
    done: int = 0
    """Those that came to an outcome."""
    again: int | None = None
    """Those that did the same again, calls and outcome; None where none came to an outcome."""
    outcomes: tuple[tuple[str, int], ...] = ()
    """How often which outcome came, the most frequent first."""

    @property
    def again_words(self) -> str:
        """Of an unchanged scene."""
        if self.n == 1:
            return "The live model did the same again" if self.again else "The live model did something different"
        failed = f"; {self.n - self.done} failed" if self.done < self.n else ""
        return f"The live model did the same again in {self.again or 0} of {self.done} samples{failed}"

    @property
    def words(self) -> str:
        if self.met is None or not self.judged:
            return f"{self.n} samples: read the outcomes"
        share = f"{_percent(self.met / self.judged)} %"
        low_high = (
            f", 95 % interval {_percent(self.interval[0])}–{_percent(self.interval[1])} %" if self.interval else ""
        )
        return f"{self.met} of {self.judged} as expected ({share}{low_high})"

    def to_json(self) -> JsonObject:
        return {
            "n": self.n,
            "done": self.done,
            "again": self.again,
            "judged": self.judged,
            "met": self.met,
            "interval": list(self.interval) if self.interval else None,
            "outcomes": [{"words": words, "count": number} for words, number in self.outcomes],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class ForkFacts:
    """A fork as it was asked for, and what came of it."""

    at_step: int
    changes: tuple[str, ...] = ()
    """In words; empty where a run that broke off goes on."""
    hypothesis: str = ""
    expected: str | None = None
    unmet: str = ""
    """What is true of the fork where it did not meet what was expected."""
    met: bool | None = None
    """None when only a person can say."""
    unproven_source: Unproven | None = None
    """Whose answer the outcome rests on where it does not follow from the change."""
    seen: str | None = None
    steps: tuple[ForkedStep, ...] = ()
    asked: str | None = None
    """What nothing could answer: `lookup_order`, or `the model`."""
    samples: Samples | None = None
    idle_rules: tuple[str, ...] = ()
    """Conditions of its rules, where none of them ever held."""

    @property
    def idle_words(self) -> str:
        """Empty where a rule applied, or there is none."""
        if not self.idle_rules:
            return ""
        rule, condition = ("rule", "its condition") if len(self.idle_rules) == 1 else ("rules", "their conditions")
        never = f"no step from step {self.at_step} on meets {condition} ({'; '.join(self.idle_rules)})"
        return f"The {rule} never applied: {never}. Change the condition."

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Names and words for a text."""
        rows = [("Forked at step", str(self.at_step)), ("Changes", "; ".join(self.changes) or "none")]
        rows += [("Hypothesis", self.hypothesis)] if self.hypothesis else []
        if self.expected is not None:
            rows.append(("Expected", f"{self.expected}: {met_in_words(self.met, self.unproven_source)}"))
        return [*rows, ("Samples", self.samples.words)] if self.samples else rows

    @property
    def answers(self) -> list[str]:
        """Each step after the fork and who answered it."""
        more = len(self.steps) - STEPS_IN_WORDS
        words = [step.words for step in self.steps[:STEPS_IN_WORDS]]
        return [*words, f"and {more} more"] if more > 0 else words

    def to_json(self) -> JsonObject:
        return {
            "at_step": self.at_step,
            "changes": list(self.changes),
            "hypothesis": self.hypothesis,
            "expected": self.expected,
            "met": self.met,
            "seen": self.seen,
            "unproven": unproven_json(self.unproven_source),
            "steps": [_step_json(step) for step in self.steps],
        }


def fork_in_words(
    fork: ForkFacts, verdict: str, proof: Proof | None, *, steps: int, stopped_at: int | None
) -> str | None:
    """None where the words for any replay say it: it could not run, or was cancelled."""
    if verdict == "unknown_from_step" and stopped_at is not None:
        return f"Stopped at step {stopped_at}: {fork.asked or 'the next step'}'s answer is unknown"
    if verdict not in ("diverged", "reproduced"):
        return None
    if fork.samples is not None:
        return fork.samples.words
    if fork.unproven_source == "code_not_run":
        return ended_in_words(fork.met, fork.unproven_source).capitalize()
    if fork.met and fork.unproven_source:
        return met_but_proves_nothing(fork.unproven_source)
    if fork.met is not None:
        return f"{ended_in_words(fork.met, fork.unproven_source).capitalize()}: {_judged(fork)}"
    kind = proof.outcome_kind if proof else None
    if verdict == "reproduced" and proof and proof.is_reproduction:
        return f"Same course: the same {_steps(proof.same_steps)} and the same {kind} as without the change"
    if verdict == "reproduced":
        return "No different course was seen; the outcome was not compared"
    ended = f"{'Different course' if fork.changes else 'Continued'}: ended {_ending(kind)} after {_steps(steps)}"
    return f"{ended}; {proves_nothing(fork.unproven_source)}" if fork.unproven_source in UNPROVEN else ended


def _judged(fork: ForkFacts) -> str:
    if fork.met:
        return fork.expected or ""
    seen = shortened(fork.seen, SEEN_IN_WORDS) if fork.seen else ""
    return f"{fork.unmet}{f'. {seen}' if seen else ''}"


def _ending(kind: OutcomeKind | None) -> str:
    return "without an outcome" if kind is None else f"with {kind}" if kind.endswith("s") else f"with an {kind}"


def _steps(number: int) -> str:
    return f"{number} step{'' if number == 1 else 's'}"


def _percent(share: float) -> int:
    return round(100 * share)


def _step_json(step: ForkedStep) -> JsonObject:
    taken = step.taken_from
    return {
        "step": step.index,
        "name": step.name,
        "source": step.source,
        "taken_from": None if taken is None else {"run_id": taken[0], "step": taken[1]},
    }
