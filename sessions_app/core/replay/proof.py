"""What a replay proved, part by part; every sentence about a replay is made of this.

    requests         the messages that the loop built for each request to the model
    parameters       the tool definitions and output schemas that went with them
    tool_arguments   what the tools were called with
    outcome          what the run came to: an answer, an error, or calls that wait for somebody

A part is `proven` when both sides were there and were equal, `not_comparable` when one side was not there, and
`not_proven` when they differed or the replay did not get there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Divergence

PartName = Literal["requests", "parameters", "tool_arguments", "outcome"]
PartState = Literal["proven", "not_proven", "not_comparable"]
OutcomeKind = Literal["answer", "error", "open calls"]
PARTS: tuple[PartName, ...] = ("requests", "parameters", "tool_arguments", "outcome")
PART_WORDS: dict[PartName, str] = {
    "requests": "requests to the model",
    "parameters": "tools and output schema",
    "tool_arguments": "tool arguments",
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
    """Why it is not proven; None when it is."""

    def to_json(self) -> JsonObject:
        return {"state": self.state, "reason": self.reason}


PROVEN = Part(state="proven")


@dataclass(frozen=True, kw_only=True, slots=True)
class Proof:
    """All four parts."""

    same_steps: int
    """Steps from the first on that agree with the recording; 0 where no request could be compared."""
    parts: Mapping[PartName, Part]
    outcome_kind: OutcomeKind | None = None
    """What the loop came to; None when it did not come to an end."""

    @property
    def outcome(self) -> Part:
        return self.parts["outcome"]

    @property
    def is_reproduction(self) -> bool:
        """What was not recorded leaves nothing to prove, and is told; the outcome must be there, and equal."""
        return self.outcome.state == "proven" and all(part.state != "not_proven" for part in self.parts.values())

    @property
    def has_requests(self) -> bool:
        return self.parts["requests"].state == "proven"

    def to_json(self) -> JsonObject:
        parts: JsonObject = {name: part.to_json() for name, part in self.parts.items()}
        return {**parts, "outcome_kind": self.outcome_kind, "same_steps": self.same_steps}


def read_proof(value: JsonObject | None) -> Proof | None:
    """As `to_json` wrote it; None for a replay that has none, such as one that could not run."""
    if not value:
        return None
    parts = {name: Part(state=value[name]["state"], reason=value[name]["reason"]) for name in PARTS}
    return Proof(same_steps=value["same_steps"], parts=parts, outcome_kind=value["outcome_kind"])


def part_of(path: str) -> PartName:
    """Which part a difference at this path belongs to."""
    if path.startswith("parameters"):
        return "parameters"
    if path.startswith(("output", "error", "status", "open_calls")):
        return "outcome"
    return "tool_arguments" if path.startswith(("arguments", "call_id", "tool_name")) else "requests"


def differs_at(divergence: Divergence) -> Part:
    place = f"step {divergence.step}, {divergence.path}" if divergence.step else divergence.path
    return Part(state="not_proven", reason=f"differs at {place}")
