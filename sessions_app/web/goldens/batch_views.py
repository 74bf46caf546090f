"""Several goldens run at once: goldens × agents, while they run and when they are over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET, require_POST

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.goldens.report import Outcome, as_junit, as_markdown, overall, summary, worst_first
from sessions_app.models import Golden, GoldenBatch, Project
from sessions_app.queries.access import has_role
from sessions_app.queries.goldens import batch_before, batch_by_id
from sessions_app.queries.replays import queue_of
from sessions_app.services.golden_batches import can_resume, cancel_batch, outcomes_of, resume_batch
from sessions_app.web.access import project_page
from sessions_app.web.downloads import shown_file
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.live import live_part_of


@require_GET
@project_page()
def batch(request: HtmxHttpRequest, project: Project, golden_batch_id: str) -> HttpResponseBase:
    asked = _found(project, golden_batch_id)
    outcomes = outcomes_of(asked)
    context = _context(request, project, asked, outcomes)
    if request.htmx:
        seen = [context["queue"], *((outcome.golden_run_id, outcome.result, outcome.state) for outcome in outcomes)]
        return live_part_of(request, "goldens/_batch.html", context, seen)
    return render(request, "goldens/batch.html", context)


def _context(request: HttpRequest, project: Project, asked: GoldenBatch, outcomes: list[Outcome]) -> dict[str, Any]:
    over = sum(outcome.result is not None for outcome in outcomes)
    is_live = over < len(outcomes)
    agents = list(dict.fromkeys(outcome.agent for outcome in outcomes))
    before = batch_before(asked)
    known = {(each.golden_id, each.agent): each.result for each in outcomes_of(before)} if before else {}
    return {
        "project": project,
        "section": "goldens",
        "batch": asked,
        "result": overall(outcomes),
        "words": summary(outcomes),
        "over": over,
        "total": len(outcomes),
        "before": before,
        "left": sum(map(can_resume, asked.runs.all())),
        "agents": agents,
        "not_run": _not_run(project, outcomes),
        "rows": [(outcome, known.get((outcome.golden_id, outcome.agent))) for outcome in _by_golden(outcomes)],
        "again": _again(outcomes),
        "is_live": is_live,
        "queue": queue_of(project) if is_live else None,
        "may_change": has_role(request.user, project, "member"),
    }


def _not_run(project: Project, outcomes: list[Outcome]) -> list[Golden]:
    """Goldens of the project that the batch leaves out."""
    return list(project.goldens.exclude(golden_id__in={outcome.golden_id for outcome in outcomes}).order_by("name"))


def _by_golden(outcomes: list[Outcome]) -> list[Outcome]:
    """The goldens that failed first, each with all its agents, the worst first."""
    rows: dict[str, list[Outcome]] = {}
    for outcome in worst_first(outcomes):
        rows.setdefault(outcome.golden_id, []).append(outcome)
    return [outcome for row in rows.values() for outcome in row]


def _again(outcomes: list[Outcome]) -> list[tuple[str, list[str]]]:
    """What a button runs once more, and the goldens that it runs: those that failed, and all."""
    all_of_them = list(dict.fromkeys(outcome.golden_id for outcome in outcomes))
    failed = list(dict.fromkeys(outcome.golden_id for outcome in outcomes if outcome.result == "fail"))
    some = [(f"Run the {len(failed)} failed", failed)] if 0 < len(failed) < len(all_of_them) else []
    return [*some, ("Run again", all_of_them)]


@require_POST
@project_page("member")
def cancel(request: HttpRequest, project: Project, golden_batch_id: str) -> HttpResponse:
    cancel_batch(_found(project, golden_batch_id))
    return redirect("golden_batch", project.slug, golden_batch_id)


@require_POST
@project_page("member")
def resume(request: HttpRequest, project: Project, golden_batch_id: str) -> HttpResponse:
    try:
        resume_batch(_found(project, golden_batch_id), user=request.user)  # type: ignore[arg-type]  # signed in: project_page
    except ForkError as problem:
        messages.warning(request, problem.message)
    return redirect("golden_batch", project.slug, golden_batch_id)


_FILES: dict[str, Callable[[list[Outcome], str], str]] = {
    "md": lambda outcomes, site: as_markdown(outcomes, site=site),
    "xml": lambda outcomes, site: as_junit(outcomes).decode(),
}


@require_GET
@project_page()
def report(request: HttpRequest, project: Project, golden_batch_id: str, suffix: str) -> HttpResponse:
    """Markdown for a pull request, or JUnit XML."""
    if suffix not in _FILES:
        raise Http404
    site = request.build_absolute_uri("/").rstrip("/")
    text = _FILES[suffix](outcomes_of(_found(project, golden_batch_id)), site)
    return shown_file(text, "text/plain; charset=utf-8", f"{golden_batch_id}.{suffix}")


def _found(project: Project, golden_batch_id: str) -> GoldenBatch:
    found = batch_by_id(project, golden_batch_id)
    if found is None:
        raise Http404
    return found
