"""The way from a complaint to a fix that stays: seven steps, what was done at each, and what is missing.

    1 gather evidence  2 extract the session  3 build the replay model  4 run a deterministic replay
      ↑                                                        reproduces? yes → 5 debug → 7 fix and regression test
      └────────────────── new attempt ←────────────────────────────────── no → 6 check external factors
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sessions_app.core.judge.reading import count, join_words
from sessions_app.core.run import Run, fixtures, main_model_calls

StepState = Literal["open", "done", "not_possible", "not_needed", "not_available"]
"""`not_available`: this server cannot do it yet, whatever the recording holds."""
Action = Literal["session", "record", "replay", "breakpoints", "fork", "forks"]
AttemptKind = Literal["replay", "fork"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A replay of the run, or a fork that grew out of it, as far as the workflow asks."""

    replay_id: str
    number: int
    kind: AttemptKind
    """A `replay` changed nothing, be it of the recording or with the team's own code."""
    words: str
    """`replay #2`, `fork #3 at step 4`."""
    is_over: bool
    verdict: str | None
    """None while it is open, and for what was cancelled or died."""
    differs_at: int | None = None
    has_stops: bool = False
    """Whether it was asked to pause, or pauses."""
    expectation: str = ""
    """What was expected of a fork, in words; empty where nothing was."""
    met: bool | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """All that the seven steps are made of."""

    run: Run
    """Its histories are not looked at."""
    story: str
    odd: int
    """Anomalies that were found."""
    first_odd: int | None
    """The step to look at first."""
    kit_captured: int
    kit_missing: tuple[str, ...]
    """Titles of the kit's lines that were not captured in full."""
    kit_total: int
    verdict: str
    """`replayable`, `replayable_to_step` or `cold`."""
    verdict_step: int | None
    reasons: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    """In the order in which they were asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """What shows that something was done: a replay, or a step of the run."""

    words: str
    replay_id: str | None = None
    step: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkflowStep:
    """One of the seven."""

    number: int
    title: str
    state: StepState
    words: str
    missing: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    action: Action | None = None
    """What can be done next for it; None where nothing can."""
    is_next: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Workflow:
    """The seven steps, and the answer to the question between them."""

    reproduces: bool | None
    """None while no attempt says so or otherwise."""
    decided_by: Attempt | None
    steps: tuple[WorkflowStep, ...]

    @property
    def next_step(self) -> WorkflowStep | None:
        return next((step for step in self.steps if step.is_next), None)


NOT_REPRODUCED = {
    "diverged": "took another course",
    "ran_past_recording": "asked for more than was recorded",
    "answers_left_over": "left recorded answers unused",
    "fixture_missing": "asked for an answer that was not recorded",
    "unknown_from_step": "came to a request that nothing could answer",
    "could_not_run": "could not run",
}
"""Verdicts of a replay that changed nothing, in words."""


def workflow(facts: Facts) -> Workflow:
    """Where the reproduction of a run stands."""
    decider = _decider(facts)
    reproduces = None if decider is None else _says(decider)
    made = (_evidence(facts), _session(facts), _model(facts), _replay(facts, decider), *_after(facts, decider))
    return Workflow(reproduces=reproduces, decided_by=decider, steps=_with_next(made, reproduces))


def _with_next(steps: tuple[WorkflowStep, ...], reproduces: bool | None) -> tuple[WorkflowStep, ...]:
    """The first open one; where it does not reproduce, the factors come before anything is debugged."""
    order = (1, 2, 3, 4, 6, 5, 7) if reproduces is False else (1, 2, 3, 4, 5, 6, 7)
    found = next((number for number in order if steps[number - 1].state == "open"), None)
    return tuple(replace(step, is_next=step.number == found) for step in steps)


# --- does it reproduce? ------------------------------------------------------------------------


def _decider(facts: Facts) -> Attempt | None:
    """The newest attempt that says whether the run reproduces.

    A fork says so only until a replay that changed nothing has reproduced the run: from then on it is debugging, and
    an expectation that is not met says nothing against the reproduction.
    """
    plain = [attempt for attempt in facts.attempts if attempt.kind == "replay" and _says(attempt) is not None]
    if any(_says(attempt) for attempt in plain):
        return plain[-1]
    return next((attempt for attempt in reversed(facts.attempts) if _says(attempt) is not None), None)


def _says(attempt: Attempt) -> bool | None:
    if not attempt.is_over:
        return None
    if attempt.kind == "fork":
        return attempt.met
    return True if attempt.verdict == "reproduced" else False if attempt.verdict in NOT_REPRODUCED else None


def _failed(facts: Facts) -> list[Attempt]:
    """Attempts that did not reproduce the run."""
    decided = _decider(facts)
    kinds = {"replay"} if decided is None or decided.kind == "replay" else {"replay", "fork"}
    return [attempt for attempt in facts.attempts if attempt.kind in kinds and _says(attempt) is False]


def outcome_words(attempt: Attempt) -> str:
    """`replay #2 reproduced the run`, `replay #3 took another course at step 4`."""
    return f"{attempt.words} {_outcome(attempt)}"


def _outcome(attempt: Attempt) -> str:
    if not attempt.is_over:
        return "is not over"
    if attempt.kind == "fork":
        return _fork_outcome(attempt)
    if attempt.verdict == "reproduced":
        return "reproduced the run"
    words = NOT_REPRODUCED.get(attempt.verdict or "", "did not come to its end")
    return f"{words} at step {attempt.differs_at}" if attempt.differs_at else words


def _fork_outcome(attempt: Attempt) -> str:
    if attempt.met is None:
        return "came to its end" if attempt.verdict in ("diverged", "reproduced") else "did not come to its end"
    return f"{'ended' if attempt.met else 'did not end'} as expected: {attempt.expectation}"


def _shown(attempts: list[Attempt]) -> tuple[Evidence, ...]:
    """The newest first."""
    return tuple(Evidence(words=outcome_words(each), replay_id=each.replay_id) for each in reversed(attempts))
