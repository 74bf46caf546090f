"""Calls that only let time pass, as between two looks at the same thing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import pairwise

from sessions_app.core.judge.reading import is_number, object_of, own_tools
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_WAITS = re.compile(r"(?:sleep|wait|pause|delay)(?:_?(?:for|seconds?|secs?|ms|minutes?))*", re.IGNORECASE)
_SECOND = 1_000.0


def only_waits(step: Step, call: ToolCall) -> bool:
    """By its name, or because it took just as long as the one number that it was called with."""
    numbers = [float(item) for item in object_of(call.arguments).values() if is_number(item)]
    if len(numbers) != 1:
        return False
    return _WAITS.fullmatch(call.tool_name) is not None or _lasted(step, numbers[0])


def _lasted(step: Step, number: float) -> bool:
    """In seconds or in milliseconds, and within a tenth."""
    took = step.duration_ms or 0.0
    return took >= _SECOND and any(abs(took - asked) <= asked / 10 for asked in (number, number * _SECOND))


def waited_between(run: Run, steps: Iterable[int]) -> bool:
    """Whether the run waited between each two of these steps."""
    waits = _wait_steps(run)
    return bool(waits) and all(
        bisect_right(waits, first) < bisect_right(waits, then) for first, then in pairwise(steps)
    )


@once_each
def _wait_steps(run: Run) -> list[int]:
    return [step.index for step, call in own_tools(run) if only_waits(step, call)]
