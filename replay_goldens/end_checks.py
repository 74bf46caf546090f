"""Checks of how a run ends: its answer, its length, its cost, its state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from replay_goldens.call_checks import HOW
from replay_goldens.comparing import Comparison, read_comparison
from replay_goldens.judged import Check, Seen, at_most, counted, never
from replay_goldens.reading import CheckError, CheckFields
from replay_goldens.trace import Trace
from replay_goldens.values import NothingThere, short, value_at

OF_TEXT = ("contains", "contains_any", "not_contains", "matches", "equals", "more_than", "less_than")
"""The same, in the order in which answers are checked."""


@dataclass(frozen=True)
class Output(Check):
    """What the run answers, as a whole or at a place of it."""

    kind: ClassVar[str] = "output"
    path: str
    comparison: Comparison

    @classmethod
    def read(cls, fields: CheckFields) -> Output:
        fields.refuse_others(("path", *OF_TEXT))
        return cls(path=fields.optional_path(), comparison=read_comparison(fields, OF_TEXT))

    @property
    def words(self) -> str:
        return f"{self.path + ' of ' if self.path else ''}the answer {self.comparison.words}"

    def judge(self, trace: Trace) -> Seen:
        if trace.output_text is None and trace.error is not None and trace.has_failed:
            return Seen(False, f"it ended with an error: {short(trace.error)}")
        if trace.why_answer_unknown is not None:
            return Seen(None, trace.why_answer_unknown)
        if trace.output_text is None:
            return Seen(False if trace.has_ended else None, f"it gave no answer; {trace.why_not_ended}")
        try:
            value = value_at(trace.output, self.path) if self.path else trace.output_text
        except NothingThere as error:
            return Seen(False, str(error))
        return Seen(self.comparison.holds(value), f"it answered “{short(value)}”")

    def to_json(self) -> dict[str, Any]:
        path = {"path": self.path} if self.path else {}
        return {"kind": self.kind, **path, **self.comparison.to_json()}


@dataclass(frozen=True)
class EndsWithin(Check):
    """The run comes to its end within so many steps."""

    kind: ClassVar[str] = "ends_within"
    n: int

    @classmethod
    def read(cls, fields: CheckFields) -> EndsWithin:
        fields.refuse_others(("n",))
        return cls(n=fields.whole_number("n", least=1))

    @property
    def words(self) -> str:
        return f"ends within {counted(self.n, 'step')}"

    def judge(self, trace: Trace) -> Seen:
        seen = trace.chosen
        verb = "ended after" if seen.has_ended else "made"
        return at_most(seen, seen.steps, self.n, f"it {verb} {counted(seen.steps, 'step')}")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "n": self.n}


@dataclass(frozen=True)
class CostBelow(Check):
    """All model calls together cost less than this."""

    kind: ClassVar[str] = "cost_below"
    usd: float

    @classmethod
    def read(cls, fields: CheckFields) -> CostBelow:
        fields.refuse_others(("usd",))
        usd = fields.number("usd")
        if usd <= 0:
            raise CheckError(f"{fields.place('usd')} must be more than 0.", field=fields.place("usd"))
        return cls(usd=usd)

    @property
    def words(self) -> str:
        return f"costs less than ${self.usd:g}"

    def judge(self, trace: Trace) -> Seen:
        if trace.cost_usd is None:
            return Seen(None, "what the model calls cost was not recorded")
        cost = trace.chosen.cost_usd or 0
        seen = f"it cost ${cost:g}"
        return never(trace.chosen, seen if cost >= self.usd else None, seen)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "usd": self.usd}


@dataclass(frozen=True)
class State(Check):
    """A value in the agent's state, behind a step or at the end."""

    kind: ClassVar[str] = "state"
    step: int | Literal["end"]
    path: str
    comparison: Comparison

    @classmethod
    def read(cls, fields: CheckFields) -> State:
        fields.refuse_others(("step", "path", *HOW))
        at_end = not fields.has("step") or fields.json("step") == "end"
        step: int | Literal["end"] = "end" if at_end else fields.whole_number("step", least=1)
        return cls(step=step, path=fields.path(), comparison=read_comparison(fields, HOW))

    @property
    def words(self) -> str:
        return f"{self.path or 'the state'} {self.comparison.words} {self._place}"

    @property
    def _place(self) -> str:
        return "at the end" if self.step == "end" else f"after step {self.step}"

    def judge(self, trace: Trace) -> Seen:
        if trace.state_after is None:
            return Seen(None, "no state was recorded")
        if self.step == "end" and not trace.has_ended:
            return Seen(None, trace.why_not_ended)
        try:
            value = value_at(trace.state_after(None if self.step == "end" else self.step), self.path)
        except NothingThere as error:
            return Seen(False, f"{self._place}: {error}")
        except LookupError as error:
            return Seen(False if trace.has_ended else None, str(error))
        return Seen(self.comparison.holds(value), f"{self._place}, {self.path or 'the state'} is {short(value)}")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "step": self.step, "path": self.path, **self.comparison.to_json()}
