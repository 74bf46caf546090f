"""All checks: reading them from JSON, judging a run by them.

    {"kind": "at_most_calls", "tool", "n"}            {"kind": "tool_order", "tools"}
    {"kind": "arguments", "tool", "path", HOW}        {"kind": "result", "tool", ["path"], HOW}
    {"kind": "state", "step" | "end", "path", HOW}    {"kind": "output", ["path"], HOW}
    {"kind": "ends_within", "n"}                      {"kind": "cost_below", "usd"}
    {"kind": "no_value_of_other_user"}                {"kind": "no_write"}

HOW is one of `equals`, `contains`, `contains_any`, `matches`, `more_than`, `less_than`; of arguments and of the output
also `not_contains`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from replay_goldens.call_checks import Arguments, AtMostCalls, NoWrite, Result, ToolOrder
from replay_goldens.end_checks import CostBelow, EndsWithin, Output, State
from replay_goldens.judged import Check, Seen
from replay_goldens.owner_checks import NoValueOfOtherUser
from replay_goldens.reading import CheckError, CheckFields
from replay_goldens.trace import Json, Trace

MOST_CHECKS = 50
_READERS: dict[str, Callable[[CheckFields], Check]] = {
    AtMostCalls.kind: AtMostCalls.read,
    ToolOrder.kind: ToolOrder.read,
    Arguments.kind: Arguments.read,
    Result.kind: Result.read,
    State.kind: State.read,
    Output.kind: Output.read,
    EndsWithin.kind: EndsWithin.read,
    CostBelow.kind: CostBelow.read,
    NoValueOfOtherUser.kind: NoValueOfOtherUser.read,
    NoWrite.kind: NoWrite.read,
}
KINDS = tuple(_READERS)


@dataclass(frozen=True)
class Judged:
    """A check and what became of it in one run."""

    check: Check
    seen: Seen

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check.to_json(),
            "words": self.check.words,
            "passed": self.seen.passed,
            "seen": self.seen.words,
        }


def read_checks(value: Json, *, field: str = "checks") -> tuple[Check, ...]:
    """Raises `CheckError` naming the field."""
    if not isinstance(value, list) or not value or len(value) > MOST_CHECKS:
        raise CheckError(f"{field} must be a list of 1 to {MOST_CHECKS} checks.", field=field)
    return tuple(_read(item, f"{field}[{position}]") for position, item in enumerate(value))


def _read(value: Json, field: str) -> Check:
    fields = CheckFields(value, field)
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        raise CheckError(f"{field}.kind must be one of {', '.join(_READERS)}.", field=f"{field}.kind")
    return _READERS[kind](fields)


def judge(checks: Sequence[Check], trace: Trace) -> list[Judged]:
    """In the order of the checks."""
    return [Judged(check, check.judge(trace)) for check in checks]


def all_passed(judged: Sequence[Judged]) -> bool | None:
    """False where one failed, None where none failed and one could not be judged."""
    results = {each.seen.passed for each in judged}
    return False if False in results else None if None in results or not results else True
