"""What a fork is expected to end with, and whether it did.

In JSON an expectation is a text, which a person judges, or one check:

    {"contains": text}    {"equals": value}    {"at_most_calls": {"tool": name, "n": 3}}    {"ends_within": 2}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from sessions_app.core.clipping import clipped
from sessions_app.core.compare.strict import Interner
from sessions_app.core.fork.changes import ForkError, refuse_others
from sessions_app.core.fork.expected_words import OF_CODE_NOT_RUN
from sessions_app.core.fork.spelling import short
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run, main_steps


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """Whether an expectation was met, and what was seen in words; None when only a person can say."""

    met: bool | None
    words: str


_MAX_WORDS = 2000
_SEEN = 300
_MAX_NUMBER = 999_999_999
Check = Callable[[Run, int], Judged]
"""Gets the fork's run and the step from which it was forked."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """`words` say what is expected; `check` is None where a person has to judge."""

    words: str
    unmet: str = ""
    """What is true of a fork that did not meet it."""
    check: Check | None = None
    is_limit: bool = False
    """Of calls or steps: one that is exceeded stays so, however the run ends."""

    def judge(self, run: Run, at_step: int, *, is_decided_by_code: bool = False) -> Judged:
        """Only a run that has ended can be judged, and of one that code would end which did not run only a limit."""
        if self.check is None:
            return Judged(met=None, words="Expected in words; read the outcome.")
        if run.status not in ("ok", "error"):
            return Judged(met=None, words="The fork has not finished.")
        judged = self.check(run, at_step)
        is_exceeded = self.is_limit and judged.met is False
        if is_decided_by_code and not is_exceeded:
            return Judged(met=None, words=f"{OF_CODE_NOT_RUN.capitalize()}.")
        return judged


def read_expectation(value: JsonValue, *, field: str = "expect") -> Expectation:
    """Raises `ForkError` naming the field."""
    if isinstance(value, str) and value.strip() and len(value) <= _MAX_WORDS:
        return Expectation(words=value.strip())
    name = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
    if not isinstance(name, str) or name not in _READERS:
        words = f"must be text of at most {_MAX_WORDS:,} characters, or an object with one of {', '.join(_READERS)}"
        raise ForkError(f"{field} {words}.", field=field)
    return _READERS[name](value[name], f"{field}.{name}")


def _contains(value: JsonValue, field: str) -> Expectation:
    if not isinstance(value, str) or not value:
        raise ForkError(f"{field} must be text.", field=field)

    def holds(run: Run) -> bool:
        return any(value.casefold() in text.casefold() for text in _texts(run))

    words = f"the outcome contains {short(value)}"
    return Expectation(words=words, unmet=f"the outcome does not contain {short(value)}", check=_of_outcome(holds))


def _equals(value: JsonValue, field: str) -> Expectation:
    """A text that spells JSON may be given as that text or as what it spells."""

    def holds(run: Run) -> bool:
        seen = [] if run.output is None else [run.output.value, run.output.parsed]
        return any(Interner(any_key_order=True).same(each, value) for each in seen)

    try:
        spelled = short(value)
    except ValueError:  # a number with thousands of digits
        raise ForkError(f"{field} must be JSON.", field=field) from None
    words = f"the outcome equals {spelled}"
    return Expectation(words=words, unmet=f"the outcome does not equal {spelled}", check=_of_outcome(holds))


def _at_most_calls(value: JsonValue, field: str) -> Expectation:
    if isinstance(value, dict):
        refuse_others(value, ("tool", "n"), field)
    tool = value.get("tool") if isinstance(value, dict) else None
    limit = value.get("n") if isinstance(value, dict) else None
    if not isinstance(tool, str) or not tool:
        raise ForkError(f"{field}.tool must be the name of a tool.", field=f"{field}.tool")
    limit = _number(limit, f"{field}.n", low=0)

    def check(run: Run, at_step: int) -> Judged:
        calls = sum(call.tool_name == tool for _, call in run.tool_calls)
        return Judged(met=calls <= limit, words=f"{tool} was called {calls:,} ×.")

    words = f"{_count(limit, 'call')} of {tool}"
    return Expectation(words=f"at most {words}", unmet=f"more than {words}", check=check, is_limit=True)


def _ends_within(value: JsonValue, field: str) -> Expectation:
    limit = _number(value, field, low=1)

    def check(run: Run, at_step: int) -> Judged:
        steps = len([step for step in main_steps(run) if step.kind != "other" and step.index > at_step])
        return Judged(met=steps <= limit, words=f"It ended {_count(steps, 'step')} after step {at_step}.")

    words = _count(limit, "step")
    unmet = f"does not end within {words}"
    return Expectation(words=f"ends within {words}", unmet=unmet, check=check, is_limit=True)


_READERS: dict[str, Callable[[JsonValue, str], Expectation]] = {
    "contains": _contains,
    "equals": _equals,
    "at_most_calls": _at_most_calls,
    "ends_within": _ends_within,
}


def _number(value: JsonValue, field: str, *, low: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= _MAX_NUMBER:
        raise ForkError(f"{field} must be a number from {low} on.", field=field)
    return value


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


# --- the outcome -------------------------------------------------------------------------------


def _of_outcome(holds: Callable[[Run], bool]) -> Check:
    def check(run: Run, at_step: int) -> Judged:
        if run.output is None and run.error is None:
            return Judged(met=None, words="How it ended was not captured.")
        seen = clipped(_texts(run)[0], _SEEN)
        return Judged(met=holds(run), words=f'It ended with "{seen}".')

    return check


def _texts(run: Run) -> list[str]:
    """What it ended with: a text, or JSON as it was spelled and without escapes; else the error."""
    if run.output is None:
        error = run.error
        return [": ".join(part for part in (error.type, error.message) if part) if error else ""]
    value = run.output.value
    if isinstance(value, str):
        return [value]
    return [run.output.as_text(), json.dumps(value, ensure_ascii=False)]
