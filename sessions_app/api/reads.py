"""Sessions, replays, comparisons, cold cases and payloads."""

from __future__ import annotations

import re

from django.http import HttpRequest, HttpResponse
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.api.errors import not_found
from sessions_app.api.openapi import BINARY_TYPE, answers_file
from sessions_app.api.rendering import json_answer
from sessions_app.api.runs import find_run, whole_run
from sessions_app.api.schemas import (
    ChangedSince,
    ColdCaseGroups,
    ComparisonBody,
    ErrorAnswer,
    PageSize,
    ReplayBody,
    ReplayList,
    SessionBody,
    SessionList,
)
from sessions_app.api.shapes import listed_run, moment, replay_body, session_body
from sessions_app.api.waiting import WaitSeconds, wait_for_end
from sessions_app.core.compare.as_json import to_json
from sessions_app.core.errors import PayloadMissing
from sessions_app.core.payload import JsonObject
from sessions_app.core.search.query import parse_query
from sessions_app.models import Project, Replay, Run, Session
from sessions_app.queries.cold_cases import ColdGroup, MissingThing, cold_board
from sessions_app.queries.payloads import read_payload
from sessions_app.queries.replays import has_ended
from sessions_app.queries.run_lists import Page, replays_page
from sessions_app.queries.sessions import sessions_with_runs
from sessions_app.queries.turns import in_turn
from sessions_app.services.comparisons import compare
from sessions_app.services.replays import cancel_replay

router = Router(auth=FullKeyHolder())
_DIGEST = re.compile(r"[0-9a-f]{64}")


@router.get("/sessions", response={200: SessionList}, tags=["sessions"])
def list_sessions(request: HttpRequest, q: str = "", cursor: str | None = None, limit: PageSize = 50) -> HttpResponse:
    """List sessions, newest first. `q` is a query as on the Sessions page. Inputs and outputs are shortened here."""
    sessions, next_cursor = sessions_with_runs(project_of(request), parse_query(q), cursor, limit)
    items = [session_body(session, [_listed(run, session) for run in runs]) for session, runs in sessions]
    # Not by way of the schema, which would read again what the database just wrote: a third of the time of this answer.
    return json_answer({"items": items, "next_cursor": next_cursor})


def _listed(run: Run, session: Session) -> JsonObject:
    run.session = session
    return listed_run(run)


@router.get("/sessions/{path:session_id}", response={200: SessionBody, 410: ErrorAnswer}, tags=["sessions"])
def get_session(request: HttpRequest, session_id: str) -> JsonObject:
    """Get a session with its recorded runs, complete."""
    session = find_session(request, session_id)
    runs = session.runs.filter(origin="recorded").select_related("session", "cold_case").order_by(*in_turn())
    return session_body(session, [whole_run(run) for run in runs])


def find_session(request: HttpRequest, session_id: str) -> Session:
    sessions = Session.objects.filter(project=project_of(request), session_id=session_id)
    session = sessions.select_related("project").first() if "\x00" not in session_id else None
    if session is None:
        raise not_found("session")
    return session


@router.get("/payloads/{digest}", tags=["payloads"], openapi_extra=answers_file(BINARY_TYPE))
def get_payload(request: HttpRequest, digest: str) -> HttpResponse:
    """Download the exact bytes of a payload."""
    if not _DIGEST.fullmatch(digest):
        raise not_found("payload")
    try:
        content = read_payload(project_of(request).pk, digest)
    except PayloadMissing:
        raise not_found("payload") from None
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{digest}.bin"'
    response["ETag"] = f'"{digest}"'
    return response


@router.get("/replays", response={200: ReplayList}, tags=["replays"])
def list_replays(
    request: HttpRequest,
    q: str = "all",
    cursor: str | None = None,
    limit: PageSize = 50,
    changed_since: ChangedSince = None,
) -> JsonObject:
    """List replays, newest first. `q` is a filter of the Replays page, such as `open`, `reproduced` or `different`."""
    page = Page(cursor=cursor, limit=limit, changed_since=changed_since)
    replays, next_cursor = replays_page(project_of(request), q or "all", page)
    return {"items": list(map(replay_body, replays)), "next_cursor": next_cursor}


@router.get("/replays/{replay_id}", response={200: ReplayBody, 429: ErrorAnswer}, tags=["replays"])
def get_replay(request: HttpRequest, replay_id: str, wait: WaitSeconds = 0) -> JsonObject:
    """Get a replay: state, progress, verdict, first divergence and the produced run. A paused replay has not ended."""
    replay = find_replay(request, replay_id)
    if wait:
        wait_for_end(lambda: has_ended(replay), wait)
        replay = find_replay(request, replay_id)
    return replay_body(replay)


@router.post("/replays/{replay_id}/cancel", response={202: ReplayBody}, tags=["replays"], operation_id="cancel_replay")
def post_cancel(request: HttpRequest, replay_id: str) -> Status[JsonObject]:
    """Ask a replay to stop. One that has ended stays as it is."""
    return Status(202, replay_body(cancel_replay(find_replay(request, replay_id))))


def find_replay(request: HttpRequest, replay_id: str) -> Replay:
    return replay_in(project_of(request), replay_id)


def replay_in(project: Project, replay_id: str) -> Replay:
    """Raises `Refused`."""
    replays = Replay.objects.filter(project=project)
    replays = replays.select_related("run", "produced_run", "session_replay")
    replay = replays.filter(replay_id=replay_id).first() if "\x00" not in replay_id else None
    if replay is None:
        raise not_found("replay")
    return replay


@router.get("/comparisons", response={200: ComparisonBody, 404: ErrorAnswer, 410: ErrorAnswer}, tags=["comparisons"])
def get_comparison(request: HttpRequest, left: str, right: str) -> JsonObject:
    """Compare two runs step by step and field by field. The first divergence is named."""
    return to_json(compare(find_run(request, left), find_run(request, right)))


@router.get("/cold-cases", response={200: ColdCaseGroups}, tags=["cold cases"])
def list_cold_cases(request: HttpRequest) -> JsonObject:
    """List cold cases, grouped by what made them cold, and the two fixes that would make most of them replayable."""
    board = cold_board(project_of(request))
    return {
        "items": [_cold_group(group) for group in board.groups],
        "total": board.total,
        "cheapest_fixes": {
            "missing": [_missing(thing) for thing in board.fixes.things],
            "completes": board.fixes.completes,
        },
        "next_cursor": None,
    }


def _cold_group(group: ColdGroup) -> JsonObject:
    return {
        "missing": [_missing(thing) for thing in group.things],
        "count": group.count,
        "first_at": moment(group.first_at),
        "last_at": moment(group.last_at),
        "runs": [{"run_id": case.run.run_id, "reason": case.reason} for case in group.runs],
    }


def _missing(thing: MissingThing) -> JsonObject:
    advice = [
        {"fix": each.sentence, "code": each.code, "runs": each.runs, "agents": list(each.agents)}
        for each in thing.advice
    ]
    first = thing.advice[0].sentence if thing.advice else None
    return {"key": thing.key, "title": thing.title, "fix": first, "fixes": advice, "missing_in": thing.missing_in}
