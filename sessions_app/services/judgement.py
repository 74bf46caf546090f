"""What the judge says of a run, as columns of its row."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from django.conf import settings

from sessions_app.core.failures import failure_group
from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.answer_sources import answer_sources
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.story import story
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import AgentCall, Run
from sessions_app.core.shared_values import shared_values
from sessions_app.models import Project
from sessions_app.models import Run as StoredRun


def rules(project: Project) -> Rules:
    """The detectors' rules with what this installation set, and then what the project did."""
    own = json.loads(project.anomaly_rules or "{}")
    return replace(usual_rules(), **{name: _hashable(value) for name, value in own.items()})


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def usual_rules() -> Rules:
    """Those of a project that has none of its own."""
    words = tuple(settings.REPLAY_ERROR_WORDS)
    return replace(Rules(), error_words=words) if words else Rules()


def save_rules(project: Project, found: Rules) -> None:
    """For what arrives from now on. What is as usual is not kept, and follows the installation's settings."""
    usual, chosen = asdict(usual_rules()), asdict(found)
    own = {name: value for name, value in chosen.items() if value != usual[name]}
    project.anomaly_rules = json.dumps(own) if own else ""
    project.save(update_fields=["anomaly_rules"])


def wrong_in_called(project: Project, run: Run) -> dict[str, str]:
    """By its id, what went wrong in each run that this one called, of those that have arrived."""
    called = {step.call.run_id for step in run.steps if isinstance(step.call, AgentCall) and step.call.run_id}
    if not called:
        return {}
    rows = StoredRun.objects.filter(project=project, run_id__in=called - {run.run_id})
    found = ((row, _went_wrong(row)) for row in rows.only("run_id", "status", "error_preview", "anomalies"))
    return {row.run_id: words for row, words in found if words is not None}


def _went_wrong(row: StoredRun) -> str | None:
    if row.status == "error":
        return row.error_preview or "it ended in an error"
    found = (each.message for each in row.foremost_anomalies if each.level == "warning" and not each.weight)
    return next(found, None)


_NONE: Mapping[str, str] = {}


@shared_values()
def judgement_columns(run: Run, odd: Rules, called: Mapping[str, str] = _NONE) -> dict[str, object]:
    """`called` as `wrong_in_called` has it."""
    kit, verdict, anomalies = audit_kit(run), judge(run), find_anomalies(run, odd, called)
    return {
        "verdict": verdict.verdict,
        "verdict_step": verdict.step,
        "verdict_reasons": [reason.to_json() for reason in verdict.reasons],
        "anomalies": [anomaly.to_json() for anomaly in anomalies],
        "kit": kit.to_json(),
        "kit_captured": kit.captured,
        "kit_lacks": list(kit.lacks),
        "story": story(run, anomalies),
        "answer_sources": answer_sources(run).to_json(),
        "failure_group": failure_group(run, anomalies),
    }
