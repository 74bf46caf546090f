"""Anomalies as a list that can be read: equal ones stand once, with how often and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd
from sessions_app.core.judge.answer_sources import sources_in_words
from sessions_app.core.judge.story import CUT_OFF, ODD_AT, STILL_RUNNING
from sessions_app.models import Run


@dataclass(frozen=True, kw_only=True, slots=True)
class Oddity:
    """One or more anomalies of the same words."""

    code: str
    message: str
    level: str
    times: int
    steps: tuple[int, ...]
    elsewhere: int | None = None
    """The step that shows it, for one that is told at another."""


def told_anomalies(anomalies: Iterable[Anomaly]) -> tuple[Oddity | None, list[Oddity]]:
    """What the head of a run begins with, in all its words, and the others."""
    found = list(anomalies)
    folded, first = folded_anomalies(found), first_odd(found)
    if first is None:
        return None, folded
    cause = next(each for each in folded if each.level == "warning" and each.message == _words(first))
    others = [each for each in folded if each is not cause]
    return replace(cause, message=first.message, steps=(first.odd_step or 1,)), others


def rest_of_story(run: Run, cause: Oddity | None) -> str:
    """Without what stands beside it: the first anomaly, for how long a run goes on, or that its recording ends."""
    parts = run.story.partition(f" · {ODD_AT}")[0].split(" · ")
    if run.status == "running":
        parts = [part.removeprefix(STILL_RUNNING).lstrip(", ") for part in parts[1:]]
    elif cause and cause.code == "no_answer":
        parts = [part for part in parts if not part.startswith(CUT_OFF)]
    return " · ".join(filter(None, parts))


def story_and_sources(run: Run) -> str:
    """Of a run in which nothing is odd: also where its answer comes from."""
    return " · ".join(filter(None, (run.story, sources_in_words(run.answer_sources))))


def odd_title(is_told: bool, odd: Sequence[Oddity]) -> str:
    if odd and all(each.level == "info" for each in odd):
        return "Also noticed"
    return "Other anomalies" if is_told else "Anomalies"


def folded_anomalies(anomalies: Iterable[Anomaly]) -> list[Oddity]:
    """Warnings first; otherwise in the order in which they were found."""
    groups: dict[tuple[str, str], list[Anomaly]] = {}
    for anomaly in anomalies:
        groups.setdefault((anomaly.level, _words(anomaly)), []).append(anomaly)
    folded = [_oddity(level, message, found) for (level, message), found in groups.items()]
    return sorted(folded, key=lambda oddity: oddity.level == "info")


def _words(anomaly: Anomaly) -> str:
    """Without the error that a run ended in, which stands above the anomalies wherever they are listed."""
    return anomaly.message.partition(":")[0] if anomaly.code == "no_answer" else anomaly.message


def _oddity(level: str, message: str, found: list[Anomaly]) -> Oddity:
    """Of one that came again, only the step where each shows, so that steps and times are as many."""
    places = [found[0].steps] if len(found) == 1 else [(each.odd_step,) for each in found]
    steps = sorted({step for place in places for step in place if step is not None})
    return Oddity(code=found[0].code, message=message, level=level, times=len(found), steps=tuple(steps))
