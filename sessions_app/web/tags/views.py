"""Putting tags on a session, and taking them off."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from sessions_app.core.errors import RecordError
from sessions_app.models import Project
from sessions_app.queries.tags import tags_of
from sessions_app.services.tags import change_tags, read_tags
from sessions_app.web.access import project_page
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.run_pages import session_of


@require_POST
@project_page("member")
def tag(request: HtmxHttpRequest, project: Project, session_id: str) -> HttpResponse:
    """The form adds what is typed, or removes the tag whose button was pressed."""
    session, error = session_of(project, session_id), ""
    try:
        add, remove = read_tags(request.POST.getlist("add")), request.POST.getlist("untag")
        session = change_tags([session], add=add, remove=remove)[0]
    except RecordError as found:
        error = found.message
    if request.htmx:
        facts = {"project": project, "session": session, "may_change": True, "tag_error": error, "is_answer": True}
        return render(request, "tags/_tags.html", facts | {"known_tags": tags_of(project)})
    if error:
        messages.warning(request, error)
    return redirect(_back(request, project, session_id))


def _back(request: HttpRequest, project: Project, session_id: str) -> str:
    run = request.POST.get("run", "")
    query = f"?{urlencode({'run': run})}" if run else ""
    return f"{reverse('session', args=[project.slug, session_id])}{query}#tags"
