"""How a run failed, as far as runs that failed alike have it in common, and whether another run still fails so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from sessions_app.core.judge.anomalies import Anomaly
from sessions_app.core.payload import JsonObject

FailureOutcome = Literal["fixed", "still_fails", "fails_otherwise", "could_not_run", "not_known"]
_LONGEST = 160
_OF_ONE_RUN = re.compile(
    r"""["“][^"”]*["”] | (?<!\w)'[^']*'(?!\w) | \b(?=\w*\d)[0-9a-f]{8,}\b | (?<!HTTP\ )(?<!\d)\d+(?:\.\d+)?""",
    re.VERBOSE,
)
"""Quoted values, ids and numbers, but no status of HTTP."""


def signs_of(*, status: str, error: str | None, anomalies: Iterable[JsonObject]) -> tuple[str, ...]:
    """What went wrong, without what is of one run alone; empty for a run that did not fail. What may be as it was
    meant, such as a call that was made twice, is no sign."""
    found = [Anomaly.from_json(each) for each in anomalies]
    wrong = {_alike(each.message) for each in found if each.level == "warning" and not each.weight}
    ended = status == "error" and not any(each.code == "no_answer" for each in found)
    return tuple(sorted(wrong | ({_alike(error or "An error ended the run")} if ended else set())))


def _alike(text: str) -> str:
    return _OF_ONE_RUN.sub("…", text)[:_LONGEST]


def outcome_of(signs: Sequence[str], *, now: Sequence[str], status: str) -> FailureOutcome:
    """What became of a failure in a run that was made since: `now` are the signs of that one."""
    if set(signs) & set(now):
        return "still_fails"
    if now:
        return "fails_otherwise"
    return "fixed" if status == "ok" else "not_known"
