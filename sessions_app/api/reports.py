"""Reproduction reports: of a run with all its replays, and of one replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import reverse
from ninja import Router

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.openapi import REPORT_TYPES, answers_file
from sessions_app.api.reads import find_replay
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import ReportFormat
from sessions_app.core.payload import compact_json
from sessions_app.core.reports.run_report import ReproductionReport, as_json, as_markdown, as_text
from sessions_app.models import Replay, Run
from sessions_app.queries.goldens import golden_of
from sessions_app.services.golden_runs import report_of_replay
from sessions_app.services.reports import report_of_run

router = Router(auth=FullKeyHolder())


@router.get("/runs/{path:run_id}/report", openapi_extra=answers_file(*REPORT_TYPES), tags=["runs"])
def get_report(request: HttpRequest, run_id: str, format: ReportFormat = "json") -> HttpResponse:
    """Get the reproduction report of a run. As `json`, `md`, `txt` or `html`."""
    run = find_run(request, run_id)
    return _answer(request, report_of_run(run), {"The recorded run": _run_page(run)}, format)


@router.get("/replays/{replay_id}/report", openapi_extra=answers_file(*REPORT_TYPES), tags=["replays"])
def get_replay_report(request: HttpRequest, replay_id: str, format: ReportFormat = "json") -> HttpResponse:
    """Get the report of one replay or fork. As `json`, `md`, `txt` or `html`."""
    replay = find_replay(request, replay_id)
    pages = _golden_page(replay) | {"This report": _replay_page(replay), "The recorded run": _run_page(replay.run)}
    return _answer(request, report_of_replay(replay), pages, format)


def _run_page(run: Run) -> str:
    page = reverse("session", args=[run.project.slug, run.session.session_id])
    return f"{page}?{urlencode({'run': run.run_id})}"


def _golden_page(replay: Replay) -> dict[str, str]:
    golden = golden_of(replay)
    return {"The golden": reverse("golden", args=[replay.project.slug, golden.golden_id])} if golden else {}


def _replay_page(replay: Replay) -> str:
    return reverse("replay", args=[replay.project.slug, replay.replay_id])


def _answer(
    request: HttpRequest, report: ReproductionReport, pages: dict[str, str], form: ReportFormat
) -> HttpResponse:
    render, content_type = _FORMATS[form]
    links = tuple((name, request.build_absolute_uri(address)) for name, address in pages.items())
    return HttpResponse(render(replace(report, links=links)), content_type=content_type)


def report_page(about: str, verdict: str | None, text: str) -> str:
    """A report as a page of its own; `about` is the id of what it is about."""
    return render_to_string("api/report.html", {"about": about, "verdict": verdict, "text": text})


def _as_page(report: ReproductionReport) -> str:
    return report_page(report.run_id, report.headline, as_text(report))


_FORMATS: dict[ReportFormat, tuple[Callable[[ReproductionReport], bytes | str], str]] = {
    "json": (lambda report: compact_json(as_json(report)), "application/json"),
    "html": (_as_page, "text/html; charset=utf-8"),
    "md": (as_markdown, "text/markdown; charset=utf-8"),
    "txt": (as_text, "text/plain; charset=utf-8"),
}
