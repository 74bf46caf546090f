"""What the judge says of a run, as columns of its row."""

from __future__ import annotations

from dataclasses import asdict

from django.conf import settings

from sessions_app.core.judge.anomalies import DEFAULT_ERROR_WORDS, find_anomalies
from sessions_app.core.judge.kit import audit_kit
from sessions_app.core.judge.story import story
from sessions_app.core.judge.verdict import judge
from sessions_app.core.run import Run


def judgement_columns(run: Run) -> dict[str, object]:
    kit, verdict = audit_kit(run), judge(run)
    anomalies = find_anomalies(run, error_words=settings.REPLAY_ERROR_WORDS or DEFAULT_ERROR_WORDS)
    return {
        "verdict": verdict.verdict,
        "verdict_step": verdict.step,
        "verdict_reasons": [asdict(reason) for reason in verdict.reasons],
        "anomalies": [asdict(anomaly) for anomaly in anomalies],
        "kit": kit.to_json(),
        "kit_captured": kit.captured,
        "story": story(run, anomalies),
    }
