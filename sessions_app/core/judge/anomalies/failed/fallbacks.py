"""Lookups that failed, where another tool was asked the same."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict

from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.reading import argument_key, ended_in_error, object_of, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_ACTS = re.compile(
    r"(?:add|apply|approve|archive|book|buy|cancel|charge|close|commit|create|delete|deploy|disable|edit|enable|grant"
    r"|insert|invite|lock|mail|merge|modify|move|notify|open|order|patch|pay|post|publish|purge|put|refund|register"
    r"|remove|rename|reserve|restart|revoke|run|save|send|set|start|stop|submit|sync|transfer|update|upload|write)"
    r"(?:_|[A-Z]|$)"
)
"""What is done in one place is not done in another."""


def is_done_by_another(run: Run, step: Step, call: ToolCall) -> bool:
    """Of a kind, as `weather_b` for `weather_a`: later, with the same arguments, and it told something."""
    if not object_of(call.arguments) or acts(step, call):
        return False
    others = _went_well(run).get(argument_key(call), [])
    start = bisect_right(others, step.index, key=lambda each: each[0].index)
    later = (each for each in others[start : start + _MOST] if each[1].tool_name != call.tool_name)
    return any(not acts(*other) and _is_of_a_kind((step, call), other) for other in later)


_MOST = 5


def acts(step: Step, call: ToolCall) -> bool:
    return step.extra.get("tool_kind") == "write" or _ACTS.match(call.tool_name) is not None


def _is_of_a_kind(one: tuple[Step, ToolCall], other: tuple[Step, ToolCall]) -> bool:
    return (looks_up(*one) and looks_up(*other)) or not set(name_words(one[1])).isdisjoint(name_words(other[1]))


def name_words(call: ToolCall) -> list[str]:
    """Of the tool's name; a kind of thing is one, and not many."""
    apart = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", call.tool_name).lower()
    words = re.findall(r"[^\W\d_]{3,}|[\u3040-\u30ff\u4e00-\u9fff]{2,}", apart)
    return [word.removesuffix("s") for word in words]


@once_each
def _went_well(run: Run) -> dict[bytes, list[tuple[Step, ToolCall]]]:
    found: dict[bytes, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        if value_of(call.result) and not ended_in_error(step):
            found[argument_key(call)].append((step, call))
    return found
