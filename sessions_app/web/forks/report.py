"""A fork for its page: what was asked for, what it started from, and who answered each step after it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sessions_app.core.fork.report import ForkedStep, ForkFacts
from sessions_app.core.fork.words import describe
from sessions_app.core.payload import JsonObject
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Replay, Run
from sessions_app.queries.forks import expectation_words
from sessions_app.web.badges import expectation_of
from sessions_app.web.forks.what_if_words import parsed
from sessions_app.web.render.changes import Bit, Field, field_of, text_sides
from sessions_app.web.replays.words import is_fork
from sessions_app.web.run_pages import run_address

HASH = 12
"""Letters of a digest that are enough to tell it by eye."""
ACTS = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedFork:
    """What a fork was asked for; without the recorded values, which are read for the report alone."""

    changes: tuple[str, ...]
    hypothesis: str
    expected: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownStep:
    """A step after the fork."""

    step: ForkedStep
    row: StepSummary | None
    """With what was asked and answered, as lists show it."""
    recorded: StepSummary | None
    """The step of the same number in the original run."""
    address: str
    taken_address: str | None

    @property
    def sides(self) -> tuple[tuple[Bit, ...], tuple[Bit, ...]] | None:
        """Both answers with their differing words, where both sides have one and they differ."""
        one, other = self.recorded, self.row
        if one is None or other is None or one.has_error or other.has_error or one.result_key == other.result_key:
            return None
        if one.result_preview is None or other.result_preview is None:
            return None
        return text_sides(_spaced(one.result_preview), _spaced(other.result_preview))

    @property
    def has_other_arguments(self) -> bool:
        same = self.recorded and self.row and self.recorded.arguments_key == self.row.arguments_key
        return not same


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Samples that ended alike."""

    words: str
    count: int
    runs: tuple[tuple[str, str], ...]
    """Run id and address of each that is stored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Act:
    """Something of today that is not what was recorded: of a live tool, or of the team's own code."""

    step: int | None
    name: str
    field: Field


def asked_for(replay: Replay) -> AskedFork | None:
    """None for a replay that changes nothing."""
    if not is_fork(replay):
        return None
    order = replay.order
    return AskedFork(
        changes=tuple(describe(change) for change in order.get("changes") or []),
        hypothesis=order.get("hypothesis") or "",
        expected=expectation_words(replay),
    )


def fork_context(project: Project, replay: Replay, fork: ForkFacts | None) -> dict[str, Any]:
    """What the team's code did is there for replays too, the rest for forks alone."""
    facts = replay.facts
    if fork is None:
        return {**code_context(replay), **samples_context(project, facts)}
    started = facts.get("started_from") or {}
    return {
        **code_context(replay),
        **samples_context(project, facts),
        "fork": fork,
        "expectation": expectation_of(fork.met, fork.unproven_source),
        "started_from": started,
        "started_digest": _short(started.get("state_digest")),
        "history_digest": _short(started.get("history_digest")),
        "parent_digest": str(replay.content),
        "forked_steps": _steps(project, replay, fork),
    }


def _spaced(preview: str) -> str:
    """JSON with the spaces that recorded JSON mostly has, so that they alone are no difference."""
    value = parsed(preview)
    return preview if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def code_context(replay: Replay) -> dict[str, Any]:
    facts = replay.facts
    return {
        "drift": _acts(facts.get("drift")),
        "own_acts": _acts(facts.get("own_code")),
        "prompt_differs": facts.get("prompt_differs"),
        "lint": facts.get("lint") or [],
    }


def samples_context(project: Project, facts: JsonObject) -> dict[str, Any]:
    return {
        "samples": facts.get("samples"),
        "samples_failed": _failed(facts),
        "groups": _groups(project, facts),
    }


def _short(digest: str | None) -> str | None:
    return digest[:HASH] if digest else None


def _steps(project: Project, replay: Replay, fork: ForkFacts) -> list[ShownStep]:
    made = replay.produced_run
    if made is None:
        return []
    runs = _runs(project, {step.taken_from[0] for step in fork.steps if step.taken_from})
    original = replay.run_as_asked
    return [
        ShownStep(
            step=step,
            row=made.step(step.index),
            recorded=original.step(step.index),
            address=run_address(made, project, step=step.index),
            taken_address=_taken(project, step, runs),
        )
        for step in fork.steps
    ]


def _taken(project: Project, step: ForkedStep, runs: dict[str, Run]) -> str | None:
    run = runs.get(step.taken_from[0]) if step.taken_from else None
    return run_address(run, project, step=step.taken_from[1]) if run and step.taken_from else None


def _runs(project: Project, run_ids: set[str]) -> dict[str, Run]:
    """One query; none without ids."""
    if not run_ids:
        return {}
    found = Run.objects.filter(project=project, run_id__in=run_ids).select_related("session")
    return {run.run_id: run for run in found.only("run_id", "session__session_id")}


def _failed(facts: JsonObject) -> list[tuple[str, int]]:
    """Why samples came to no outcome, and how many."""
    errors = (facts.get("samples") or {}).get("errors") or []
    return [(each.get("words") or "", each.get("count") or 0) for each in errors]


def _groups(project: Project, facts: JsonObject) -> list[Group]:
    groups = (facts.get("samples") or {}).get("groups") or []
    runs = _runs(project, {run_id for group in groups for run_id in group.get("run_ids") or []})
    return [_group(project, group, runs) for group in groups]


def _group(project: Project, group: JsonObject, runs: dict[str, Run]) -> Group:
    stored = [run_id for run_id in group.get("run_ids") or [] if run_id in runs]
    return Group(
        words=group.get("words") or "",
        count=group.get("count") or 0,
        runs=tuple((run_id, run_address(runs[run_id], project)) for run_id in stored),
    )


def _acts(acts: list[JsonObject] | None) -> list[Act]:
    return [
        Act(
            step=each.get("step"),
            name=each.get("name") or each.get("tool") or "",
            field=field_of(each.get("path") or "result", each.get("recorded"), each.get("now")),
        )
        for each in (acts or [])[:ACTS]
    ]
