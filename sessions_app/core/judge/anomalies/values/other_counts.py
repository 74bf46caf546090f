"""Calls that changed another number of things than were counted before, where the answer has the number counted."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.judge.anomalies.failed.fallbacks import acts
from sessions_app.core.judge.anomalies.reading.statements import counts_in, statements
from sessions_app.core.judge.reading import has_answer, is_number, leaves, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall

_AFFECTED = re.compile(
    r"(?:(?:rows?|records?|items?|documents?|num|n|count|total)_?)?(?:affected|deleted|removed|updated|modified|changed|purged"
    r"|archived|inserted|written)(?:_?(?:rows?|records?|items?|count|documents?))?|row_?count",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"(?:\w+_)?(?:count|total|hits|matches|matched|matching|found|size)|count\(\*\)|n|would_\w+|to_\w+|total_\w+",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"(?<!\w)(?:delete[ds]?|deleting|removed?|updated?|affected|changed|purged|archived|gelöscht|geändert|supprimée?s?"
    r"|eliminad[oa]s|actualizad[oa]s)(?!\w)|削除|更新|删除",
    re.IGNORECASE,
)
_MOST = 20


def other_counts(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer does not have the number that was changed, and no other calls make up for it."""
    changed = _changed(run) if has_answer(run) else []
    said = {count for sentence in statements(run) for count in counts_in(sentence)} if changed else set()
    sums: dict[str, float] = defaultdict(float)
    for step, _, number in changed:
        sums[step.name] += number
    known = {*(number for _, _, number in changed), *sums.values()}
    for step, call, number in changed[:_MOST]:
        counted = _counted_before(run, step, call)
        if counted is None or number in said or sums[step.name] in said:
            continue
        look, count = counted
        if count in said and count not in known and (number > count or _is_claimed(run, count)):
            message = (
                f"{step.name} changed {number:.12g}, where {look.name} had counted {count:.12g} (step {look.index}); "
                f"the answer says {count:.12g}"
            )
            yield Anomaly(code="other_count", message=message, steps=(step.index,))


def _is_claimed(run: Run, count: float) -> bool:
    """Less may have been needed: a sentence says that so many were changed."""
    return any(count in counts_in(sentence) and _IN_WORDS.search(sentence) for sentence in statements(run))


def _changed(run: Run) -> list[tuple[Step, ToolCall, float]]:
    failed = failed_steps(run)
    calls = ((step, call, _number_changed(call)) for step, call in own_tools(run) if step.index not in failed)
    return [(step, call, number) for step, call, number in calls if number is not None and number > 1]


def _number_changed(call: ToolCall) -> float | None:
    """Under a name that says so, or as the one number of a short text that does."""
    told = value_of(call.result)
    if isinstance(told, str):
        numbers = counts_in(told) if len(told) < _LINE and _IN_WORDS.search(told) else frozenset()
        return next(iter(numbers)) if len(numbers) == 1 else None
    found = [float(item) for key, item in leaves(told) if key and is_number(item) and _AFFECTED.fullmatch(key)]
    return found[0] if len(found) == 1 else None


_LINE = 120


def _counted_before(run: Run, step: Step, call: ToolCall) -> tuple[Step, float] | None:
    """The last count of the same things, by a word that both calls have: a table, a folder, a segment. What another
    tool did is no count of what there is."""
    words, last = _words(call), None
    for look, other in own_tools(run):
        if look.index >= step.index:
            break
        is_count = _number_changed(other) is None and (look.name == step.name or not acts(look, other))
        if is_count and (count := _count(other)) is not None and words & _words(other):
            last = last or (look, count)
    return last


def _count(call: ToolCall) -> float | None:
    told = value_of(call.result)
    if isinstance(told, str):
        numbers = counts_in(told) if len(told) < _LINE else frozenset()
        return next(iter(numbers)) if len(numbers) == 1 else None
    found = [float(item) for key, item in leaves(told) if key and is_number(item) and _COUNTED.fullmatch(key)]
    return found[0] if len(found) == 1 and found[0] > 1 else None


def _words(call: ToolCall) -> set[str]:
    """Of the values, and no words of SQL."""
    said = " ".join(str(item) for _, item in leaves(value_of(call.arguments)))[:_READ].lower()
    return set(re.findall(r"[^\W\d][\w./@-]{3,}", said)) - _SQL


_READ = 2_000
_SQL = frozenset(
    {"select", "from", "where", "like", "join", "count", "delete", "update", "insert", "into", "having", "group"}
    | {"order", "limit", "null", "with", "true", "false", "between", "exists", "distinct", "values", "table"}
)
