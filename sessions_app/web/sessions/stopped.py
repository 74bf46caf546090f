"""A run that a fork or a replay made, and that waits: where and why it stopped, and the last that it was told."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from sessions_app.core.call_words import call_words
from sessions_app.core.clipping import clipped
from sessions_app.core.step_summary import StepSummary
from sessions_app.models import Project, Replay, Run
from sessions_app.web.replays.stops import run_page

_CALL = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Stopped:
    """Where a run waits."""

    step: int
    words: str
    """What it waits for."""
    is_unknown: bool
    """Nothing could answer; otherwise it was paused on purpose."""
    last: StepSummary | None
    """The newest tool call that was answered."""
    report: str
    fork: str
    """Where another way to answer is chosen."""


def stopped_of(project: Project, run: Run, made_by: Replay | None) -> Stopped | None:
    """None for a run that does not wait."""
    found = made_by.stopped_at if made_by else None
    if made_by is None or not found or not (made_by.state == "paused" or made_by.waits_for_answer):
        return None
    step, is_unknown = found.get("step") or 1, found.get("why") == "unknown"
    return Stopped(
        step=step,
        words=_words(found, is_unknown),
        is_unknown=is_unknown,
        last=next((row for row in reversed(run.steps) if row.kind == "tool" and _is_answered(row)), None),
        report=reverse("replay", args=[project.slug, made_by.replay_id]),
        fork=run_page("fork", project, made_by.run, step=made_by.order.get("at_step") or 1),
    )


def _is_answered(row: StepSummary) -> bool:
    return row.source != "unknown" and bool(row.result_preview or row.error_preview)


def _words(found: dict[str, Any], is_unknown: bool) -> str:
    if not is_unknown:
        return f"before {found.get('name') or 'the model'}"
    if found["kind"] != "tool":
        return "the model's answer is unknown"
    call = clipped(call_words(json.dumps(found.get("arguments"), ensure_ascii=False)), _CALL)
    return f"the answer of {found.get('name')} to {call} is unknown"
