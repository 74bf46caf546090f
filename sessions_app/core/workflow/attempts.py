"""Attempts at reproducing a run, and what they say together: does it reproduce?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.fork.expected_words import Unproven, with_source

AttemptKind = Literal["replay", "fork"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """A replay of the run, or a fork that grew out of it, as far as the workflow asks."""

    replay_id: str
    kind: AttemptKind
    """A `replay` changed nothing, be it of the recording or with the team's own code."""
    words: str
    """`replay #2`, `fork #3 at step 4`."""
    is_over: bool
    verdict: str | None
    """None while it is open, and for what was cancelled or died."""
    differs_at: int | None = None
    has_stops: bool = False
    """Whether it was asked to pause somewhere."""
    expectation: str = ""
    """What was expected of a fork, in words; empty where nothing was."""
    met: bool | None = None
    unproven_source: Unproven | None = None
    """Of a fork, whose answer its outcome rests on where it does not follow from the change."""


NOT_REPRODUCED = {
    "diverged": "took a different course",
    "ran_past_recording": "asked for more than was recorded",
    "answers_left_over": "left recorded answers unused",
    "fixture_missing": "asked for an answer that was not recorded",
    "unknown_from_step": "found no recorded answer",
    "partial": "went as far as the recording reaches and stopped",
    "could_not_run": "could not run",
}
"""Verdicts of a replay that changed nothing, in words; `partial` is that of one which ended with its recording."""


SAYS_NOTHING = frozenset({"unknown_from_step", "partial", "could_not_run"})
"""Here the recording ends, or cannot be read: another attempt would end in the same place."""


def deciding(attempts: Sequence[Attempt]) -> Attempt | None:
    """The newest attempt that says whether the run reproduces; they come in the order in which they were asked for.

    A fork says so only until a replay that changed nothing has reproduced the run: from then on it is debugging, and
    an expectation that is not met says nothing against the reproduction.
    """
    return next((attempt for attempt in reversed(_heard(attempts)) if reproduces(attempt) is not None), None)


def not_reproduced(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Those that say the run does not reproduce."""
    return [attempt for attempt in _heard(attempts) if reproduces(attempt) is False]


def _heard(attempts: Sequence[Attempt]) -> Sequence[Attempt]:
    plain = [attempt for attempt in attempts if attempt.kind == "replay"]
    return plain if any(reproduces(attempt) for attempt in plain) else attempts


def reproduces(attempt: Attempt) -> bool | None:
    """None when it says nothing: it is open, was cancelled, or is a fork of which nothing was expected or
    whose outcome does not follow from its change."""
    if not attempt.is_over:
        return None
    if attempt.kind == "fork":
        return None if attempt.unproven_source else attempt.met
    if attempt.verdict in SAYS_NOTHING:
        return None
    return True if attempt.verdict == "reproduced" else False if attempt.verdict in NOT_REPRODUCED else None


def outcome_words(attempt: Attempt) -> str:
    """`replay #2 reproduced the run`, `replay #3 took another course at step 4`."""
    return f"{attempt.words} {_outcome(attempt)}"


def _outcome(attempt: Attempt) -> str:
    if not attempt.is_over:
        return "has not finished"
    if attempt.kind == "fork":
        return _fork_outcome(attempt)
    if attempt.verdict == "reproduced":
        return "reproduced the run"
    words = NOT_REPRODUCED.get(attempt.verdict or "", "did not finish")
    return f"{words} at step {attempt.differs_at}" if attempt.differs_at else words


def _fork_outcome(attempt: Attempt) -> str:
    if attempt.met is None:
        if attempt.verdict == "unknown_from_step":
            return "waits for an answer"
        return "finished" if attempt.verdict in ("diverged", "reproduced") else "did not finish"
    ended = f"{'ended' if attempt.met else 'did not end'} as expected"
    return f"{with_source(ended, attempt.unproven_source)}: {attempt.expectation}"
