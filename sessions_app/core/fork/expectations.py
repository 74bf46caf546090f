"""What a fork is expected to end with, and whether it did.

In JSON an expectation is a text, which a person judges, or one check:

    {"contains": text}    {"equals": value}    {"at_most_calls": {"tool": name, "n": 3}}    {"ends_within": 2}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.payload import JsonValue, canonical_json, compact_json
from sessions_app.core.run import Run, main_steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """Whether an expectation was met, and what was seen in words; None when only a person can say."""

    met: bool | None
    words: str


Check = Callable[[Run, int], Judged]
"""Gets the fork's run and the step from which it was forked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """`words` say what is expected; `check` is None where a person has to judge."""

    words: str
    check: Check | None = None

    def judge(self, run: Run, at_step: int) -> Judged:
        """Only a run that has ended can be judged."""
        if self.check is None:
            return Judged(met=None, words="Expected in words; read the outcome.")
        if run.status not in ("ok", "error"):
            return Judged(met=None, words="The fork has not come to an end.")
        return self.check(run, at_step)


def read_expectation(value: JsonValue, *, field: str = "expect") -> Expectation:
    """Raises `ForkError` naming the field."""
    if isinstance(value, str) and value.strip():
        return Expectation(words=value.strip())
    name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(name, str) or name not in _READERS:
        words = f"must be a text, or an object with one of {', '.join(_READERS)}"
        raise ForkError(f"{field} {words}.", field=field)
    return _READERS[name](value[name], f"{field}.{name}")


def _contains(value: JsonValue, field: str) -> Expectation:
    if not isinstance(value, str) or not value:
        raise ForkError(f"{field} must be a text.", field=field)

    def check(run: Run, at_step: int) -> Judged:
        output = _outcome(run)
        return Judged(met=value.casefold() in output.casefold(), words=f"It ended with: {output}")

    return Expectation(words=f"the outcome contains {value!r}", check=check)


def _equals(value: JsonValue, field: str) -> Expectation:
    def check(run: Run, at_step: int) -> Judged:
        seen = None if run.output is None else run.output.parsed
        return Judged(met=canonical_json(seen) == canonical_json(value), words=f"It ended with: {_outcome(run)}")

    return Expectation(words=f"the outcome equals {compact_json(value).decode()}", check=check)


def _at_most_calls(value: JsonValue, field: str) -> Expectation:
    tool = value.get("tool") if isinstance(value, dict) else None
    limit = value.get("n") if isinstance(value, dict) else None
    if not isinstance(tool, str) or not tool:
        raise ForkError(f"{field}.tool must be the name of a tool.", field=f"{field}.tool")
    limit = _count(limit, f"{field}.n", low=0)

    def check(run: Run, at_step: int) -> Judged:
        calls = sum(call.tool_name == tool for _, call in run.tool_calls)
        return Judged(met=calls <= limit, words=f"{tool} was called {calls} ×.")

    return Expectation(words=f"at most {limit} calls of {tool}", check=check)


def _ends_within(value: JsonValue, field: str) -> Expectation:
    limit = _count(value, field, low=1)

    def check(run: Run, at_step: int) -> Judged:
        steps = len([step for step in main_steps(run) if step.kind != "other" and step.index > at_step])
        return Judged(met=steps <= limit, words=f"It ended {steps} steps after step {at_step}.")

    return Expectation(words=f"ends within {limit} steps", check=check)


_READERS: dict[str, Callable[[JsonValue, str], Expectation]] = {
    "contains": _contains,
    "equals": _equals,
    "at_most_calls": _at_most_calls,
    "ends_within": _ends_within,
}


def _count(value: JsonValue, field: str, *, low: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ForkError(f"{field} must be a number from {low} on.", field=field)
    return value


def _outcome(run: Run) -> str:
    if run.output is not None:
        return run.output.as_text()
    error = run.error
    return ": ".join(part for part in (error.type, error.message) if part) if error else ""
