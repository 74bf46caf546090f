"""What is known of a fork beside the run that it was forked from: what a replay of that run shows, as far as it is
repeated."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.compare.runs import Comparison
from sessions_app.core.replay.observed import Divergence, States
from sessions_app.core.replay.plan import played_steps
from sessions_app.core.replay.played import Played
from sessions_app.core.replay.proof import PROVEN, Part, Proof, differing, not_comparable, part_of, up_to
from sessions_app.core.replay.proving import prove
from sessions_app.core.run import Run
from sessions_app.core.state import lack_of_states


def prove_fork(played: Played, divergence: Divergence | None) -> Proof:
    """A fork that takes another course proves nothing of its parent; one that does not shows the same outcome, where
    both have one."""
    run, limit = played.plan.run, played.limit
    proof = prove(replace(played, state=_state(run, played.observations.states)))
    if limit is not None:
        proof = replace(proof, parts={**proof.parts, "outcome": not_comparable(limit.message.removesuffix("."))})
    is_of_outcome = divergence is not None and part_of(divergence.path) == "outcome"
    if divergence is None or (is_of_outcome and limit is not None):
        return proof
    if is_of_outcome:
        return differing(proof, divergence)
    return differing(up_to(proof, played_steps(run), divergence.step), divergence)


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


def has_same_outcome(comparison: Comparison) -> bool:
    """Of runs that have one."""
    facts = {fact.name: fact for fact in comparison.facts}
    return all(facts[name].status == "same" for name in ("output", "error", "status"))
