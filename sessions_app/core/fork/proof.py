"""What is known of a fork beside the run that it was forked from."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.compare.runs import Comparison
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.replay.ending import Ending
from sessions_app.core.replay.observed import Divergence, States
from sessions_app.core.replay.plan import played_steps
from sessions_app.core.replay.proof import (
    PROVEN,
    Part,
    PartName,
    Proof,
    differing,
    not_comparable,
    part_of,
    up_to,
)
from sessions_app.core.replay.ran_with import arguments_of_fork
from sessions_app.core.run import ModelCall, Run
from sessions_app.core.state import lack_of_states
from sessions_app.core.unplayed import unplayed


def prove_fork(
    comparison: Comparison,
    divergence: Divergence | None,
    ending: Ending,
    limit: Reason | None,
    *,
    model: Part,
    states: States,
) -> Proof:
    """A fork that takes another course proves nothing of its parent; one that does not shows the same outcome, where
    both have one. `model` says what was shown of the model that was asked."""
    parent = comparison.left
    parts: dict[PartName, Part] = {
        "requests": _recorded(parent, lambda call: call.history, "the messages of the requests were not recorded"),
        "parameters": _recorded(parent, lambda call: call.parameters, "tools and output schema were not recorded"),
        "model": model,
        "tool_arguments": arguments_of_fork(parent, comparison.right),
        "state": _state(parent, states),
        "outcome": _outcome(comparison, limit),
    }
    steps = played_steps(parent)
    proof = Proof(same_steps=len(steps), parts=parts, outcome_kind=ending.kind, not_played=unplayed(parent))
    is_of_outcome = divergence is not None and part_of(divergence.path) == "outcome"
    if divergence is None or (is_of_outcome and limit is not None):
        return proof
    if is_of_outcome:
        return differing(proof, divergence)
    return differing(up_to(proof, steps, divergence.step), divergence)


def _state(parent: Run, states: States) -> Part:
    lack = lack_of_states(parent)
    if lack is not None:
        return not_comparable(lack)
    if states == "carried":
        return not_comparable("carried over from the recording, as far as its steps happened again")
    if states == "changed":
        return not_comparable("read from your code, which began with the changed state")
    if states == "unknown":
        return not_comparable("the agent does not define how to read its state")
    return PROVEN


def _recorded(run: Run, read: Callable[[ModelCall], object], reason: str) -> Part:
    return PROVEN if all(read(call) is not None for _, call in run.model_calls) else not_comparable(reason)


def _outcome(comparison: Comparison, limit: Reason | None) -> Part:
    if limit is not None:
        return not_comparable(limit.message.removesuffix("."))
    facts = {fact.name: fact for fact in comparison.facts}
    has_outcome = any(facts[name].left is not None for name in ("output", "error"))
    if has_outcome:
        is_same = has_same_outcome(comparison)
        return PROVEN if is_same else Part(state="not_proven", reason="differs from the recorded one")
    if comparison.left.status == "cut_off" and facts["final"].status == "same":
        return PROVEN
    return not_comparable("the outcome of the parent run was not recorded")


def has_same_outcome(comparison: Comparison) -> bool:
    """Of runs that have one."""
    facts = {fact.name: fact for fact in comparison.facts}
    return all(facts[name].status == "same" for name in ("output", "error", "status"))
