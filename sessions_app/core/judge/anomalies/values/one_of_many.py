"""One of a long series of calls whose counts stand out, and of which the answer says nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, error_words_in, is_named, owns_up
from sessions_app.core.judge.reading import has_answer, is_number, leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, ToolCall

SERIES = 20
"""Calls of one tool that make a series."""
RARE = 50
"""One of so many, and at least one, stands out."""


def one_of_many(run: Run, rules: Rules) -> Iterator[Anomaly]:
    if not has_answer(run) or error_words_in(run.output, rules) or owns_up(run.output):
        return
    answer = answer_of(run)
    for step, call, key, count in standing_out(run):
        asked = [str(item) for _, item in leaves(value_of(call.arguments)) if item not in (None, "", True, False)]
        if not any(is_named(each, answer) for each in asked):
            named = f" for {asked[0][:60]}" if len(asked) == 1 else ""
            message = f"{step.name}{named} returned {key} {count:g}, unlike the other calls; the answer does not say so"
            yield Anomaly(code="one_of_many", message=message, steps=(step.index,))


def standing_out(run: Run) -> Iterator[tuple[Step, ToolCall, str, float]]:
    """Calls with the count that sets them apart: something was left out or went wrong, or nothing at all was done."""
    series: dict[str, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        series[call.tool_name].append((step, call))
    for calls in (calls for calls in series.values() if len(calls) >= SERIES):
        odd = _odd_counts([object_of(call.result) for _, call in calls])
        yield from ((*calls[at], *found) for at, found in odd.items() if not has_failed(calls[at][0]))


_LEFT_OUT = re.compile(r"(?:^|_)(?:rejected|failed|failures|errors?|skipped|dropped|lost|invalid)(?:_|$)")
_DONE = re.compile(r"(?:^|_)(?:written|inserted|imported|saved|loaded|copied|indexed|updated|sent|migrated)(?:_|$)")


def _odd_counts(answers: list[JsonObject]) -> dict[int, tuple[str, float]]:
    """By the place in the series: the first count of an answer that is 0 in nearly all others, or only here."""
    keys = dict.fromkeys(key for answer in answers for key in answer)
    found: dict[int, tuple[str, float]] = {}
    for key in [*filter(_LEFT_OUT.search, keys), *filter(_DONE.search, keys)]:
        counts = [(at, float(answer[key])) for at, answer in enumerate(answers) if is_number(answer.get(key))]
        wrong = [(at, count) for at, count in counts if (count > 0) == bool(_LEFT_OUT.search(key))]
        if len(counts) >= SERIES and len(wrong) <= max(1, len(counts) // RARE):
            for at, count in wrong:
                if count > 0 or _had_something(answers[at], key):
                    found.setdefault(at, (key, count))
    return found


def _had_something(answer: JsonObject, key: str) -> bool:
    return any(is_number(item) and item > 0 for name, item in answer.items() if name != key)
