"""Runs that went well when they were asked for about the same."""

from __future__ import annotations

from rapidfuzz import fuzz, process

from sessions_app.models import Run, Session

TWINS = 3
SESSIONS = 300
"""The newest of the project, among which twins are looked for."""
LIKENESS = 60
"""Of 100: below that two inputs have little more in common than the words of their trade."""


def good_twins(run: Run) -> list[str]:
    """Ids of runs of the same agent without an error or an anomaly, the most alike first."""
    if not run.input_preview:
        return []
    newest = Session.objects.filter(project=run.project_id).order_by("-last_at", "-id")[:SESSIONS]
    good = Run.objects.filter(session__in=newest.values("pk"), status="ok", origin="recorded", anomalies=[])
    others = good.filter(agent_name=run.agent_name).exclude(session=run.session_id).order_by("-id")
    inputs = dict(others.values_list("run_id", "input_preview"))
    found = process.extract(run.input_preview, inputs, scorer=fuzz.token_sort_ratio, limit=TWINS, score_cutoff=LIKENESS)
    return [run_id for _, _, run_id in found]
