"""A fork answered by a live model several times: how often it met what was expected, and how sure that is.

One such fork is a sample: it says what may happen and not what would have happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from sessions_app.core.judge.reading import argument_key
from sessions_app.core.payload import JsonObject, Payload, canonical_json, sha256_hex
from sessions_app.core.replay.proof import PROVEN, Part, PartName, Proof, not_comparable
from sessions_app.core.run import Run, main_model_calls
from sessions_app.core.state import lack_of_states

_MAX_WORDS = 300


def wilson(met: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Interval of the true share when `met` of `n` were seen (Wilson's score); with z = 1.96 at 95 %.

    From 0 to 1 when nothing was seen. Unlike the plain one it holds for few samples and for shares near 0 and 1.
    """
    if n == 0:
        return 0.0, 1.0
    share, spread = met / n, z * z / n
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / n + spread / (4 * n)) / (1 + spread)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


# --- before ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """What a sampling is likely to take, judged by what the recording took from the fork's step on."""

    requests: int
    input_tokens: int | None
    """None when the recording does not say it for each request."""
    output_tokens: int | None

    def to_json(self) -> JsonObject:
        return {
            "requests": self.requests,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }


def estimate(run: Run, at_step: int, n: int) -> Budget:
    """Of `n` samples of a fork from `at_step`. An agent that takes another course may need more."""
    calls = [call for step, call in main_model_calls(run) if step.index >= at_step]
    return Budget(
        requests=len(calls) * n,
        input_tokens=_times(n, [call.input_tokens for call in calls]),
        output_tokens=_times(n, [call.output_tokens for call in calls]),
    )


def _times(n: int, counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return n * sum(known) if len(known) == len(counts) else None


# --- outcomes ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How one sample ended. Outcomes with one `key` count as the same."""

    run_id: str
    key: str
    words: str
    met: bool | None = None
    """None when only a person can say."""
    differs: frozenset[PartName] = frozenset()
    """In what it is not what was recorded once more, of calls and outcome."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Samples that ended alike."""

    words: str
    """Of the first of them, shortened."""
    count: int
    run_ids: tuple[str, ...]

    def to_json(self) -> JsonObject:
        return {"words": self.words, "count": self.count, "run_ids": list(self.run_ids)}


def outcome_of(run: Run, met: bool | None = None) -> Outcome:
    """Alike are equal values, texts that differ in white space alone, and errors of one type."""
    kind, words = _without_output(run) if run.output is None else _output(run.output)
    key = sha256_hex(f"{kind}\n{words}".encode())
    return Outcome(run_id=run.run_id, key=key, words=words[:_MAX_WORDS], met=met)


def differing_in(recorded: Run, made: Run) -> frozenset[PartName]:
    """The calls of tools in their order with their arguments, and the outcome."""
    same: dict[PartName, bool] = {
        "tool_arguments": _calls(recorded) == _calls(made),
        "outcome": outcome_of(recorded).key == outcome_of(made).key,
    }
    return frozenset(part for part, is_same in same.items() if not is_same)


def _calls(run: Run) -> list[tuple[str, bytes]]:
    return [(call.tool_name, argument_key(call)) for _, call in run.tool_calls]


def _output(output: Payload) -> tuple[str, str]:
    value = output.parsed
    if isinstance(value, str):
        return "text", " ".join(value.split())
    return ("value", canonical_json(value).decode()) if value is not None else ("text", output.as_text())


def _without_output(run: Run) -> tuple[str, str]:
    return ("error", run.error.type or "error") if run.error else ("status", run.status)


def group_outcomes(outcomes: Iterable[Outcome]) -> list[Group]:
    """The largest group first; of equal ones the one that was seen first."""
    alike: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        alike.setdefault(outcome.key, []).append(outcome)
    groups = [
        Group(words=same[0].words, count=len(same), run_ids=tuple(outcome.run_id for outcome in same))
        for same in alike.values()
    ]
    return sorted(groups, key=lambda group: -group.count)


def prove_samples(samples: Samples, recorded: Run) -> Proof:
    """The requests of another model's course are no requests of the recording."""
    live = not_comparable("a live model answered")
    parts: dict[PartName, Part] = {
        "requests": live,
        "parameters": live,
        "model": live,
        "tool_arguments": _held(samples, "tool_arguments"),
        "state": not_comparable(lack_of_states(recorded) or "carried over from the recording, not run"),
        "outcome": _held(samples, "outcome"),
    }
    return Proof(same_steps=0, parts=parts, outcome_kind="error" if recorded.error else "answer")


def _held(samples: Samples, part: PartName) -> Part:
    others = sum(part in outcome.differs for outcome in samples.outcomes)
    if not others:
        return PROVEN
    return Part(state="not_proven", reason=f"differs in {others} of {len(samples.outcomes)} samples")


# --- all of them -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """The samples so far, of `n` that were asked for. `errors` are the reasons of those that came to no outcome."""

    n: int
    outcomes: tuple[Outcome, ...] = ()
    errors: tuple[str, ...] = ()

    def add(self, outcome: Outcome) -> Samples:
        return replace(self, outcomes=(*self.outcomes, outcome))

    def fail(self, reason: str) -> Samples:
        """A sample without an outcome says nothing of the share and is counted apart."""
        return replace(self, errors=(*self.errors, reason))

    @property
    def again(self) -> int | None:
        """How many are what was recorded once more; None while there is no outcome."""
        return sum(not outcome.differs for outcome in self.outcomes) if self.outcomes else None

    @property
    def came_again_each_time(self) -> bool:
        """Of those that came to an outcome, of which there must be one."""
        return bool(self.again) and self.again == len(self.outcomes)

    def to_json(self) -> JsonObject:
        """`met` and `interval` are None while nothing was judged; their whole is `done` less `unjudged`."""
        judged = [outcome.met for outcome in self.outcomes if outcome.met is not None]
        return {
            "n": self.n,
            "done": len(self.outcomes),
            "again": self.again,
            "met": sum(judged) if judged else None,
            "unjudged": len(self.outcomes) - len(judged),
            "interval": list(wilson(sum(judged), len(judged))) if judged else None,
            "groups": [group.to_json() for group in group_outcomes(self.outcomes)],
            "errors": [{"words": words, "count": self.errors.count(words)} for words in dict.fromkeys(self.errors)],
        }
