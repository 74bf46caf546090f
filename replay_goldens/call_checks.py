"""Checks of the calls of tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from replay_goldens.comparing import Comparison, read_comparison
from replay_goldens.judged import Check, Seen, at_most, counted, missing, never
from replay_goldens.reading import CheckFields
from replay_goldens.trace import ToolUse, Trace
from replay_goldens.values import NothingThere, short, value_at

HOW = ("equals", "contains", "contains_any", "matches", "more_than", "less_than")
OF_EACH = (*HOW, "not_contains")
"""Of what has to hold each time."""


@dataclass(frozen=True)
class AtMostCalls(Check):
    """A tool is called at most so often."""

    kind: ClassVar[str] = "at_most_calls"
    tool: str
    n: int

    @classmethod
    def read(cls, fields: CheckFields) -> AtMostCalls:
        fields.refuse_others(("tool", "n"))
        return cls(tool=fields.text("tool"), n=fields.whole_number("n"))

    @property
    def words(self) -> str:
        return f"at most {counted(self.n, 'call')} of {self.tool}" if self.n else f"{self.tool} is not called"

    def judge(self, trace: Trace) -> Seen:
        seen = len(trace.chosen.calls_of(self.tool))
        return at_most(trace.chosen, seen, self.n, f"{self.tool} was called {counted(seen, 'time')}")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "n": self.n}


@dataclass(frozen=True)
class ToolOrder(Check):
    """These tools are called in this order; other calls may stand between them."""

    kind: ClassVar[str] = "tool_order"
    tools: tuple[str, ...]

    @classmethod
    def read(cls, fields: CheckFields) -> ToolOrder:
        fields.refuse_others(("tools",))
        return cls(tools=fields.texts("tools"))

    @property
    def words(self) -> str:
        return f"tools are called in the order {', '.join(self.tools)}"

    def judge(self, trace: Trace) -> Seen:
        called = [call.tool for call in trace.chosen.calls]
        names = iter(called)
        lacking = next((tool for tool in self.tools if tool not in names), None)
        seen = "called: " + (short(", ".join(called)) or "no tool")
        if lacking is None:
            return Seen(True, seen)
        return missing(trace.chosen, f"{lacking} is missing at its place; {seen}")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tools": list(self.tools)}


@dataclass(frozen=True)
class Arguments(Check):
    """A tool is called, each time with this value in its arguments."""

    kind: ClassVar[str] = "arguments"
    tool: str
    path: str
    comparison: Comparison

    @classmethod
    def read(cls, fields: CheckFields) -> Arguments:
        fields.refuse_others(("tool", "path", *OF_EACH))
        return cls(tool=fields.text("tool"), path=fields.optional_path(), comparison=read_comparison(fields, OF_EACH))

    @property
    def words(self) -> str:
        where = self.path.removeprefix("/") or "arguments"
        if self.comparison.name == "equals":
            return f"{self.tool} is called with {where} {self.comparison.words.removeprefix('is ')}"
        return f"{self.tool} is called with {where} that {self.comparison.words}"

    def judge(self, trace: Trace) -> Seen:
        calls = trace.calls_of(self.tool)
        if not calls:
            return missing(trace.chosen, f"{self.tool} was not called")
        other = next((call for call in calls if not _holds_at(call.arguments, self.path, self.comparison)), None)
        unknown = next((call for call in calls if trace.is_of_another(call)), None)
        told = other or unknown or calls[-1]
        seen = f"step {told.step}: {self.tool} was called with {short(told.arguments)}"
        return missing(trace.chosen, seen) if other is None and unknown else Seen(other is None, seen)

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "tool": self.tool, "path": self.path, **self.comparison.to_json()}


@dataclass(frozen=True)
class Result(Check):
    """A tool answers with this, at least once."""

    kind: ClassVar[str] = "result"
    tool: str
    path: str
    comparison: Comparison

    @classmethod
    def read(cls, fields: CheckFields) -> Result:
        fields.refuse_others(("tool", "path", *HOW))
        return cls(tool=fields.text("tool"), path=fields.optional_path(), comparison=read_comparison(fields, HOW))

    @property
    def words(self) -> str:
        return f"{self.path + ' of ' if self.path else ''}an answer of {self.tool} {self.comparison.words}"

    def judge(self, trace: Trace) -> Seen:
        calls = trace.calls_of(self.tool)
        if not calls:
            return missing(trace.chosen, f"{self.tool} was not called")
        found = next((call for call in calls if self._fits(call)), None)
        told = found or calls[-1]
        seen = f"step {told.step}: {self.tool} answered {short(_answer(told))}"
        return Seen(True, seen) if found else missing(trace, seen)

    def _fits(self, call: ToolUse) -> bool:
        answers = tuple(call.answers) or (call.error,)
        return any(_holds_at(answer, self.path, self.comparison) for answer in answers)

    def to_json(self) -> dict[str, Any]:
        path = {"path": self.path} if self.path else {}
        return {"kind": self.kind, "tool": self.tool, **path, **self.comparison.to_json()}


@dataclass(frozen=True)
class NoWrite(Check):
    """No tool is called that changes something. Which do, the recording says, or the check with `tools`."""

    kind: ClassVar[str] = "no_write"
    tools: tuple[str, ...] = ()

    @classmethod
    def read(cls, fields: CheckFields) -> NoWrite:
        fields.refuse_others(("tools",))
        return cls(tools=fields.texts("tools") if fields.has("tools") else ())

    @property
    def words(self) -> str:
        named = f" ({', '.join(self.tools)})" if self.tools else ""
        return f"no tool that changes something is called{named}"

    def judge(self, trace: Trace) -> Seen:
        calls = trace.chosen.calls
        write = next((call for call in calls if call.is_write or call.tool in self.tools), None)
        unknown = sorted({call.tool for call in calls if call.is_write is None and not self.tools})
        if write is None and unknown:
            return Seen(None, f"not recorded whether these change something: {short(', '.join(unknown))}")
        found = f"step {write.step}: {write.tool} was called, which changes something" if write else None
        return never(trace.chosen, found, "no tool was called that changes something")

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **({"tools": list(self.tools)} if self.tools else {})}


def _holds_at(value: Any, path: str, comparison: Comparison) -> bool:
    try:
        return comparison.holds(value_at(value, path))
    except NothingThere:
        return False


def _answer(call: ToolUse) -> Any:
    """A failed call answers with its error."""
    return call.error if call.result is None else call.result
