"""A run's page as it would have been after a step: nothing of what came later is on it.

Nothing stored changes. `?at_step=2` is the mode, and every link of the page keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec
from django.http import HttpRequest

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.core.payload import JsonObject
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Run
from sessions_app.queries import steps
from sessions_app.queries.states import at_step, state_of
from sessions_app.queries.steps import RowPage, is_inner
from sessions_app.web.run_pages import RunPlace, whole_number
from sessions_app.web.states.words import digest_of

UNFINISHED = ("out", "error", "content", "metadata", "state", "http")
"""Sections of a step that are not there before its end."""


@dataclass(frozen=True, kw_only=True)
class RestoredPlace(RunPlace):
    """A run that is shown up to a step."""

    until: int

    @property
    def query(self) -> str:
        return f"{super().query}at_step={self.until}&"

    @property
    def whole_query(self) -> str:
        """The way out: the beginning of an address of the whole run."""
        return super().query


def restored_place(request: HttpRequest, place: RunPlace) -> RunPlace:
    """The place that the address asks for: restored to a step that is there, or else the whole run."""
    until = whole_number(request.GET.get("at_step"), 0)
    if not 1 <= until <= place.run.content.length:
        return place
    return RestoredPlace(until=until, **{field.name: getattr(place, field.name) for field in fields(place)})


def until_of(place: RunPlace) -> int | None:
    """The step that the run was restored to."""
    return place.until if isinstance(place, RestoredPlace) else None


def last_shown(place: RunPlace) -> int:
    """The last step that the page may show."""
    return until_of(place) or place.run.content.length


def step_to_go_to(request: HttpRequest, place: RunPlace) -> str | None:
    """Where a restored page is really asked for: at a step that is on it. None when it is there already."""
    until = until_of(place)
    if until is None or 1 <= whole_number(request.GET.get("step"), 0) <= until:
        return None
    asked = request.GET.copy()
    asked["step"] = str(until)
    return f"{request.path}?{asked.urlencode()}"


def restored_context(place: RunPlace) -> dict[str, Any]:
    """What stands above the steps of a restored run; nothing for a whole one."""
    if not isinstance(place, RestoredPlace):
        return {}
    return {
        "restored": place.until,
        "restored_at": at_step(place.run, place.until),
        "restored_digest": _digest(place.run, place.until),
        "q_whole": place.whole_query,
    }


def _digest(run: Run, until: int) -> str | None:
    try:
        return digest_of(state_of(run, until=until).history.state_after(until))
    except StoredBytesMissing:
        return None


# --- steps -------------------------------------------------------------------------------------


def cut_rows(place: RunPlace, page: RowPage, *, hides_inner: bool) -> RowPage:
    """A page of the list without later steps, and without the answers that had not come yet."""
    until = until_of(place)
    if until is None:
        return page
    begun = unfinished(place.run, until)
    rows = [as_begun(row) if row.index in begun else row for row in page.rows if row.index <= until]
    has_more = page.after is not None and page.after <= until
    left = sum(not hides_inner or not is_inner(row) for row in place.run.steps[rows[-1].index : until])
    following = min(left, steps.ROWS)
    return replace(page, rows=rows, after=page.after if has_more else None, following=following)


def cut_step(place: RunPlace, shown: dict[str, Any]) -> dict[str, Any]:
    """A step's panel, without ways to later steps; `shown` is what `step_context` gives."""
    until = until_of(place)
    if until is None:
        return shown
    later = {name: None for name in _AHEAD if (shown[name] or 0) > until}
    begun = unfinished(place.run, until)
    asked_by = shown["asked_by"]
    if asked_by is not None and asked_by.index in begun:
        asked_by = as_begun(asked_by)
    followed_by = shown["followed_by"]
    if followed_by is not None and followed_by.index > until:
        followed_by = None
    shown = shown | later | {"last_index": until, "asked_by": asked_by, "followed_by": followed_by}
    if shown["row"].index not in begun:
        return shown
    known = [section for section in shown["sections"] if section.key not in UNFINISHED]
    return shown | {"row": as_begun(shown["row"]), "sections": known}


_AHEAD = ("step_below", "next_failed", "next_odd")


def unfinished(run: Run, until: int) -> set[int]:
    """Steps that had begun and not ended: what happened inside them goes on after the step.

    A model step is the parent of the calls that it asked for, which happen after it and not inside it.
    """
    rows = {row.index: (row.kind, row.parent) for row in run.steps}
    begun: set[int] = set()
    seen: set[int] = set()
    for index in rows:
        at = rows[index][1] if index > until else None
        while at is not None and at not in seen:
            seen.add(at)
            kind, parent = rows.get(at, ("model", None))
            begun |= {at} if at <= until and kind != "model" else set()
            at = parent
    return begun


def as_begun(row: StepSummary) -> StepSummary:
    """The row without its end."""
    end: dict[str, Any] = {"result_preview": "", "has_error": False, "outcome": "not finished yet"}
    unknown = ("result_key", "error_preview", "duration_ms", "state_changes")
    return msgspec.structs.replace(row, **end, **dict.fromkeys(unknown))


def cut_anomalies(place: RunPlace, anomalies: Iterable[JsonObject]) -> list[JsonObject]:
    """Those that could be seen at the step: all that they name had happened."""
    until = until_of(place)
    return [item for item in anomalies if until is None or max(item.get("steps") or [0]) <= until]


def cut_messages(place: RunPlace, shown: dict[str, Any]) -> dict[str, Any]:
    """The messages of a request, without the way to a later one."""
    until, after = until_of(place), shown.get("request_after")
    return shown | {"request_after": None} if until is not None and after and after.index > until else shown
