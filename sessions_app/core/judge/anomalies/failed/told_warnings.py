"""What a tool said against its own answer, and whether the run's answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Level, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, owns_up, plain
from sessions_app.core.judge.reading import has_answer, object_of, own_tools
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run


def warnings_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Data that is out of date is a warning; of other warnings nobody knows whether the answer had to tell them."""
    answer = plain(answer_of(run))
    if not has_answer(run) or owns_up(run.output) or SAYS_OLD.search(answer):
        return
    for step, call in own_tools(run):
        told = object_of(call.result)
        is_stale, words = any(told.get(key) is True for key in STALE), _warning_in(told)
        if not (is_stale or words) or has_failed(step) or (words and _speaks_of(answer, words)):
            continue
        said = f"said that its data is out of date{f': {words}' if words else ''}" if is_stale else f"warned: {words}"
        message = f"{step.name} {said}; the answer does not say so"
        level: Level = "warning" if is_stale else "info"
        yield Anomaly(code="warning_unsaid", message=message, steps=(step.index,), level=level)


STALE = ("stale", "is_stale", "outdated", "is_outdated", "out_of_date")
_WARNINGS = ("warning", "warnings")
SAYS_OLD = re.compile(
    r"(?<!\w)(?:stale|outdated|out of date|old|older|as of|last (?:updated?|reported|known)|warn\w*)(?!\w)"
)


def _warning_in(told: JsonObject) -> str:
    said = next((told[key] for key in _WARNINGS if told.get(key)), None)
    first = said[0] if isinstance(said, list) and said else said
    return first.strip()[:200] if isinstance(first, str) else ""


def _speaks_of(answer: str, words: str) -> bool:
    """At least two of the longer words."""
    long = set(re.findall(r"\w{4,}", plain(words)))
    return sum(word in answer for word in long) >= min(2, len(long))
