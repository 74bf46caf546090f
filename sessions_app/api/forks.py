"""Forks: going on from a step with something changed, answering by hand, breakpoints."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.reads import find_replay
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import (
    AnswerRequest,
    ErrorAnswer,
    ForkList,
    ForkQueued,
    ForkRequest,
    ReplayBody,
    ResumeRequest,
    SamplesRequest,
)
from sessions_app.api.shapes import fork_item, replay_body
from sessions_app.core.payload import JsonObject
from sessions_app.models.replays import ReplayState
from sessions_app.queries.forks import fork_rows
from sessions_app.services.forks import answer_by_hand, request_fork
from sessions_app.services.pauses import continue_replay, edit_and_continue, step_once

router = Router(auth=FullKeyHolder(), tags=["forks"])
_QUEUED = {202: ForkQueued, 409: ErrorAnswer}
_GOES_ON = {202: ReplayBody}


@router.post("/runs/{path:run_id}/forks", response=_QUEUED)
def post_fork(request: HttpRequest, run_id: str, wanted: ForkRequest) -> Status[JsonObject]:
    """Fork the run from a step, with at least one change. The steps before it stay as recorded."""
    return _queue(request, run_id, wanted, "fork")


@router.post("/runs/{path:run_id}/resume", response=_QUEUED)
def post_resume(request: HttpRequest, run_id: str, wanted: ResumeRequest) -> Status[JsonObject]:
    """Resume the run from a step without changes. For runs that broke off."""
    return _queue(request, run_id, wanted, "resume")


@router.post("/runs/{path:run_id}/samples", response=_QUEUED)
def post_samples(request: HttpRequest, run_id: str, wanted: SamplesRequest) -> Status[JsonObject]:
    """Fork the run several times with a live model. Tools stay frozen. Refused where no live model is connected."""
    return _queue(request, run_id, wanted, "sampling")


def _queue(request: HttpRequest, run_id: str, wanted: ResumeRequest, mode: str) -> Status[JsonObject]:
    run = find_run(request, run_id)
    order = wanted.model_dump(exclude_none=True, exclude={"request_key"})
    fork = request_fork(run=run, order=order, request_key=wanted.request_key, mode=mode)
    return Status(202, {"replay_id": fork.replay_id, "fork_id": fork.fork_id})


@router.get("/runs/{path:run_id}/forks", response={200: ForkList})
def list_forks(request: HttpRequest, run_id: str) -> JsonObject:
    """List the forks of the run, and the forks of those."""
    return {"items": [fork_item(row) for row in fork_rows(find_run(request, run_id))], "next_cursor": None}


@router.post("/replays/{replay_id}/answers", response={**_GOES_ON, 410: ErrorAnswer}, operation_id="answer_replay")
def post_answer(request: HttpRequest, replay_id: str, wanted: AnswerRequest) -> Status[JsonObject]:
    """Answer what a fork stopped at, or change the answer at a breakpoint. The replay then continues.

    A paused replay that changes nothing is cancelled, and the answer is the fork that continues in its place.
    """
    replay = find_replay(request, replay_id)
    give = edit_and_continue if replay.state == ReplayState.PAUSED else answer_by_hand
    return Status(202, replay_body(give(replay=replay, answer=wanted.model_dump(exclude_unset=True))))


@router.post("/replays/{replay_id}/continue", response=_GOES_ON, operation_id="continue_replay")
def post_continue(request: HttpRequest, replay_id: str) -> Status[JsonObject]:
    """Continue a paused replay to the next breakpoint or to its end."""
    return Status(202, replay_body(continue_replay(replay=find_replay(request, replay_id))))


@router.post("/replays/{replay_id}/step", response=_GOES_ON, operation_id="step_replay")
def post_step(request: HttpRequest, replay_id: str) -> Status[JsonObject]:
    """Continue a paused replay to the next model request or tool call."""
    return Status(202, replay_body(step_once(replay=find_replay(request, replay_id))))
