"""What a replay proved, for tests of pages and reports."""

from sessions_app.core.replay.proof import PARTS, PROVEN, OutcomeKind, Part, Proof


def make_proof(steps: int = 5, *, outcome: Part = PROVEN, kind: OutcomeKind = "answer") -> Proof:
    return Proof(same_steps=steps, parts={**dict.fromkeys(PARTS, PROVEN), "outcome": outcome}, outcome_kind=kind)
