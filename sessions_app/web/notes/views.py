"""Writing a note on a run or one of its steps, and deleting it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from sessions_app.core.errors import RecordError
from sessions_app.models import Project
from sessions_app.queries.access import RoleNeeded
from sessions_app.queries.notes import notes_in
from sessions_app.services.notes import write_note
from sessions_app.web.access import project_page
from sessions_app.web.errors.views import role_needed
from sessions_app.web.notes.lines import may_delete
from sessions_app.web.run_pages import RunPlace, place_of, session_of, whole_number


@require_POST
@project_page("member")
def write(request: HttpRequest, project: Project, session_id: str) -> HttpResponse:
    assert request.user.is_authenticated
    place = place_of(session_of(project, session_id), request.POST.get("run", ""))
    step = whole_number(request.POST.get("step"), 0) or None
    text = request.POST.get("text", "")
    try:
        note = write_note(run=place.run, text=text, step=step, author=request.user)
    except RecordError as error:
        facts = _facts(project, place, step) | {"error": error.message, "text": text}
        return render(request, "notes/note.html", facts, status=422)
    return redirect(_back(project, place, step) + f"#note-{note.pk}")


def _facts(project: Project, place: RunPlace, step: int | None) -> dict[str, Any]:
    return {
        "project": project,
        "section": "sessions",
        "run": place.run,
        "note_step": step,
        "back": _back(project, place, step),
    }


def _back(project: Project, place: RunPlace, step: int | None) -> str:
    """To the page where the step is shown beside the others, or to that of the session."""
    address = place.session_address(project)
    return f"{address}step={step}" if step else address.rstrip("?&")


@require_POST
@project_page("member")
def delete(request: HttpRequest, project: Project, note: int) -> HttpResponse:
    found = notes_in(project).filter(pk=note).select_related("run__session").first()
    if found is None:
        raise Http404
    if not may_delete(found, request.user, project):
        return role_needed(request, RoleNeeded("admin", project))
    place = place_of(found.run.session, found.run.run_id)
    found.delete()
    messages.info(request, "The note is deleted.")
    return redirect(_back(project, place, found.step))
