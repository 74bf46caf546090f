"""What the judge says of a run, as columns of its row."""

from __future__ import annotations

from dataclasses import replace

from django.conf import settings

from sessions_app.core.judge.anomalies import Rules, find_anomalies
from sessions_app.core.judge.failure_group import failure_group
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.story import story
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run
from sessions_app.core.shared_values import shared_values


def rules() -> Rules:
    """The detectors' rules with what this installation set."""
    words = tuple(settings.REPLAY_ERROR_WORDS)
    return replace(Rules(), error_words=words) if words else Rules()


@shared_values()
def judgement_columns(run: Run) -> dict[str, object]:
    kit, verdict, anomalies = audit_kit(run), judge(run), find_anomalies(run, rules())
    return {
        "verdict": verdict.verdict,
        "verdict_step": verdict.step,
        "verdict_reasons": [reason.to_json() for reason in verdict.reasons],
        "anomalies": [anomaly.to_json() for anomaly in anomalies],
        "kit": kit.to_json(),
        "kit_captured": kit.captured,
        "kit_lacks": list(kit.lacks),
        "story": story(run, anomalies),
        "failure_group": failure_group(run),
    }
