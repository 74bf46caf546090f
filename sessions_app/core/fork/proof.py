"""What is known of a fork beside the run that it was forked from."""

from __future__ import annotations

from sessions_app.core.compare.runs import Comparison
from sessions_app.core.replay.ending import Ending
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.proof import PARTS, PROVEN, Part, Proof, differs_at


def prove_fork(comparison: Comparison, divergence: Divergence | None, ending: Ending) -> Proof:
    """A fork that takes another course proves nothing of its parent; one that does not shows the same outcome, where
    both have one."""
    if divergence is not None:
        same = max((divergence.step or len(comparison.left.steps) + 1) - 1, 0)
        return Proof(same_steps=same, parts=dict.fromkeys(PARTS, differs_at(divergence)), outcome_kind=ending.kind)
    parts = {**dict.fromkeys(PARTS, PROVEN), "outcome": _outcome(comparison)}
    return Proof(same_steps=len(comparison.left.steps), parts=parts, outcome_kind=ending.kind)


def _outcome(comparison: Comparison) -> Part:
    facts = {fact.name: fact for fact in comparison.facts}
    has_outcome = any(facts[name].left is not None for name in ("output", "error"))
    if has_outcome and all(facts[name].status == "same" for name in ("output", "error", "status")):
        return PROVEN
    if comparison.left.status == "cut_off" and facts["final"].status == "same":
        return PROVEN
    return Part(state="not_comparable", reason="What the run that it was forked from ended with was not recorded")
