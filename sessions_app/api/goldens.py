"""Goldens: keeping them, running them, reading what came of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router, Status

from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.api.bodies import read_body
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.golden_bodies import (
    BatchBody,
    BatchQueued,
    BatchReportFormat,
    BatchRequest,
    GoldenBody,
    GoldenList,
    GoldenNotRun,
    GoldenRequest,
    GoldenRunBody,
    GoldenRunQueued,
    GoldenRunRequest,
    QuarantineRequest,
    golden_body,
    golden_run_body,
)
from sessions_app.api.observed import observed_in
from sessions_app.api.openapi import JSON_TYPE, MARKDOWN_TYPE, XML_TYPE, ZIP_TYPES, answers_file, named, takes
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import ErrorAnswer, ObservedRequest, PageSize
from sessions_app.api.waiting import WaitSeconds, wait_for_end
from sessions_app.core.goldens.report import Outcome, as_json, as_junit, as_markdown
from sessions_app.core.payload import JsonObject, compact_json
from sessions_app.models import Golden, GoldenBatch, GoldenRun
from sessions_app.queries.goldens import (
    batch_by_id,
    deploy_before,
    exportable_goldens,
    golden_by_id,
    golden_run_by_id,
    goldens_of,
)
from sessions_app.queries.replays import has_ended
from sessions_app.queries.run_lists import page_of
from sessions_app.services.golden_batches import begin_batch, cancel_batch, outcomes_of, resume_batch, run_batch
from sessions_app.services.golden_export import NotExportable, export_goldens
from sessions_app.services.golden_runs import run_golden, settle, take_in_golden_run, take_in_unrun
from sessions_app.services.goldens import create_golden, end_quarantine, quarantine

router = Router(auth=FullKeyHolder(), tags=["goldens"])


@router.post("/goldens", response={201: GoldenBody, 404: ErrorAnswer, 410: ErrorAnswer})
def post_golden(request: HttpRequest, wanted: GoldenRequest) -> Status[JsonObject]:
    """Keep a run as a golden with checks. The run, its origin and their forks are judged at once; `warnings` say what
    is missing until it fails on one run and passes on another."""
    run = find_run(request, wanted.run_id)
    golden = create_golden(run=run, wanted=wanted.model_dump(exclude={"run_id"}))
    return Status(201, golden_body(golden))


@router.get("/goldens", response={200: GoldenList})
def list_goldens(request: HttpRequest, cursor: str | None = None, limit: PageSize = 50) -> JsonObject:
    """List the project's goldens, newest first."""
    goldens, next_cursor = page_of(goldens_of(project_of(request)), cursor, limit)
    return {"items": list(map(golden_body, goldens)), "next_cursor": next_cursor}


@router.get("/goldens/{golden_id}", response={200: GoldenBody})
def get_golden(request: HttpRequest, golden_id: str) -> JsonObject:
    """Get a golden, with the runs it fails and passes on."""
    return golden_body(find_golden(request, golden_id))


@router.delete("/goldens/{golden_id}", response={204: None})
def delete_golden(request: HttpRequest, golden_id: str) -> Status[None]:
    """Delete a golden and its runs. The replays they made stay."""
    find_golden(request, golden_id).delete()
    return Status(204, None)


@router.post("/goldens/{golden_id}/quarantine", response={200: GoldenBody})
def post_quarantine(request: HttpRequest, golden_id: str, wanted: QuarantineRequest) -> JsonObject:
    """Quarantine a golden. It still runs, but its result does not count. A reason is required."""
    golden = find_golden(request, golden_id)
    quarantine(golden, wanted.reason)
    return golden_body(golden)


@router.delete("/goldens/{golden_id}/quarantine", response={204: None})
def delete_quarantine(request: HttpRequest, golden_id: str) -> Status[None]:
    """Take a golden out of quarantine. Its result counts again."""
    end_quarantine(find_golden(request, golden_id))
    return Status(204, None)


@router.post("/goldens/{golden_id}/runs", response={202: GoldenRunQueued})
def post_golden_run(request: HttpRequest, golden_id: str, wanted: GoldenRunRequest | None = None) -> Status[JsonObject]:
    """Run a golden. A replay is queued and judged when it has ended. The body is optional."""
    run = run_golden(find_golden(request, golden_id), agent=wanted.agent if wanted else None)
    return Status(202, {"golden_run_id": run.golden_run_id, "replay_id": run.replay.replay_id})


@router.post(
    "/goldens/{golden_id}/runs/observed",
    response={
        200: GoldenRunBody,
        201: GoldenRunBody,
        409: ErrorAnswer,
        410: ErrorAnswer,
    },
    openapi_extra=takes(named(ObservedRequest)),
)
def post_observed_golden_run(request: HttpRequest, golden_id: str, batch: str | None = None) -> Status[JsonObject]:
    """Submit a run of the golden made on your own machine. `batch` is a batch created with `on_own_machine`."""
    golden = find_golden(request, golden_id)
    record, order = observed_in(read_body(request))
    belongs_to = find_batch(request, batch) if batch else None
    taken = take_in_golden_run(golden, record, order, batch=belongs_to)
    return Status(201 if taken.created else 200, golden_run_body(taken.run))


@router.post("/goldens/{golden_id}/runs/not-run", response={201: GoldenRunBody})
def post_golden_not_run(
    request: HttpRequest, golden_id: str, wanted: GoldenNotRun, batch: str | None = None
) -> Status[JsonObject]:
    """Report that the golden could not run on your own machine. Reports then count it."""
    golden = find_golden(request, golden_id)
    belongs_to = find_batch(request, batch) if batch else None
    return Status(201, golden_run_body(take_in_unrun(golden, **wanted.model_dump(), batch=belongs_to)))


@router.get("/golden-runs/{golden_run_id}", response={200: GoldenRunBody, 410: ErrorAnswer, 429: ErrorAnswer})
def get_golden_run(request: HttpRequest, golden_run_id: str, wait: WaitSeconds = 0) -> JsonObject:
    """Get a golden run: its state, result and the result of each check."""
    run = find_golden_run(request, golden_run_id)
    if wait:
        replay = run.replay
        wait_for_end(lambda: has_ended(replay), wait)
        run = find_golden_run(request, golden_run_id)
    settle([run])
    return golden_run_body(run)


@router.get(
    "/goldens/{golden_id}/export", response={409: ErrorAnswer, 410: ErrorAnswer}, openapi_extra=answers_file(*ZIP_TYPES)
)
def export_golden(request: HttpRequest, golden_id: str) -> HttpResponse:
    """Export a golden as a zip for your own tests. It holds one constant test file, the golden and its recording as
    JSON."""
    return _exported([find_golden(request, golden_id)], "golden.zip")


@router.get(
    "/exports/goldens",
    response={404: ErrorAnswer, 409: ErrorAnswer, 410: ErrorAnswer},
    operation_id="export_goldens",
    openapi_extra=answers_file(*ZIP_TYPES),
)
def export_many(request: HttpRequest, golden: Annotated[list[str], Query(default_factory=list)]) -> HttpResponse:
    """Export several goldens as one zip. Name them (`golden=…&golden=…`), or get all that run without the server."""
    chosen = _named(request, golden) if golden else [*exportable_goldens(project_of(request))]
    return _exported(chosen, "goldens.zip")


def _exported(goldens: list[Golden], name: str) -> HttpResponse:
    try:
        return zip_answer(export_goldens(goldens), name)
    except NotExportable as error:
        raise Refused(409, "not_exportable", str(error)) from None


@router.post("/golden-batches", response={202: BatchQueued, 404: ErrorAnswer})
def post_golden_batch(request: HttpRequest, wanted: BatchRequest | None = None) -> Status[JsonObject]:
    """Run several goldens, each with every agent named. All runs are queued or none. With `on_own_machine` nothing is
    queued; you submit the runs."""
    wanted = wanted or BatchRequest()
    if wanted.on_own_machine:
        empty = begin_batch(project_of(request), wanted.label, is_deploy=wanted.is_deploy)
        return Status(202, {"golden_batch_id": empty.golden_batch_id, "runs": []})
    goldens = [*goldens_of(project_of(request))] if wanted.goldens is None else _named(request, wanted.goldens)
    batch = run_batch(
        project_of(request), goldens, agents=wanted.agents, label=wanted.label, is_deploy=wanted.is_deploy
    )
    runs = [
        {"golden_run_id": run.golden_run_id, "replay_id": run.replay.replay_id}
        for run in batch.runs.select_related("replay").order_by("pk")
    ]
    return Status(202, {"golden_batch_id": batch.golden_batch_id, "runs": runs})


def _named(request: HttpRequest, names: list[str]) -> list[Golden]:
    return [find_golden(request, name) for name in dict.fromkeys(names)]


@router.get("/golden-batches/{golden_batch_id}", response={200: BatchBody, 410: ErrorAnswer})
def get_golden_batch(request: HttpRequest, golden_batch_id: str) -> JsonObject:
    """Get a batch: every run with its result, and the worst result of all."""
    batch = find_batch(request, golden_batch_id)
    outcomes, deploy = outcomes_of(batch), deploy_before(batch)
    over = sum(outcome.result is not None for outcome in outcomes)
    return {
        "golden_batch_id": batch.golden_batch_id,
        "label": batch.label,
        "is_deploy": batch.is_deploy,
        "baseline": deploy.golden_batch_id if deploy else None,
        "progress": {"done": over, "total": len(outcomes)},
        **as_json(outcomes),
    }


@router.get(
    "/golden-batches/{golden_batch_id}/report",
    response={410: ErrorAnswer},
    openapi_extra=answers_file(MARKDOWN_TYPE, JSON_TYPE, XML_TYPE),
)
def get_golden_batch_report(
    request: HttpRequest, golden_batch_id: str, format: BatchReportFormat = "json"
) -> HttpResponse:
    """Get the results of a batch as a file. `json`, `md` for a pull request, or `junit` for CI."""
    outcomes = outcomes_of(find_batch(request, golden_batch_id))
    render, content_type = _REPORTS[format]
    return HttpResponse(render(outcomes, site_of(request)), content_type=content_type)


@router.post("/golden-batches/{golden_batch_id}/cancel", response={202: BatchBody, 410: ErrorAnswer})
def cancel_golden_batch(request: HttpRequest, golden_batch_id: str) -> Status[JsonObject]:
    """Cancel a batch. Waiting runs are cancelled and running ones asked to stop; results so far stay."""
    cancel_batch(find_batch(request, golden_batch_id))
    return Status(202, get_golden_batch(request, golden_batch_id))


@router.post("/golden-batches/{golden_batch_id}/resume", response={202: BatchBody, 410: ErrorAnswer})
def resume_golden_batch(request: HttpRequest, golden_batch_id: str) -> Status[JsonObject]:
    """Queue again what was cancelled or could not run. Results so far stay."""
    resume_batch(find_batch(request, golden_batch_id))
    return Status(202, get_golden_batch(request, golden_batch_id))


def zip_answer(content: bytes, name: str) -> HttpResponse:
    response = HttpResponse(content, content_type="application/zip")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def find_golden(request: HttpRequest, golden_id: str) -> Golden:
    found = golden_by_id(project_of(request), _id(golden_id))
    if found is None:
        raise not_found("golden")
    return found


def find_golden_run(request: HttpRequest, golden_run_id: str) -> GoldenRun:
    found = golden_run_by_id(project_of(request), _id(golden_run_id))
    if found is None:
        raise not_found("golden run")
    return found


def find_batch(request: HttpRequest, golden_batch_id: str) -> GoldenBatch:
    found = batch_by_id(project_of(request), _id(golden_batch_id))
    if found is None:
        raise not_found("batch of golden runs")
    return found


def _id(text: str) -> str:
    """PostgreSQL knows no NUL."""
    return text.replace("\x00", "")


def site_of(request: HttpRequest) -> str:
    return request.build_absolute_uri("/").rstrip("/")


_REPORTS: dict[BatchReportFormat, tuple[Callable[[list[Outcome], str], bytes | str], str]] = {
    "json": (lambda outcomes, site: compact_json(as_json(outcomes)), "application/json"),
    "md": (lambda outcomes, site: as_markdown(outcomes, site=site), "text/markdown; charset=utf-8"),
    "junit": (lambda outcomes, site: as_junit(outcomes), "application/xml"),
}
