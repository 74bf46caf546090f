"""Runs that failed alike: what they have in common, and whether today's code still fails so."""

from __future__ import annotations

from typing import Any, Literal

from django.http import HttpRequest
from django.utils import timezone
from ninja import Router, Status
from pydantic import Field

from sessions_app.api import examples
from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.api.schemas import NO_NUL, Answer, Moment, OrderBody, ReplayOfRun, shown
from sessions_app.api.shapes import moment
from sessions_app.core.payload import JsonObject
from sessions_app.core.search.query import parse_query
from sessions_app.queries.failure_groups import Attempt, FailureGroup, attempts_at, failure_groups
from sessions_app.services.failure_replays import replay_representatives

router = Router(auth=FullKeyHolder(), tags=["goldens"])


class FailureGroupBody(Answer):
    group: str = Field(description="Find its runs with the query `group:`.")
    agent_name: str | None = Field(description="Of the agent in the recordings.")
    signs: list[str] = Field(description="What went wrong, without numbers, ids and quoted values.")
    runs: int
    first_at: Moment
    last_at: Moment
    representative: str = Field(description="Newest run that can be replayed; where none can, the newest one.")
    attempts: list[dict[str, Any]] = Field(
        description="The newest replay of it with each agent: agent, replay_id, run_id and outcome, which is fixed, "
        "still_fails, fails_otherwise, could_not_run, not_judged, not_known, or null while open. `why` says why it is "
        "not_judged."
    )


class FailureGroupList(Answer):
    items: list[FailureGroupBody]


class FailureReplaysRequest(OrderBody):
    model_config = shown(examples.FAILURE_REPLAYS)

    agents: list[str] = Field(max_length=100, description="Registered agents.")
    q: str = Field(default="", max_length=2000, pattern=NO_NUL, description="As for listing the groups.")
    runs: list[str] | None = Field(default=None, description="Representatives; all by default.")
    mode: Literal["code", "code_and_tools"] = "code_and_tools"


class FailureReplays(Answer):
    replays: list[ReplayOfRun]


@router.get("/failure-groups", response={200: FailureGroupList})
def list_failure_groups(request: HttpRequest, q: str = "") -> JsonObject:
    """List failed runs in groups, the 50 largest. `q` selects the runs, as on the Sessions page."""
    groups = failure_groups(project_of(request), parse_query(q), timezone.now())
    attempts = attempts_at(groups)
    return {"items": [_body(group, attempts[group.representative.pk]) for group in groups]}


@router.post("/failure-groups/replays", response={202: FailureReplays, 409: None})
def post_failure_replays(request: HttpRequest, wanted: FailureReplaysRequest) -> Status[JsonObject]:
    """Replay the representative of each group that can be replayed, with each agent. All are queued or none."""
    groups = failure_groups(project_of(request), parse_query(wanted.q), timezone.now())
    chosen = [each for each in groups if wanted.runs is None or each.representative.run_id in wanted.runs]
    queued = replay_representatives(chosen, wanted.agents, mode=wanted.mode)
    return Status(202, {"replays": [{"run_id": each.run.run_id, "replay_id": each.replay_id} for each in queued]})


def _body(group: FailureGroup, attempts: dict[str, Attempt]) -> JsonObject:
    return {
        "group": group.fingerprint,
        "agent_name": group.representative.agent_name,
        "signs": list(group.signs),
        "runs": group.count,
        "first_at": moment(group.first_at),
        "last_at": moment(group.last_at),
        "representative": group.representative.run_id,
        "attempts": [_attempt(attempt) for attempt in attempts.values()],
    }


def _attempt(attempt: Attempt) -> JsonObject:
    made = attempt.replay.produced_run
    return {
        "agent": attempt.agent,
        "replay_id": attempt.replay.replay_id,
        "run_id": made.run_id if made else None,
        "outcome": attempt.outcome,
        "why": attempt.why,
    }
