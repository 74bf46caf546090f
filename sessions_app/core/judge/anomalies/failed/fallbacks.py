"""Lookups that failed, where another tool was asked the same and told what the answer says."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from itertools import islice

from sessions_app.core.judge.anomalies.reading.answer_words import plain, question_of
from sessions_app.core.judge.anomalies.reading.statements import is_stated, statements
from sessions_app.core.judge.reading import argument_key, ended_in_error, object_of, own_tools
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
    """Of a kind, as `weather_b` for `weather_a`: with the same arguments, later, and the answer has what it told."""
    if not object_of(call.arguments) or _acts(step, call):
        return False
    others = _went_well(run).get(argument_key(call), [])
    start = bisect_right(others, step.index, key=lambda each: each[0].index)
    later = (each for each in others[start : start + _MOST] if each[1].tool_name != call.tool_name)
    return any(not _acts(*other) and _words(other[1]) & _words(call) and _is_used(run, other[1]) for other in later)


_MOST = 5


def _acts(step: Step, call: ToolCall) -> bool:
    return step.extra.get("tool_kind") == "write" or _ACTS.match(call.tool_name) is not None


def _words(call: ToolCall) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", re.sub(r"([A-Z])", r"_\1", call.tool_name).lower()))


@once_each
def _went_well(run: Run) -> dict[bytes, list[tuple[Step, ToolCall]]]:
    found: dict[bytes, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        if call.result is not None and not ended_in_error(step):
            found[argument_key(call)].append((step, call))
    return found


_READ = 2_000
_TOLD = re.compile(r"[^\W\d_]{4,}|\d+(?:[.,]\d+)*", re.ASCII)


def _is_used(run: Run, call: ToolCall) -> bool:
    told = _TOLD.findall(call.result.as_text()[:_READ]) if call.result else []
    known = plain(f"{question_of(run)} {call.arguments.as_text() if call.arguments else ''}")
    new = islice((word for word in dict.fromkeys(told) if plain(word) not in known), _WORDS)
    return any(is_stated(word, sentence) for word in new for sentence in statements(run))


_WORDS = 50
