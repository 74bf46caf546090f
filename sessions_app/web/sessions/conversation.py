"""A session as one conversation: of each run what was asked, the work folded to a line, and what was answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from sessions_app.core.judge.anomalies.anomaly import Anomaly
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
    below: Mapping[int, tuple[Turn, ...]]
    """The runs of the page that it called, by the tool's step; 0 where that is not known."""
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
    def work(self) -> list[Work]:
        """What tools answered, where they were few, and what failed, in their order; below each what the sub-agents
        did that it called."""
        tools = [step for step in self.run.steps if step.kind == "tool"]
        told = {step.index: step for step in [*(tools if len(tools) <= CALLS else []), *self.failed_named]}
        told |= {at: step for at in self.below if at and (step := self.run.step(at))}
        return [Work(step=told[at], below=self.below.get(at, ())) for at in sorted(told)]

    @property
    def below_unknown(self) -> tuple[Turn, ...]:
        """Runs of sub-agents that do not say which step called them."""
        return self.below.get(0, ())

    @property
    def warning(self) -> Anomaly | None:
        """What is wrong about its answer, where no error says so."""
        found = self.run.foremost_anomalies if self.run.failure_group else []
        return next((each for each in found if each.code != "no_answer"), None)

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """A step between a question and its answer."""

    step: StepSummary
    below: tuple[Turn, ...]

    @property
    def answer(self) -> str:
        """Its error; of a call that was refused what it answered."""
        return (self.step.error_preview if self.step.has_error else None) or self.step.result_preview or ""


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
    """In the order of their start, what a sub-agent did below the step that called it."""
    numbers = {run.pk: number for number, run in enumerate(wanted, start=start + 1)}
    found = list(Run.objects.filter(pk__in=numbers).select_related("content"))
    ends = dict(zip([run.pk for run in found], ends_of_all(found), strict=True))
    found.sort(key=lambda run: numbers[run.pk])
    callers = _callers(found)
    called: dict[str, list[Run]] = {}
    for run in found:
        called.setdefault(callers.get(run.run_id, ""), []).append(run)

    def turn(run: Run) -> Turn:
        below: dict[int, list[Turn]] = {}
        for each in called.get(run.run_id, []):
            below.setdefault(_tool_step(run, each.parent_step), []).append(turn(each))
        return Turn(
            run=run,
            number=numbers[run.pk],
            ends=shown_ends(ends[run.pk], run.status, characters=CHARACTERS, lines=LINES),
            below={at: tuple(turns) for at, turns in below.items()},
            is_below=_has_caller(place, run),
            is_shown=run.pk == place.run.pk,
        )

    return [turn(run) for run in called.get("", [])]


def _has_caller(place: RunPlace, run: Run) -> bool:
    """Also one that stands on another page."""
    return run.origin == "recorded" and any(turn.run_id == run.parent_run_id for turn in place.siblings)


def _callers(runs: Sequence[Run]) -> dict[str, str]:
    """Of each sub-agent's run the one that called it; runs that say to have called each other called none."""
    said = {run.run_id: run.parent_run_id for run in runs if run.origin == "recorded"}
    return {run_id: caller for run_id, caller in said.items() if caller in said and not _leads_back(run_id, said)}


def _leads_back(run_id: str, said: Mapping[str, str | None]) -> bool:
    seen, at = {run_id}, said.get(run_id)
    while at is not None and at not in seen:
        seen.add(at)
        at = said.get(at)
    return at is not None


def _tool_step(run: Run, step: int | None) -> int:
    """Of an agent inside a tool call, that call: it is what the conversation tells."""
    row = run.step(step) if step else None
    while row is not None and row.kind != "tool" and row.parent:
        above = run.step(row.parent)
        if above is None or above.kind == "model":
            break
        row = above
    return row.index if row else 0
