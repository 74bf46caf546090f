"""Data of one call that is far older than what the same tool gave the others."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import median

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.told_warnings import SAYS_OLD, STALE
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, owns_up, plain
from sessions_app.core.judge.reading import has_answer, leaves, object_of, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall

DAY = timedelta(days=1)
TIMES_OLDER = 100
_TAKEN_AT = ("as_of", "fetched_at", "measured_at", "observed_at", "synced_at")
_DATE = re.compile(r"\d{4}-\d\d|\d\d?[./]\d\d?[./]")
_SAYS_WHEN = re.compile(r"(?<!\w)(?:days?|weeks?|hours?|yesterday|ago|since)(?!\w)")


def older_than_others(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Of three calls or more, none of which asked for a date; the answer does not say how old it is."""
    answer = plain(answer_of(run))
    if not has_answer(run) or owns_up(run.output) or SAYS_OLD.search(answer) or _SAYS_WHEN.search(answer):
        return
    ages: dict[str, list[tuple[Step, timedelta]]] = defaultdict(list)
    for step, call in own_tools(run):
        if (age := _age(run, step, call)) is not None:
            ages[call.tool_name].append((step, age))
    for name, found in ages.items():
        usual = median(age.total_seconds() for _, age in found)
        old = [(step, age) for step, age in found if age > DAY and age.total_seconds() > TIMES_OLDER * max(usual, 1)]
        for step, age in old if len(found) > 2 else ():
            message = (
                f"{name} returned data that is {age.days} days old, unlike its other calls; the answer does not say so"
            )
            yield Anomaly(code="warning_unsaid", message=message, steps=(step.index,))


def _age(run: Run, step: Step, call: ToolCall) -> timedelta | None:
    told, now = object_of(call.result), step.started_at or run.started_at
    taken = next((told[key] for key in _TAKEN_AT if isinstance(told.get(key), str)), None)
    is_told = any(told.get(key) is True for key in STALE)
    asks_for_date = any(_DATE.search(str(item)) for _, item in leaves(value_of(call.arguments)))
    if taken is None or now is None or asks_for_date or is_told:
        return None
    try:
        return now - datetime.fromisoformat(str(taken))
    except (ValueError, TypeError):  # no date, or one without a zone
        return None
