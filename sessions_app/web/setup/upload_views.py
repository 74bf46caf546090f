"""A file with recordings, sent from the page: what was stored of it, or why nothing was."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_POST

from sessions_app.core.errors import RecordError, RecordTooLarge, RunConflict
from sessions_app.models import Project, Run
from sessions_app.services.body_streams import drain, stream_of
from sessions_app.services.exchanges import attach_exchanges
from sessions_app.services.imports import take_in
from sessions_app.services.recording_files import REFUSALS, refusal_words
from sessions_app.services.run_store import Ingested
from sessions_app.web.access import project_page
from sessions_app.web.run_pages import run_address

View = Callable[[HttpRequest, Project], HttpResponse]

_FORM_BYTES = 64 * 1024
"""What a form needs beside the file."""


class UploadForm(forms.Form):
    file = forms.FileField(
        allow_empty_file=True,
        error_messages={"required": "Choose a file first.", "invalid": "The form contains no file."},
    )
    run_id = forms.CharField(required=False)
    """The run that recorded HTTP belongs to."""


def within_limit(view: View) -> View:
    """Looks at the length before anything reads the form, which would write a large file to the disk."""

    @wraps(view)
    def inner(request: HttpRequest, project: Project) -> HttpResponse:
        length = request.headers.get("Content-Length", "")
        if length.isdecimal() and int(length) <= settings.REPLAY_MAX_INFLATED_BYTES + _FORM_BYTES:
            return view(request, project)
        drain(stream_of(request, has_length=True))  # a form's is always told
        words = f"The file is larger than {settings.REPLAY_MAX_INFLATED_BYTES} bytes."
        return _answer(request, project, {"refusal": words}, 413)

    return inner


@csrf_exempt  # checked below, when the length is known
@require_POST
@project_page("member")
@within_limit
@csrf_protect
def upload(request: HttpRequest, project: Project) -> HttpResponse:
    form = UploadForm(request.POST, request.FILES)
    if not form.is_valid():
        return _answer(request, project, {"refusal": form.errors["file"].as_data()[0].messages[0]}, 400)
    file = form.cleaned_data["file"]
    try:
        if form.cleaned_data["run_id"]:
            return _attached(request, project, form.cleaned_data["run_id"], file)
        stored = take_in(project, file.read(), file.content_type or "").items
    except REFUSALS as error:
        return _answer(request, project, {"name": file.name, "refusal": refusal_words(error)}, _status(error))
    return _answer(request, project, {"name": file.name, "stored": [_line(project, each) for each in stored]}, 200)


def _attached(request: HttpRequest, project: Project, run_id: str, file: Any) -> HttpResponse:
    run = Run.objects.filter(project=project, run_id=run_id).select_related("session", "project").first()
    if run is None:
        raise RecordError(f"There is no run {run_id} in this project.")
    attached = attach_exchanges(run, file.read())
    placed = [step for step in attached.steps if step is not None]
    facts = {"exchanges": len(attached.steps), "placed": sorted(placed), "run": run}
    return _answer(request, project, {"name": file.name, "attached": facts, "address": run_address(run, project)}, 200)


def _line(project: Project, ingested: Ingested) -> dict[str, Any]:
    return {"run": ingested.run, "is_new": ingested.created, "address": run_address(ingested.run, project)}


def _status(error: Exception) -> int:
    if isinstance(error, RecordTooLarge):
        return 413
    return 409 if isinstance(error, RunConflict) else 400


def _answer(request: HttpRequest, project: Project, facts: dict[str, Any], status: int) -> HttpResponse:
    context = {
        "project": project,
        "section": "setup",
        "upload_limit": settings.REPLAY_MAX_INFLATED_BYTES,
        **facts,
    }
    return render(request, "setup/uploaded.html", context, status=status)
