"""Replaying all runs of a session: asking for it, reading what came of it, its report."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.api.errors import not_found
from sessions_app.api.openapi import REPORT_TYPES, answers_file
from sessions_app.api.reads import find_session
from sessions_app.api.reports import report_page
from sessions_app.api.runs import order_in
from sessions_app.api.schemas import ReplayRequest, ReportFormat, SessionReplayBody, SessionReplayQueued
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.core.reports.session_report import SessionReport, as_json, as_markdown, as_text
from sessions_app.models import SessionReplay
from sessions_app.queries.session_replays import replays_in, session_replay_by_id
from sessions_app.services.session_replays import cancel_session_replay, request_session_replay, session_report

router = Router(auth=FullKeyHolder(), tags=["session replays"])


@router.post("/sessions/{path:session_id}/replays", response={202: SessionReplayQueued, 409: None})
def post_session_replay(
    request: HttpRequest, session_id: str, wanted: ReplayRequest | None = None
) -> Status[JsonObject]:
    """Replay each recorded run of a session, in order. All are queued or none.

    The optional body is that of a run's replay. Sessions of more than 200 runs are refused.
    """
    session, wanted = find_session(request, session_id), wanted or ReplayRequest()
    asked = request_session_replay(
        session=session, mode=wanted.mode, request_key=wanted.request_key, order=order_in(wanted)
    )
    replays = [{"run_id": each.run.run_id, "replay_id": each.replay_id} for each in replays_in(asked)]
    return Status(202, {"session_replay_id": asked.session_replay_id, "replays": replays})


@router.get("/session-replays/{session_replay_id}", response={200: SessionReplayBody})
def get_session_replay(request: HttpRequest, session_replay_id: str) -> JsonObject:
    """Get a session replay: its state, the verdict of each run in order, and one for all of them."""
    return as_json(session_report(find_session_replay(request, session_replay_id)))


@router.post(
    "/session-replays/{session_replay_id}/cancel",
    response={202: SessionReplayBody},
    operation_id="cancel_session_replay",
)
def cancel_session(request: HttpRequest, session_replay_id: str) -> Status[JsonObject]:
    """Cancel a session replay. Waiting runs are cancelled and running ones asked to stop; results so far stay."""
    asked = find_session_replay(request, session_replay_id)
    cancel_session_replay(asked)
    return Status(202, as_json(session_report(asked)))


@router.get("/session-replays/{session_replay_id}/report", openapi_extra=answers_file(*REPORT_TYPES))
def get_session_replay_report(
    request: HttpRequest, session_replay_id: str, format: ReportFormat = "json"
) -> HttpResponse:
    """Get the report on all runs of a session replay. As `json`, `md`, `txt` or `html`."""
    report = session_report(find_session_replay(request, session_replay_id))
    render, content_type = _REPORTS[format]
    return HttpResponse(render(report), content_type=content_type)


def find_session_replay(request: HttpRequest, session_replay_id: str) -> SessionReplay:
    found = session_replay_by_id(project_of(request), session_replay_id) if "\x00" not in session_replay_id else None
    if found is None:
        raise not_found("session replay")
    return found


_REPORTS: dict[ReportFormat, tuple[Callable[[SessionReport], bytes | str], str]] = {
    "json": (lambda report: compact_json(as_json(report)), "application/json"),
    "html": (lambda report: report_page(report.session_id, report.words, as_text(report)), "text/html; charset=utf-8"),
    "md": (as_markdown, "text/markdown; charset=utf-8"),
    "txt": (as_text, "text/plain; charset=utf-8"),
}
