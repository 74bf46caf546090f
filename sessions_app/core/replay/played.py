"""A replay that is over, as its loop left it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sessions_app.core.fork.stops import Stopped
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.payload import JsonObject, Payload
from sessions_app.core.replay.fixture_book import FixtureMiss
from sessions_app.core.replay.observed import Divergence, Observations
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan
from sessions_app.core.replay.proof import (
    OutcomeKind,
    Part,
    part_of,
)
from sessions_app.core.replay.rewriting import Rewriting
from sessions_app.core.run import ErrorInfo, Fixture


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """Why the loop stopped."""

    output: Payload | None = None
    error: ErrorInfo | None = None
    open_calls: Mapping[str, str | None] | None = None
    """What the calls wait for (`run.WAITING`), by id; None when the loop did not end with any."""
    ran_past: int | None = None
    """Number of requests that had been answered when one more was made."""
    miss: FixtureMiss | None = None
    stopped: Stopped | None = None
    """It waits at a stop."""
    is_cut_short: bool = False
    """No recorded answer fitted what was asked for, so the replay was ended there."""

    @property
    def is_regular(self) -> bool:
        """Whether the loop came to an end of its own, good or bad."""
        is_stopped = self.stopped is not None or self.is_cut_short
        return self.ran_past is None and self.miss is None and not is_stopped

    @property
    def kind(self) -> OutcomeKind | None:
        if not self.is_regular:
            return None
        if self.error is not None:
            return "error"
        return "open calls" if self.open_calls is not None else "answer"


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """A replay that is over, as the loop left it."""

    plan: ReplayPlan
    observations: Observations
    ending: Ending
    divergence: Divergence | None
    """Of a request or a tool call."""
    not_captured: frozenset[str]
    """Paths of which the recording holds nothing, as the comparison tallied them."""
    limit: Reason | None = None
    """What ends a replay of this recording before its end, or keeps its outcome from being proven: what the judge said
    when it came in."""
    unused: tuple[PlannedAnswer, ...] = ()
    left_over: Sequence[Fixture] = ()
    kept: int = 0
    """Steps up to this index were not made again: a fork goes on from there."""
    rewritten: Mapping[int, Rewriting] = field(default_factory=dict)
    """Requests whose past was taken from the recording, for code had rewritten it that does not run; by their step."""
    taken_parameters: tuple[str, ...] = ()
    """What of them a rebuilt agent has from the recording."""
    taken_words: tuple[str, ...] = ()
    """What stands nowhere but in the requests, where the rebuilt agent takes it from there."""
    has_taken_feedback: bool = False
    """What a check of the output told the model was taken from the recording."""
    state: Part | None = None
    """What was proven of the state, where recorded and observed states were compared apart from the steps."""

    @property
    def rest(self) -> list[int]:
        """Steps whose recorded answers nobody asked for."""
        return sorted([answer.step for answer in self.unused] + [fixture.step for fixture in self.left_over])

    @property
    def steps(self) -> int:
        return len(self.plan.run.steps)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """What went another way first."""

    verdict: str
    divergence: Divergence
    facts: JsonObject

    @property
    def step(self) -> int | None:
        return self.divergence.step

    @property
    def is_of_outcome(self) -> bool:
        """Then all steps were equal."""
        return part_of(self.divergence.path) == "outcome" and "left_over" not in self.facts
