"""The steps of a run as a list, a part of it at a time, beside the step that is shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.http import HttpRequest

from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd_step
from sessions_app.core.judge.story import named_step
from sessions_app.core.payload import JsonObject
from sessions_app.models import Project, Replay, Run
from sessions_app.queries import steps
from sessions_app.web.forks.what_if import what_if_part
from sessions_app.web.notes.lines import notes_on_step
from sessions_app.web.run_pages import RunPlace, whole_number
from sessions_app.web.sessions.find import folds_inner, kept, search
from sessions_app.web.sessions.outline import Fold, Line, outline
from sessions_app.web.sessions.restored import cut_anomalies, cut_rows, cut_step, last_shown, until_of
from sessions_app.web.sessions.ruler import ruler_of
from sessions_app.web.steps.views import step_context


def steps_context(request: HttpRequest, project: Project, place: RunPlace, *, shown_as: str = "") -> dict[str, Any]:
    """`shown_as` is the part of an address that keeps the view, where that is not the list itself."""
    run, last = place.run, last_shown(place)
    if not last:
        return {"rows": [], "entries": []}
    is_whole = until_of(place) is None
    found = search(request, place) if is_whole else None
    hits = found.hits.counts if found else {}
    anomalies = cut_anomalies(place, run.anomalies)
    first = next(iter(hits), None) or _waits_at(run)
    first = first or first_odd_step([Anomaly.from_json(item) for item in anomalies])
    hides = folds_inner(request) and steps.has_outer(run)
    first = first or (last if run.status == "running" else named_step(run.story))
    first = first or (steps.first_listed(run) if hides else None)
    shown = min(max(whole_number(request.GET.get("step"), first or 1), 1), last)
    at = min(whole_number(request.GET.get("at"), shown), last)
    page = steps.row_page(steps.listed_steps(run, shown, without_inner=hides), at)
    page = cut_rows(place, page, hides_inner=hides)
    rows, unfolded = page.rows, _unfolded(request)
    hidden = steps.inner_steps(run, shown) if hides else {}
    called = _called(place, last)
    entries = outline(
        rows,
        started_at=run.started_at,
        asked=shown,
        unfolded=unfolded,
        hits=hits,
        snippets=found.hits.snippets if found else {},
        hidden=hidden,
        called=called,
        apart=() if shown_as else _odd(anomalies),
        by_name=bool(shown_as),
    )
    if not (shown_as or {"at", "step", "print"} & request.GET.keys()):
        entries = _near(entries, shown)
        rows = [row for row in rows if row.index >= _first(entries[0])]
    folds = [entry.first for entry in entries if isinstance(entry, Fold)]
    query = place.query + kept(request, place) + shown_as
    return {
        "entries": entries,
        "called_elsewhere": called.get(None),
        "find": replace(found, shown=shown) if found else None,
        "can_find": is_whole and not place.token,
        "fold_count": len(folds),
        "all_folds": ",".join(map(str, folds)),
        "q_rows": query,
        "q_list": query + (f"unfold={','.join(map(str, sorted(unfolded)))}&" if unfolded else ""),
        "rows": rows,
        "shown": shown,
        "rows_last": rows[-1].index,
        "rows_before": page.before if len(rows) == len(page.rows) else rows[0].index - 1,
        "rows_after": page.after,
        "rows_next": page.following,
        "hides_inner": hides,
        "q_without_inner": query.replace("inner=show&", ""),
        "inner_count": steps.inner_count(run, last),
        "ruler": ruler_of(_failed(run, last), anomalies, last, rows, hits) if _is_part(page, len(rows)) else None,
        **notes_on_step(request.user, project, place, shown),
        **what_if_part(request, project, place, shown),
        **cut_step(place, step_context(project, place, shown, for_panel=True, hides_inner=hides)),
        "q_session": place.session_address(project) + kept(request, place) + shown_as,
    }


_ABOVE = 4
"""Rows that are left above the open step when the list would begin far before it."""


def _is_part(page: steps.RowPage, shown: int) -> bool:
    """Whether the list, which may leave out inner steps, goes on before or behind the rows that are shown."""
    return page.before is not None or page.after is not None or shown < len(page.rows)


def _near(entries: list[Line | Fold], shown: int) -> list[Line | Fold]:
    """From a little before the open step, where it would not be in sight otherwise."""
    at = sum(_first(entry) <= shown for entry in entries) - 1
    return entries[at - _ABOVE if at > 2 * _ABOVE else 0 :]


def _first(entry: Line | Fold) -> int:
    return entry.first if isinstance(entry, Fold) else entry.step.index


def _called(place: RunPlace, last: int) -> dict[int | None, list[Run]]:
    """The runs of sub-agents by the step that called them; None for those that do not say which."""
    found: dict[int | None, list[Run]] = {}
    for run in place.called:
        step = run.parent_step if (run.parent_step or 0) <= last else None
        found.setdefault(step, []).append(run)
    return found


def _waits_at(run: Run) -> int | None:
    """Where a run that a fork or a replay made stopped."""
    made_by: Replay | None = getattr(run, "produced_by", None)
    return (made_by.stopped_at or {}).get("step") if made_by else None


def _odd(anomalies: list[JsonObject]) -> set[int]:
    """Where each anomaly is first, but for mere numbers of calls: these steps are never folded away."""
    found = (Anomaly.from_json(item) for item in anomalies)
    return {each.odd_step for each in found if each.odd_step and each.weight < 2}


def _failed(run: Run, last: int) -> list[int]:
    return [index for index in steps.failed_indices(run) if index <= last]


def _unfolded(request: HttpRequest) -> set[int]:
    """First steps of the loops that the address wants open."""
    return {whole_number(part, 0) for part in request.GET.get("unfold", "").split(",")[:50]} - {0}
