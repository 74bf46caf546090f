"""The project's rules of redaction, applied to what is stored. Keys of the scope admin count, look and start."""

from __future__ import annotations

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Status
from pydantic import Field

from sessions_app.api.auth import AdminKeyHolder, key_of, project_of
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.schemas import Answer, Moment
from sessions_app.api.shapes import moment
from sessions_app.core.payload import JsonObject
from sessions_app.models import RedactionJob
from sessions_app.services import redaction_jobs

router = Router(auth=AdminKeyHolder(), tags=["redaction"])


class CountBody(Answer):
    values: int
    runs: int = Field(description="Number of runs with a match.")


class RedactionBody(Answer):
    state: Literal["counting", "counted", "applying", "done", "cancelled"]
    done: int = Field(description="Runs counted so far; once started, runs and traces processed.")
    total: int = Field(description="Total.")
    counts: dict[str, CountBody] = Field(description="Matches by rule.")
    changed: dict[str, int] = Field(description="Numbers of runs, traces, texts and payloads changed or deleted.")
    unchanged: list[str] = Field(description="Ids of the first twenty runs and traces that could not be changed.")
    requested_by: str | None
    started_by: str | None
    created_at: Moment
    started_at: Moment | None
    finished_at: Moment | None


@router.get("/redaction-job", response={200: RedactionBody, 404: None})
def get_redaction_job(request: HttpRequest) -> JsonObject:
    """Get the progress and counts of the last redaction job."""
    job = redaction_jobs.last_job(project_of(request))
    if job is None:
        raise not_found("redaction job")
    return _shape(job)


@router.post("/redaction-job", response={202: RedactionBody})
def post_redaction_job(request: HttpRequest) -> Status[JsonObject]:
    """Count what the project's rules match in stored data. Nothing changes until the job is started."""
    key = key_of(request)
    return Status(202, _shape(redaction_jobs.ask_for_count(key.project, key.created_by)))


@router.post("/redaction-job/start", response={202: RedactionBody, 409: None})
def start_redaction_job(request: HttpRequest) -> Status[JsonObject]:
    """Redact what was counted. This cannot be undone."""
    key = key_of(request)
    try:
        redaction_jobs.start(key.project, key.created_by)
    except redaction_jobs.NotCounted as error:
        raise Refused(409, "not_counted", str(error)) from None
    return Status(202, get_redaction_job(request))


@router.delete("/redaction-job", response={204: None})
def delete_redaction_job(request: HttpRequest) -> Status[None]:
    """Discard a count that was not started. A job that was started continues."""
    redaction_jobs.cancel(project_of(request))
    return Status(204, None)


def _shape(job: RedactionJob) -> JsonObject:
    people = {"requested_by": job.requested_by, "started_by": job.started_by}
    return {
        "state": job.state,
        "done": job.looked_at,
        "total": redaction_jobs.size_of(job),
        "counts": {rule: {"values": values, "runs": runs} for rule, (values, runs) in job.counts.items()},
        "changed": job.changed,
        "unchanged": job.unchanged,
        **{name: person and person.get_username() for name, person in people.items()},
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "finished_at": moment(job.finished_at),
    }
