"""How tools did over many runs: calls, errors, retries, how long they took, and answers that changed between runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sessions_app.core.step_summary import StepSummary

RunT = TypeVar("RunT")

MANY = 5
"""Calls, from which on it means something how long 95 of 100 took."""
_MIDDLE = 50


@dataclass(frozen=True, slots=True)
class Call(Generic[RunT]):
    """One call of a tool, and in which run."""

    run: RunT
    step: StepSummary
    is_retry: bool
    """The last call with the same arguments failed."""

    @property
    def has_failed(self) -> bool:
        return self.step.has_failed or self.step.outcome == "retried"


@dataclass(slots=True)
class ToolFigures(Generic[RunT]):
    """All calls of one tool, in the order of the runs."""

    name: str
    calls: list[Call[RunT]] = field(default_factory=list)
    runs: int = 0

    @property
    def failed(self) -> list[Call[RunT]]:
        return [call for call in self.calls if call.has_failed]

    @property
    def retries(self) -> list[Call[RunT]]:
        return [call for call in self.calls if call.is_retry]

    @property
    def slowest(self) -> list[Call[RunT]]:
        """Those whose time was captured, the slowest first."""
        timed = [call for call in self.calls if call.step.duration_ms is not None]
        return sorted(timed, key=lambda call: -(call.step.duration_ms or 0))

    def percentile(self, percent: int) -> float | None:
        """By nearest rank: a time that a call really took. None where no time was captured, and far from the middle
        also where too few were."""
        took = sorted(call.step.duration_ms for call in self.calls if call.step.duration_ms is not None)
        is_known = len(took) >= (1 if percent == _MIDDLE else MANY)
        return took[-(-len(took) * percent // 100) - 1] if is_known else None

    @property
    def drifted(self) -> list[list[Call[RunT]]]:
        """Calls with the same arguments that were answered differently in different runs: of each answer the newest
        call. Within one run an answer may well change, as that of a tool that reads what another one wrote."""
        answers: dict[bytes, dict[bytes, Call[RunT]]] = defaultdict(dict)
        runs: dict[bytes, set[int]] = defaultdict(set)
        for call in self.calls:
            arguments, result = call.step.arguments_key, call.step.result_key
            if arguments and result and not call.has_failed:
                answers[arguments].setdefault(result, call)
                runs[arguments].add(id(call.run))
        several = [list(found.values()) for key, found in answers.items() if len(found) > 1 and len(runs[key]) > 1]
        return [calls for calls in several if len({id(call.run) for call in calls}) > 1]


def tool_figures(runs: Iterable[tuple[RunT, Sequence[StepSummary]]]) -> list[ToolFigures[RunT]]:
    """Those with most calls first. Linear in the steps."""
    tools: dict[str, ToolFigures[RunT]] = {}
    for run, steps in runs:
        called: set[str] = set()
        same: dict[tuple[str, bytes], Call[RunT]] = {}
        for step in steps:
            if step.kind != "tool":
                continue
            name = step.tool_name or step.name
            earlier = same.get((name, step.arguments_key)) if step.arguments_key else None
            call = Call(run, step, is_retry=earlier is not None and earlier.has_failed)
            tool = tools.setdefault(name, ToolFigures(name))
            tool.calls.append(call)
            tool.runs += name not in called
            called.add(name)
            if step.arguments_key:
                same[name, step.arguments_key] = call
    return sorted(tools.values(), key=lambda tool: (-len(tool.calls), tool.name))
