"""Calls that failed and of which the answer tells: which one, and why or apart from those that went well."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import islice

from sessions_app.core.judge.anomalies.reading.answer_words import REFUSAL, owns_up_in, plain
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.reading import ended_in_error, object_of, own_tools, status_code
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_MOST = 50
"""Calls of one tool that a sentence is held against."""


def is_told_of_batch(run: Run, step: Step, call: ToolCall, reason: str) -> bool:
    """Two or more calls of the tool went well, this one was turned down, and a sentence of the answer names it, and
    says that it failed or why, or names none of the others. What broke down is no answer to anybody."""
    if (status_code(step) or 0) >= _SERVER or _BROKE_DOWN.search(f"{step.error.type if step.error else ''} {reason}"):
        return False
    naming = [sentence for sentence in statements(run) if _names(run, step, call, sentence)]
    is_said = any(_owns_up(sentence) or _gives_reason(call, sentence, reason) for sentence in naming)
    return len(_went_well(run, step, call)) > 1 and (is_said or is_set_apart(run, step, call))


_SERVER = 500
_BROKE_DOWN = re.compile(
    r"timed? ?out|connection|unreachable|unavailable|deadlock|overload|rate.?limit|too many requests"
    r"|(?<![\w.,])(?:429|50[0-4])(?![\w.,]*\d)",
    re.IGNORECASE,
)


def is_set_apart(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether the answer names it in sentences that name none of two or more calls of its tool that went well."""
    apart = _of_none_that_went_well(run).get(call.tool_name, [])
    naming = [at for at, sentence in enumerate(statements(run)) if _names(run, step, call, sentence)]
    return bool(apart and naming) and len(_went_well(run, step, call)) > 1 and all(apart[at] for at in naming)


@once_each
def _of_none_that_went_well(run: Run) -> dict[str, list[bool]]:
    """By tool, whether each sentence names none of its calls that went well."""
    return {
        tool: [not any(_names(run, *pair, sentence) for pair in pairs) for sentence in statements(run)]
        for tool, pairs in _first_that_went_well(run).items()
        if len(pairs) < len(_calls_of(run)[tool])
    }


def _went_well(run: Run, step: Step, call: ToolCall) -> list[tuple[Step, ToolCall]]:
    return [pair for pair in _first_that_went_well(run).get(call.tool_name, []) if pair[0] is not step]


@once_each
def _first_that_went_well(run: Run) -> dict[str, list[tuple[Step, ToolCall]]]:
    return {
        tool: list(islice((pair for pair in pairs if not ended_in_error(pair[0])), _MOST))
        for tool, pairs in _calls_of(run).items()
    }


def _owns_up(sentence: str) -> bool:
    return owns_up_in(plain(sentence)) or REFUSAL.search(plain(sentence)) is not None


def _gives_reason(call: ToolCall, sentence: str, reason: str) -> bool:
    """At least two of the words of an error, or its only one; those of the call say nothing."""
    own = plain(f"{call.tool_name} {'' if call.arguments is None else call.arguments.as_text()}")
    words = {word[:_STEM] for word in _WORD.findall(plain(reason)) if word not in own}
    return bool(words) and sum(word in plain(sentence) for word in words) >= min(2, len(words))


_STEM = 6
_WORD = re.compile(r"[^\W\d_]{4,}")


def _names(run: Run, step: Step, call: ToolCall, sentence: str) -> bool:
    return any(is_stated(name, sentence) for name in _own_names(run).get(step.index, ()))


@once_each
def _own_names(run: Run) -> dict[int, list[str]]:
    """By step, the values of a call that no call of its tool with other arguments has."""
    found: dict[int, list[str]] = {}
    for pairs in _calls_of(run).values():
        used: dict[str, set[str]] = defaultdict(set)
        named = {step.index: plain_values(object_of(call.arguments)) for step, call in pairs}
        for asked in named.values():
            for item in asked.values():
                used[str(item)].add(str(sorted(asked.items())))
        for at, asked in named.items():
            found[at] = [str(item) for item in asked.values() if len(str(item)) > 1 and len(used[str(item)]) == 1]
    return found


@once_each
def _calls_of(run: Run) -> dict[str, list[tuple[Step, ToolCall]]]:
    calls: dict[str, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        calls[call.tool_name].append((step, call))
    return calls
