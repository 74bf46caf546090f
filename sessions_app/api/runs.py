"""Runs: sending them, reading them, replaying them."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder, KeyHolder, project_of
from sessions_app.api.bodies import read_body
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.examples import EXCHANGES, RECORDINGS
from sessions_app.api.openapi import (
    ANY_JSON,
    JSON_TYPE,
    answers_file,
    takes,
)
from sessions_app.api.rendering import json_answer
from sessions_app.api.schemas import (
    Accepted,
    AcceptedBatch,
    AttachedBody,
    ChangedSince,
    ColdCaseBody,
    ColdCaseRequest,
    ErrorAnswer,
    KitBody,
    PageSize,
    ReplayList,
    ReplayQueued,
    ReplayRequest,
    RunBody,
    RunList,
    StepList,
)
from sessions_app.api.shapes import cold_case_body, listed_run, replay_body, run_body, shown, step_body, verdict_body
from sessions_app.core.formats.native import encode_native
from sessions_app.core.payload import JsonObject
from sessions_app.core.search.query import parse_query
from sessions_app.mapping.load import load_facts, load_run, load_steps
from sessions_app.models import Project, Run
from sessions_app.queries.find_spans import in_traces
from sessions_app.queries.run_lists import Page, replays_of_run, runs_page
from sessions_app.services.cold_cases import mark_cold, take_back
from sessions_app.services.deletion import RunInUse, delete_run
from sessions_app.services.exchanges import attach_exchanges
from sessions_app.services.imports import take_in
from sessions_app.services.replays import request_replay
from sessions_app.services.run_store import Ingested
from sessions_app.services.trace_runs import first_or_made

router = Router(auth=FullKeyHolder(), tags=["runs"])


@router.post(
    "/runs",
    auth=KeyHolder(),
    response={
        200: Accepted | AcceptedBatch,
        201: Accepted | AcceptedBatch,
        409: ErrorAnswer,
        410: ErrorAnswer,
    },
    openapi_extra=takes(ANY_JSON, RECORDINGS),
)
def post_run(request: HttpRequest) -> Status[JsonObject]:
    """Send one recording, or several as `{"runs": [...]}`. All of them are stored or none.

    A recording is a native record, a session file, OpenAI Agents SDK items, a Pydantic AI message dump, step events,
    checkpoints, snapshots, recorded tools, or recorded HTTP from vcrpy, nock or WireMock. The server recognises the
    format from the content: send YAML, JSON Lines and archives as they are, under any content type.

    Exports from other products (OTLP JSON, OpenAI Agents traces, Langfuse, LangSmith, Phoenix), logged requests to
    model providers and case files are also accepted; the answer lists the runs found in them.

    201 when a run is new, 200 for the same again, 409 when another run has its id.
    """
    imported = take_in(project_of(request), read_body(request), request.headers.get("Content-Type", ""))
    status = 201 if any(each.created for each in imported.items) else 200
    items = [_accepted(request, ingested) for ingested in imported.items]
    return Status(status, {"items": items} if imported.is_list else items[0])


def _accepted(request: HttpRequest, ingested: Ingested) -> JsonObject:
    run = ingested.run
    path = reverse("session", args=[run.project.slug, run.session.session_id])
    return {
        "run_id": run.run_id,
        "session_id": run.session.session_id,
        "url": request.build_absolute_uri(path),
        "verdict": verdict_body(run),
        "digest": bytes(run.content_digest).hex(),
    }


@router.get("/runs", response={200: RunList})
def list_runs(
    request: HttpRequest,
    q: str = "",
    cursor: str | None = None,
    limit: PageSize = 50,
    changed_since: ChangedSince = None,
) -> HttpResponse:
    """List recorded runs, newest arrivals first. `q` is a query as on the Sessions page; `origin:` asks for produced
    runs. Inputs and outputs are shortened here."""
    page = Page(cursor=cursor, limit=limit, changed_since=changed_since)
    runs, next_cursor = runs_page(project_of(request), parse_query(q), page)
    return json_answer({"items": list(map(listed_run, runs)), "next_cursor": next_cursor})


@router.get("/runs/{path:run_id}/steps", response={200: StepList})
def list_steps(request: HttpRequest, run_id: str, cursor: str | None = None, limit: PageSize = 100) -> JsonObject:
    """List the steps of a run, in order."""
    row = find_run(request, run_id)
    steps, states, last = load_steps(row, after=_position(cursor), limit=limit)
    items = [
        step_body(step, input_state=before, output_state=after, changes=changes)
        for step, (before, after, changes) in zip(steps, states, strict=True)
    ]
    return {"items": items, "next_cursor": None if last else str(steps[-1].index)}


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not cursor.isdecimal() or len(cursor) > 9:
        raise Refused(400, "bad_cursor", "The cursor is not one that this server gave.", "cursor")
    return int(cursor)


@router.get("/runs/{path:run_id}/record", openapi_extra=answers_file(JSON_TYPE))
def get_record(request: HttpRequest, run_id: str) -> HttpResponse:
    """Get the run in the native format. Posting it to an empty server gives an equal run."""
    return HttpResponse(encode_native(load_run(find_run(request, run_id))), content_type="application/json")


@router.get("/runs/{path:run_id}/kit", response={200: KitBody})
def get_kit(request: HttpRequest, run_id: str) -> JsonObject:
    """Get the replay kit: twelve lines and three buckets, each with how to capture it."""
    kit: JsonObject = find_run(request, run_id).kit
    return kit


@router.get("/runs/{path:run_id}/replays", response={200: ReplayList})
def list_replays_of_run(
    request: HttpRequest,
    run_id: str,
    cursor: str | None = None,
    limit: PageSize = 50,
    changed_since: ChangedSince = None,
) -> JsonObject:
    """List replays and forks of the run, newest first."""
    page = Page(cursor=cursor, limit=limit, changed_since=changed_since)
    replays, next_cursor = replays_of_run(find_run(request, run_id), page)
    return {"items": list(map(replay_body, replays)), "next_cursor": next_cursor}


@router.post("/runs/{path:run_id}/replays", response={202: ReplayQueued, 409: ErrorAnswer})
def post_replay(request: HttpRequest, run_id: str, wanted: ReplayRequest | None = None) -> Status[JsonObject]:
    """Replay a run. It is queued and played in isolation from the network; ask `GET /replays/{replay_id}` for its
    state. The body is optional.

    Mode `recording` rebuilds the agent and checks the recording; `code` runs a registered agent with frozen tools,
    `code_and_tools` runs its tools as well; `live` calls a live model.
    """
    run, wanted = find_run(request, run_id), wanted or ReplayRequest()
    replay = request_replay(run=run, mode=wanted.mode, request_key=wanted.request_key, order=order_in(wanted))
    return Status(202, {"replay_id": replay.replay_id})


def order_in(wanted: ReplayRequest) -> JsonObject:
    return wanted.model_dump(exclude_none=True, exclude={"mode", "request_key"})


@router.post(
    "/runs/{path:run_id}/exchanges",
    response={200: AttachedBody, 409: ErrorAnswer},
    openapi_extra=takes(ANY_JSON, EXCHANGES),
)
def post_exchanges(request: HttpRequest, run_id: str) -> JsonObject:
    """Attach recorded HTTP to a run's tool calls. Send a vcrpy (YAML or JSON) or betamax cassette, or a nock or
    WireMock file.

    Each exchange goes to the call whose answer or arguments contain it, or during which it was recorded. This changes
    the run: sending the first recording again then conflicts with it.
    """
    attached = attach_exchanges(find_run(request, run_id), read_body(request))
    return {"run_id": run_id, "steps": list(attached.steps)}


@router.post("/runs/{path:run_id}/cold-case", response={200: ColdCaseBody})
def post_cold_case(request: HttpRequest, run_id: str, wanted: ColdCaseRequest) -> JsonObject | None:
    """Mark the run as a cold case. A reason is required; marking again replaces it."""
    run = find_run(request, run_id)
    mark_cold(run=run, reason=wanted.reason)
    run.refresh_from_db()
    return cold_case_body(run)


@router.delete("/runs/{path:run_id}/cold-case", response={204: None})
def delete_cold_case(request: HttpRequest, run_id: str) -> Status[None]:
    """Remove the cold case mark. Succeeds where there is none."""
    take_back(run=find_run(request, run_id))
    return Status(204, None)


@router.get("/runs/{path:run_id}", response={200: RunBody})
def get_run(request: HttpRequest, run_id: str) -> JsonObject:
    """Get a run: facts, outcome, verdict and anomalies."""
    return whole_run(find_run(request, run_id))


@router.delete("/runs/{path:run_id}", response={204: None, 409: ErrorAnswer}, operation_id="delete_run")
def delete_one_run(request: HttpRequest, run_id: str) -> Status[None]:
    """Delete a run permanently, with its spans, its replays and what they produced. Its forks stay. 409 while one of
    its replays has not ended. Bytes that other runs may share, such as tool answers, stay in the store."""
    try:
        delete_run(find_run(request, run_id))
    except RunInUse as error:
        raise Refused(409, "in_use", str(error)) from None
    return Status(204, None)


def whole_run(row: Run) -> JsonObject:
    facts = load_facts(row)
    return run_body(row, input_=shown(facts.input), output=shown(facts.output), error=facts.error)


def find_run(request: HttpRequest, run_id: str) -> Run:
    return run_in(project_of(request), run_id)


def run_in(project: Project, run_id: str) -> Run:
    """Also one whose spans have come and of which no run was made so far. Raises `Refused`."""
    if "\x00" in run_id:
        raise not_found("run")
    runs = _runs_of(project)
    # Spans may give their run a name of its own, and be in a run that has the id of another trace.
    run = first_or_made(runs.filter(run_id=run_id), project, run_id) or runs.filter(in_traces([run_id])).first()
    if run is None:
        raise not_found("run")
    return run


def _runs_of(project: Project) -> QuerySet[Run]:
    return Run.objects.filter(project=project).select_related("session", "project", "cold_case")
