"""A run as files for others: OTLP JSON for any tracing tool, a case file for another installation."""

from __future__ import annotations

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.otlp_export.request import export_run
from sessions_app.mapping.load import load_run
from sessions_app.models import Project, Run
from sessions_app.queries.access import SEES_RAW
from sessions_app.services.case_files import case_of
from sessions_app.web.access import project_page
from sessions_app.web.downloads import attachment
from sessions_app.web.run_pages import place_of, session_of


@require_GET
@project_page(SEES_RAW)
def otlp(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    """The run in the GenAI conventions of OpenTelemetry."""
    return _file(request, project, session_id, lambda run: export_run(load_run(run)), ".otlp.json")


@require_GET
@project_page(SEES_RAW)
def case_file(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    """The run, the run it came from and its replays as one sealed archive."""
    return _file(request, project, session_id, case_of, ".case.zip")


def _file(
    request: HttpRequest, project: Project, session_id: str, make: Callable[[Run], bytes], ending: str
) -> HttpResponse:
    run = place_of(session_of(project, session_id), request.GET.get("run", "")).run
    try:
        return attachment(make(run), f"{run.run_id[:100]}{ending}")
    except RecordTooLarge as error:
        return HttpResponse(error.message, status=413, content_type="text/plain; charset=utf-8")
