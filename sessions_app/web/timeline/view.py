"""The timeline of a run: where its time went, all of it at a glance, and its steps as a waterfall."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from django.http import HttpRequest

from sessions_app.core.step_summary import StepSummary
from sessions_app.core.timeline import StepTime, Stretch, critical_path, step_times
from sessions_app.models import Project
from sessions_app.web.run_pages import RunPlace
from sessions_app.web.sessions.outline import Entry, Fold
from sessions_app.web.sessions.restored import as_begun, last_shown, unfinished, until_of
from sessions_app.web.sessions.step_list import steps_context
from sessions_app.web.timeline.axis import step_axis, time_axis
from sessions_app.web.timeline.bars import SHORTEST_GAP, SHORTEST_GAP_MS, Drawing, gaps_before
from sessions_app.web.timeline.overview import Overview, overview_of

LONGEST = 3
FEW = 12
"""Rows that are seen at a glance."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """What the run waited for, and how long."""

    words: str
    length_ms: float
    percent: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Gap:
    """A time in which no step ran."""

    length_ms: float
    until: int
    """The step that began at its end."""
    failed: int | None
    """The step that had just failed, for which a pause before a retry is the likely reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TimeSpent:
    total_ms: float
    shares: list[Share]
    longest: list[tuple[StepSummary, float]]
    longest_gap: Gap | None
    critical: int
    placed: int
    """Steps on the critical path, and all whose times are known."""


def timeline_context(request: HttpRequest, project: Project, place: RunPlace) -> dict[str, Any]:
    """As many queries as the list of steps has: everything drawn is made of the summaries of steps."""
    steps = _known_steps(place)
    times = step_times(steps, place.run.started_at)
    is_time = bool(times) and request.GET.get("axis") != "step"
    shown = steps_context(request, project, place, shown_as="view=timeline&" + ("" if is_time else "axis=step&"))
    path = critical_path(times)
    facts = {
        "has_times": bool(times),
        "is_time": is_time,
        "spent": _spent(steps, path, len(times), _took(place)),
        "q_axis": place.query + ("view=timeline&axis=step" if is_time else "view=timeline"),
    }
    if not shown["rows"]:
        return shown | facts
    return shown | facts | _drawn(place, steps, times, path, shown, is_time=is_time)


def _drawn(
    place: RunPlace,
    steps: Sequence[StepSummary],
    times: Sequence[StepTime],
    path: Sequence[Stretch],
    shown: dict[str, Any],
    *,
    is_time: bool,
) -> dict[str, Any]:
    indices = [row.index for row in shown["rows"]]
    whole = time_axis(times) if is_time else step_axis(steps)
    axis = time_axis(times, indices) if is_time else step_axis(steps, indices)
    critical = {stretch.step.index for stretch in path if stretch.step} or whole.reaches
    called = [run for run in place.called if (run.parent_step or 0) <= last_shown(place)]
    drawing = Drawing(axis=axis, whole=whole, critical=critical, gaps=gaps_before(path))
    overview = overview_of(steps, called, place.run.started_at, whole, axis, shown["shown"])
    return {
        "overview": overview if _adds_to(shown["entries"], overview) else None,
        "axis": axis,
        "timeline_rows": drawing.rows(shown["entries"]),
        "has_first_token": any(step.first_token_ms is not None for step in shown["rows"]),
    }


def _adds_to(entries: Sequence[Entry], overview: Overview) -> bool:
    """A few rows that show every step are an overview themselves, unless sub-agents have a part in the run."""
    is_all_in_rows = overview.shown is None and not any(isinstance(entry, Fold) for entry in entries)
    return len(entries) > FEW or not is_all_in_rows or any(track.agent for track in overview.tracks)


def _known_steps(place: RunPlace) -> Sequence[StepSummary]:
    """Of a restored run, what was known at its step."""
    until = until_of(place)
    if until is None:
        return place.run.steps
    begun = unfinished(place.run, until)
    return [as_begun(step) if step.index in begun else step for step in place.run.steps[: last_shown(place)]]


# --- where the time went -----------------------------------------------------------------------


def _took(place: RunPlace) -> float:
    """What the head of the page says; a restored run has not ended."""
    return place.run.duration_ms or 0 if until_of(place) is None else 0


def _spent(steps: Sequence[StepSummary], path: Sequence[Stretch], placed: int, took: float) -> TimeSpent | None:
    """None where no time was recorded. A run goes on for a moment after its last step: no step ran then."""
    on_path = sum(stretch.length for stretch in path)
    if not on_path:
        return None
    total = max(on_path, took)
    rows = {step.index: step for step in steps}
    waited: defaultdict[int, float] = defaultdict(float)
    for stretch in path:
        waited[stretch.step.index if stretch.step else 0] += stretch.length
    between = waited.pop(0, 0.0) + total - on_path
    return TimeSpent(
        total_ms=total,
        shares=_shares(rows, waited, between, total),
        longest=[(rows[index], waited[index]) for index in _longest(waited)],
        longest_gap=_longest_gap(rows, path),
        critical=len(waited),
        placed=placed,
    )


def _longest(waited: Mapping[int, float]) -> list[int]:
    """None where more steps than are named took equally long."""
    ordered = sorted(waited, key=lambda index: (-waited[index], index))
    is_level = len(ordered) > LONGEST and round(waited[ordered[0]]) == round(waited[ordered[LONGEST]])
    return [] if is_level else ordered[:LONGEST]


def _longest_gap(rows: dict[int, StepSummary], path: Sequence[Stretch]) -> Gap | None:
    until, gap = max(gaps_before(path).items(), key=lambda item: item[1].length, default=(0, None))
    if gap is None or gap.length < SHORTEST_GAP * (path[-1].end - path[0].start):
        return None
    ended = (stretch.step.index for stretch in path if stretch.step and stretch.end == gap.start)
    failed = next((index for index in ended if rows[index].has_failed), None)
    return Gap(length_ms=gap.length, until=until, failed=failed)


def _shares(rows: dict[int, StepSummary], waited: dict[int, float], between: float, total: float) -> list[Share]:
    """The greatest first."""
    lengths: defaultdict[str, float] = defaultdict(float)
    for index, length in waited.items():
        lengths[rows[index].kind] += length
    if between >= SHORTEST_GAP_MS:
        lengths["between steps"] = between
    found = [Share(words=words, length_ms=each, percent=round(each / total * 100)) for words, each in lengths.items()]
    return sorted(found, key=attrgetter("length_ms"), reverse=True)
