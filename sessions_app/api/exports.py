"""A run as files for others: OTLP JSON for any tracing tool, a case file for another installation."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions_app.api.auth import FullKeyHolder
from sessions_app.api.openapi import JSON_TYPE, ZIP_TYPES, answers_file
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import ErrorAnswer
from sessions_app.core.otlp_export.request import export_run
from sessions_app.mapping.load import load_run
from sessions_app.services.case_files import case_of

router = Router(auth=FullKeyHolder(), tags=["exports"])


@router.get("/runs/{path:run_id}/otlp", response={413: ErrorAnswer}, openapi_extra=answers_file(JSON_TYPE))
def get_otlp(request: HttpRequest, run_id: str) -> HttpResponse:
    """Export the run as one OTLP JSON request in the GenAI conventions. Any collector takes it."""
    return HttpResponse(export_run(load_run(find_run(request, run_id))), content_type="application/json")


@router.get("/runs/{path:run_id}/case-file", response={413: ErrorAnswer}, openapi_extra=answers_file(*ZIP_TYPES))
def get_case_file(request: HttpRequest, run_id: str) -> HttpResponse:
    """Export the run as a case file. The sealed zip has the run, the run it came from and its replays; another
    installation can import it."""
    response = HttpResponse(case_of(find_run(request, run_id)), content_type="application/zip")
    response.headers["Content-Disposition"] = 'attachment; filename="case.zip"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
