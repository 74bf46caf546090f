"""Session replays and their replays, for pages and the API."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sessions_app.models import Project, Replay, Run, RunContent, Session, SessionReplay
from sessions_app.queries.turns import in_turn

_SHOWN = (
    *(field.attname for field in Replay._meta.concrete_fields),
    *("content__base_steps", "content__step_count", "run__content"),
    *("run__run_id", "run__verdict", "run__step_count", "produced_run__run_id", "produced_run__step_count"),
)
"""Without the large columns of the runs."""


def session_replay_by_id(project: Project, session_replay_id: str) -> SessionReplay | None:
    rows = SessionReplay.objects.filter(project=project, session_replay_id=session_replay_id)
    return rows.select_related("session", "requested_by").first()


def replays_in(asked: SessionReplay) -> list[Replay]:
    """In the order of the session's runs. One query."""
    rows = asked.replays.select_related("run", "produced_run", "content").only(*_SHOWN)
    return list(rows.order_by(*in_turn("run__")))


def runs_in_order(session: Session, at_most: int) -> list[Run]:
    """The recorded runs of a session in their order; what a replay produced is none of them."""
    rows = session.runs.filter(origin="recorded").order_by(*in_turn())
    return list(rows.only(*_OF_RUNS)[:at_most])


_OF_RUNS = ("run_id", "project_id", "status", "content", "model_call_count", "tool_call_count", "step_kinds")


def go_on_from_others(runs: Sequence[Run]) -> bool:
    """Whether one of them began with earlier turns, or called another agent. One query."""
    contents = RunContent.objects.filter(pk__in=[run.content_id for run in runs])
    return any("agent" in run.step_kinds for run in runs) or contents.filter(prior_node__isnull=False).exists()


def recorded_runs_of(session: Session, run_ids: Iterable[str]) -> dict[str, Run]:
    """What each was asked and answered, and what went wrong in it, by run id. One query."""
    rows = Run.objects.filter(session=session, run_id__in=list(run_ids))
    shown = ("run_id", "project_id", "input_preview", "output_preview", "error_preview", "anomalies")
    return {run.run_id: run for run in rows.only(*shown)}


def newest_of(session: Session) -> SessionReplay | None:
    return session.session_replays.order_by("-pk").first()
