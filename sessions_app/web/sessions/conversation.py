"""A session as one conversation: of each run what was asked, the work folded to a line, and what was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Run
from sessions_app.queries.run_ends import ends_of_all
from sessions_app.web.run_pages import RunPlace, whole_number
from sessions_app.web.sessions.run_ends import End, shown_ends

TURNS = 30
"""Runs on a page; a session of hundreds is read from its end."""
CHARACTERS, LINES = 2400, 30
CALLS, FAILED = 4, 3
"""Calls and failed steps that are told between a question and its answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One run of the session, as two people would tell it."""

    run: Run
    number: int
    """Among the runs of the session, from 1."""
    ends: tuple[End, ...]
    is_below: bool
    """Whether another run of the session called it."""
    is_shown: bool
    """Whether it is the run that the page is about."""

    @property
    def asked(self) -> End:
        return self.ends[0]

    @property
    def answered(self) -> tuple[End, ...]:
        return self.ends[1:]

    @property
    def calls(self) -> list[StepSummary]:
        """What tools answered, where they were few; a failure is told apart."""
        steps = [step for step in self.run.steps if step.kind == "tool"]
        return [step for step in steps if not step.has_failed] if len(steps) <= CALLS else []

    @property
    def tools(self) -> list[tuple[str, int]]:
        """Of many calls the tools and how often each was called, the most used first."""
        names = [step.name for step in self.run.steps if step.kind == "tool"]
        return Counter(names).most_common(CALLS) if len(names) > CALLS else []

    @property
    def failed(self) -> list[StepSummary]:
        return [step for step in self.run.steps if step.has_failed]

    @property
    def failed_named(self) -> list[StepSummary]:
        return self.failed[:FAILED]

    @property
    def failed_rest(self) -> int:
        return len(self.failed[FAILED:])


def conversation_context(request: HttpRequest, place: RunPlace) -> dict[str, Any]:
    total = len(place.siblings) if place.is_turn else 1
    end = min(whole_number(request.GET.get("turns"), total) or total, total)
    start = max(0, end - TURNS)
    wanted = place.siblings[start:end] if place.is_turn else (place.run,)
    return {
        "turns": _turns(place, wanted, start),
        "turns_total": total,
        "turns_earlier": start,
        "turns_earlier_page": min(start, TURNS),
        "turns_later": total - end,
        "turns_later_until": min(end + TURNS, total),
    }


def _turns(place: RunPlace, wanted: Sequence[Run], start: int) -> list[Turn]:
    """In the order of their start, what a sub-agent was asked behind the run that called it."""
    numbers = {run.pk: number for number, run in enumerate(wanted, start=start + 1)}
    callers = {run.run_id: number for number, run in enumerate(place.siblings, start=1)}
    found = list(Run.objects.filter(pk__in=numbers).select_related("content"))
    turns = [
        Turn(
            run=run,
            number=numbers[run.pk],
            ends=shown_ends(ends, run.status, characters=CHARACTERS, lines=LINES),
            is_below=run.origin == "recorded" and run.parent_run_id in callers,
            is_shown=run.pk == place.run.pk,
        )
        for run, ends in zip(found, ends_of_all(found), strict=True)
    ]
    return sorted(turns, key=lambda turn: _place_of(turn, callers))


def _place_of(turn: Turn, callers: dict[str, int]) -> tuple[int, int]:
    return (callers[turn.run.parent_run_id or ""], turn.number) if turn.is_below else (turn.number, 0)
