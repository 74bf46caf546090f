"""What the judge says of a run, as columns of its row."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from django.conf import settings

from sessions_app.core.failures import failure_group
from sessions_app.core.judge.anomalies.anomaly import Rules
from sessions_app.core.judge.anomalies.detectors import find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.story import story
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from sessions_app.core.shared_values import shared_values
from sessions_app.models import Project


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


@shared_values()
def judgement_columns(run: Run, odd: Rules) -> dict[str, object]:
    kit, verdict, anomalies = audit_kit(run), judge(run), find_anomalies(run, odd)
    return {
        "verdict": verdict.verdict,
        "verdict_step": verdict.step,
        "verdict_reasons": [reason.to_json() for reason in verdict.reasons],
        "anomalies": [anomaly.to_json() for anomaly in anomalies],
        "kit": kit.to_json(),
        "kit_captured": kit.captured,
        "kit_lacks": list(kit.lacks),
        "story": story(run, anomalies),
        "failure_group": failure_group(run, anomalies),
    }
