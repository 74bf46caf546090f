"""A finished replay for its page: the report's facts, put into the words and tables that the page shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from sessions_app.core.compare.json_diff import differences
from sessions_app.core.judge.budget import STATE_WORDS
from sessions_app.core.payload import JsonObject
from sessions_app.core.report import Attempt, ReproductionReport, describe
from sessions_app.models import Project, Replay
from sessions_app.web.render import spelled
from sessions_app.web.render.changes import Field, field_of
from sessions_app.web.run_pages import run_address

NEAREST = 3
SHOWN_DIFFERENCES = 20

_SOURCES = (
    ("recorded", "recording", "the answer that was recorded at this step"),
    ("borrowed", "borrowed", "the same request, answered in another run of this project"),
    ("by_hand", "by hand", "an answer that somebody wrote"),
    ("rule", "rule", "an answer that a rule made"),
    ("own_code", "own code", "the team's own code ran"),
    ("live", "live", "a real model or a real tool was called"),
    ("unknown", "unknown", "nothing could answer; the replay stopped there"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where answers came from, and how many."""

    key: str
    name: str
    means: str
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Nearest:
    """A recorded call that comes near the one that was asked for, and what differs."""

    step: int
    fields: tuple[Field, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """One thing that recording and replay both have; `match` is None where it could not be compared."""

    what: str
    original: str | None
    replayed: str | None
    match: bool | None


def report_context(project: Project, replay: Replay, report: ReproductionReport) -> dict[str, Any]:
    facts = replay.facts
    return {
        "report": report,
        "css": verdict_css(replay),
        "pairs": _pairs(replay, report),
        "sources": _sources(facts),
        "facts": facts,
        "budget": [{"row": row, "word": STATE_WORDS[row.state]} for row in report.budget],
        "difference": _difference(replay),
        "asked_for": facts.get("asked_for"),
        "asked_arguments": spelled.compact(spelled.of_value((facts.get("asked_for") or {}).get("arguments"))),
        "nearest": _nearest(facts),
        "left_over": facts.get("left_over") or [],
        "step_link": _step_link(project, replay),
        "diff_link": _diff_link(project, replay),
        "produced_link": run_address(replay.produced_run, project) if replay.produced_run else None,
    }


def verdict_css(replay: Replay) -> str:
    if replay.verdict == "reproduced":
        return "reproduced"
    return "diverged" if replay.verdict in ("diverged", "ran_past_recording", "answers_left_over") else "stopped"


def _pairs(replay: Replay, report: ReproductionReport) -> list[Pair]:
    """The outcome and the number of steps; each step has its row in the diff."""
    attempt = next((each for each in report.attempts if each.replay_id == replay.replay_id), None)
    produced = replay.produced_run
    if produced is None or attempt is None:
        return []
    output = describe(attempt.output) if attempt.output else produced.error_preview
    original = describe(report.output) if report.output else replay.run.error_preview
    equal_steps = replay.verdict == "reproduced" or None
    return [
        Pair(what="outcome", original=original, replayed=output, match=_same_outcome(replay, report, attempt)),
        Pair(what="steps", original=str(replay.run.step_count), replayed=str(produced.step_count), match=equal_steps),
    ]


def _same_outcome(replay: Replay, report: ReproductionReport, attempt: Attempt) -> bool | None:
    if report.output is not None and attempt.output is not None:
        return bool(report.output.parsed == attempt.output.parsed)
    if replay.run.error_preview and replay.produced_run and replay.produced_run.error_preview:
        return replay.run.error_preview == replay.produced_run.error_preview
    return True if replay.verdict == "reproduced" else None


def _sources(facts: JsonObject) -> list[Source]:
    """Those that were used, and live always: that nothing was live is the point."""
    counts = facts.get("sources") or {}
    return [
        Source(key=key, name=name, means=means, count=counts.get(key, 0))
        for key, name, means in _SOURCES
        if counts.get(key) or key == "live"
    ]


def _difference(replay: Replay) -> Field | None:
    """The first field that differs, with the words around it."""
    found = replay.divergence
    if not found or "path" not in found:
        return None
    return field_of(str(found["path"]), found.get("recorded"), found.get("replayed"))


def _nearest(facts: JsonObject) -> list[Nearest]:
    asked = (facts.get("asked_for") or {}).get("arguments")
    return [
        Nearest(step=near["step"], fields=_fields(near.get("arguments"), asked))
        for near in (facts.get("nearest") or [])[:NEAREST]
    ]


def _fields(recorded: object, asked: object) -> tuple[Field, ...]:
    found = differences(recorded, asked, path="args")
    return tuple(
        field_of(each.path, each.left, each.right, note=each.note)
        for _, each in zip(range(SHOWN_DIFFERENCES), found, strict=False)
    )


def _step_link(project: Project, replay: Replay) -> str | None:
    step = (replay.divergence or {}).get("step")
    return run_address(replay.run, project, step=step) if step else None


def _diff_link(project: Project, replay: Replay) -> str | None:
    if replay.produced_run is None:
        return None
    return reverse("diff", args=[project.slug, replay.run.run_id, replay.produced_run.run_id])
