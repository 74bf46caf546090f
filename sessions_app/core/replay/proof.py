"""What a replay proved, part by part; every sentence about a replay is made of this.

    requests         the messages that the loop built for each request to the model
    parameters       the tool definitions and output schemas that went with them
    model            the id of the model that was asked, and the settings of the request
    tool_arguments   what the tools were called with
    state            the state of the agent, step by step
    outcome          what the run came to: an answer, an error, or calls that wait for somebody

A part is `proven` when both sides were there and were equal, `not_comparable` when one side was not there, and
`not_proven` when they differed or the replay did not get there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.run import Step

PartName = Literal["requests", "parameters", "model", "tool_arguments", "state", "outcome"]
PartState = Literal["proven", "not_proven", "not_comparable"]
OutcomeKind = Literal["answer", "error", "open calls"]
PARTS: tuple[PartName, ...] = ("requests", "parameters", "model", "tool_arguments", "state", "outcome")
PART_WORDS: dict[PartName, str] = {
    "requests": "requests to the model",
    "parameters": "tools and output schema",
    "model": "model and settings",
    "tool_arguments": "tool arguments",
    "state": "state",
    "outcome": "outcome",
}
STATE_WORDS: dict[PartState, str] = {
    "proven": "proven",
    "not_proven": "not proven",
    "not_comparable": "not comparable",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """One thing that a replay can prove."""

    state: PartState
    reason: str | None = None
    """Why it is not proven; by which rule it is equal, where it is not so to the letter."""

    def to_json(self) -> JsonObject:
        return {"state": self.state, "reason": self.reason}


PROVEN = Part(state="proven")


TAKEN = "taken from the recording"
"""Why something of a rebuilt agent cannot differ."""


GIVEN_TURNS = "the messages of earlier turns came from the recording, and the replay began with them"
INNER_REQUESTS = "those inside of tools and other agents were not made again"
"""Beside requests that are proven, which are those of the agent's own loop."""


def proven(*reasons: str | None) -> Part:
    """By a rule, or beside something that is to be told."""
    said = [each for each in reasons if each is not None]
    return Part(state="proven", reason="; ".join(said)) if said else PROVEN


def not_comparable(reason: str) -> Part:
    """One side was not there."""
    return Part(state="not_comparable", reason=reason)


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """All parts."""

    same_steps: int
    """Steps that were played, from the first on, and agree with the recording; 0 where no request could be compared."""
    parts: Mapping[PartName, Part]
    outcome_kind: OutcomeKind | None = None
    """What the loop came to; None when it did not come to an end."""
    not_played: Mapping[str, int] = field(default_factory=dict)
    """Recorded steps that no replay plays, by where they are (`core/unplayed.py`)."""

    @property
    def outcome(self) -> Part:
        return self.parts["outcome"]

    @property
    def has_same_outcome(self) -> bool | None:
        """None where the outcomes were not held against each other: a replay that stops earlier has none."""
        if self.outcome.state == "proven":
            return True
        return (
            False if self.outcome.state == "not_proven" and (self.outcome.reason or "").startswith("differs") else None
        )

    @property
    def is_reproduction(self) -> bool:
        """What was not recorded leaves nothing to prove, and is told; the outcome must be there, and equal."""
        return self.outcome.state == "proven" and all(part.state != "not_proven" for part in self.parts.values())

    def to_json(self) -> JsonObject:
        parts: JsonObject = {name: part.to_json() for name, part in self.parts.items()}
        counts: JsonObject = {"same_steps": self.same_steps, "not_played": dict(self.not_played)}
        return {**parts, "outcome_kind": self.outcome_kind, **counts}


def read_proof(value: JsonObject | None) -> Proof | None:
    """As `to_json` wrote it; None for a replay that has none, such as one that could not run."""
    if not value:
        return None
    parts = {name: Part(state=value[name]["state"], reason=value[name]["reason"]) for name in PARTS}
    return Proof(
        same_steps=value["same_steps"],
        parts=parts,
        outcome_kind=value["outcome_kind"],
        not_played=value["not_played"],
    )


def part_of(path: str) -> PartName | None:
    """Which part a difference at this path belongs to; None for what a tool or a model answered."""
    for part, beginnings in _BEGINNINGS.items():
        if path.startswith(beginnings):
            return part
    return None


_BEGINNINGS: dict[PartName, tuple[str, ...]] = {
    "state": ("state", "input_state", "initial_state"),
    "requests": ("messages", "request", "instructions", "prior", "input", "words_"),
    "parameters": ("parameters", "tools"),
    "model": ("model", "settings"),
    "tool_arguments": ("arguments", "args", "ran_with", "call_id", "tool_name"),
    "outcome": ("output", "error", "status", "open_calls", "final", "guardrails"),
}


def up_to(proof: Proof, played: Sequence[Step], step: int | None) -> Proof:
    """Of what lies behind the step nothing is known, and the outcome lies behind everything."""
    same = sum(each.index < (step or 1) for each in played)
    words = f"the replay agrees with the recording only up to step {(step or 1) - 1}"
    end = Part(state="not_proven", reason=words if (step or 1) > 1 else "the replay differs from its first step on")
    parts = {name: end if part.state == "proven" else part for name, part in proof.parts.items()}
    return replace(proof, same_steps=min(same, proof.same_steps), parts=parts)


def differing(proof: Proof, divergence: Divergence) -> Proof:
    part = part_of(divergence.path)
    return proof if part is None else replace(proof, parts={**proof.parts, part: differs_at(divergence)})


_DIFFERS = "differs at "


def differs_at(divergence: Divergence) -> Part:
    place = f"step {divergence.step}, {divergence.path}" if divergence.step else divergence.path
    return Part(state="not_proven", reason=f"{_DIFFERS}{place}")
