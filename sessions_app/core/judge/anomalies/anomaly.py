"""Something odd about a run, and the limits that a team may set."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.payload import JsonObject

Level = Literal["warning", "info"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Anomaly:
    """Something odd, and the steps that show it."""

    code: str
    message: str
    steps: tuple[int, ...] = ()
    level: Level = "warning"

    @property
    def odd_step(self) -> int | None:
        """Where a reader should look first: the repeat, and not what it repeats."""
        if not self.steps:
            return None
        return self.steps[-1] if self.code in _SHOWN_AT_LAST else self.steps[0]

    @property
    def weight(self) -> int:
        """What went wrong weighs 0; 1 is what may well be as it was meant, such as a call that was made again; the mere
        number of calls comes last."""
        return 2 if self.code == "many_tool_calls" else int(self.code in _MAY_BE_MEANT)

    @property
    def is_doubt(self) -> bool:
        """Whether it may be that the answer is wrong."""
        return self.level == "warning" or self.code in _DOUBTS

    @classmethod
    def from_json(cls, item: JsonObject) -> Anomaly:
        """As `to_json` wrote it."""
        steps = tuple(item.get("steps") or ())
        return cls(code=item["code"], message=item["message"], steps=steps, level=item.get("level", "warning"))

    def to_json(self) -> JsonObject:
        steps = list(self.steps)
        return {"code": self.code, "message": self.message, "steps": steps, "level": self.level}


_MAY_BE_MEANT = frozenset(
    {
        "duplicate_call",
        "asked_again",
        "unnamed_id",
        "other_id",
        "unscoped_call",
        "used_of_other",
        "model_changed",
        "other_model_answered",
        "spans_lost",
    }
)


_DOUBTS = frozenset({"no_source", "other_total", "warning_unsaid", "other_shape"})


_SHOWN_AT_LAST = frozenset(
    {
        "duplicate_call",
        "override_unsaid",
        "acted_too_soon",
        "state_forbids",
        "instruction_followed",
        "model_changed",
        "state_chain_broken",
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What a team may set."""

    max_tool_calls: int = 10
    error_words: tuple[str, ...] = ("error", "sorry", "unable", "failed", "can't")
    slow_step_ms: float = 30_000
    off: tuple[str, ...] = ()
    """Codes of rules that find nothing."""


def first_odd(anomalies: Iterable[Anomaly]) -> Anomaly | None:
    """Of what went wrong, where anything did; a repeat before it leads astray."""
    odd = [each for each in anomalies if each.level == "warning" and each.steps]
    return min(odd, key=lambda each: (each.weight, each.odd_step or 0), default=None)


def first_odd_step(anomalies: Iterable[Anomaly]) -> int | None:
    found = first_odd(anomalies)
    return found.odd_step if found else None
