"""Pages for what went wrong. What was recorded is shown for an address in one's own project alone."""

from __future__ import annotations

import logging
import re
import secrets
import sys
from collections.abc import Callable

from django.contrib.auth.models import AnonymousUser
from django.db import InterfaceError, OperationalError
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.models import Project
from sessions_app.queries.access import RoleNeeded, admins_of, projects_of, role_in
from sessions_app.queries.find import arrivals, near_runs
from sessions_app.web.run_pages import place_of, session_of

logger = logging.getLogger(__name__)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """The same words whether a thing does not exist or belongs to others."""
    project = _project_of(request)
    if project and (found := _run_without_step(request, project)):
        return render(request, "errors/no_step.html", found | {"project": project}, status=404)
    kind, asked = _asked_for(request, project)
    facts = {"project": project, "kind": kind, "asked": asked, "mine": _mine(request)[:50]}
    return render(request, "errors/404.html", facts | (_offered(project, asked) if project else {}), status=404)


_KINDS = {
    "session_id": "session",
    "replay_id": "replay",
    "session_replay_id": "session replay",
    "golden_id": "golden",
    "golden_run_id": "golden run",
    "golden_batch_id": "golden batch",
    "trace_id": "trace",
}
"""By the part of the address that names it."""


def _asked_for(request: HttpRequest, project: Project | None) -> tuple[str, str]:
    """What kind of thing the address names, and its name; of an address that leads nowhere how it ends, which may be an
    id. Of a share link nothing is named: an unknown one is answered as one that has expired."""
    if request.resolver_match is None:
        return "", request.path.rstrip("/").rpartition("/")[2][:_LONGEST_NAME]
    named = request.resolver_match.kwargs
    if "project" in named and project is None:
        return "project", named["project"][:_LONGEST_NAME]
    if "project" in named and (run_id := request.GET.get("run")):
        return "run", run_id[:_LONGEST_NAME]
    key = next((key for key in _KINDS if key in named), None)
    return (_KINDS[key], str(named[key])[:_LONGEST_NAME]) if key else ("", "")


def _run_without_step(request: HttpRequest, project: Project) -> dict[str, object] | None:
    """For an address of a step that its run does not have."""
    named = request.resolver_match.kwargs if request.resolver_match else {}
    n = named.get("n") or request.GET.get("step")
    if n is None or "session_id" not in named:
        return None
    try:
        place = place_of(session_of(project, named["session_id"]), request.GET.get("run", ""))
    except Http404:
        return None
    last = place.run.step_count
    return {
        "run": place.run,
        "n": str(n)[:_LONGEST_NAME],
        "last_step": place.step_address(project, last),
        "its_session": place.session_address(project).rstrip("?&"),
    }


_LONGEST_NAME = 80
"""As far as one reads it."""


def _offered(project: Project, asked: str) -> dict[str, object]:
    """Ids that are almost the one that was asked for, and the newest runs."""
    here = Project.objects.filter(pk=project.pk)
    return {"near": near_runs(here, asked), "newest": arrivals(here, 3).newest}


def role_needed(request: HttpRequest, needed: RoleNeeded) -> HttpResponse:
    facts = {
        "project": needed.project,
        "needed": needed.role,
        "role": role_in(request.user, needed.project),
        "admins": admins_of(needed.project),
    }
    return render(request, "errors/403.html", facts, status=403)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "errors/403.html", {"project": _project_of(request)}, status=403)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "errors/400.html", status=400)


def gone(request: HttpRequest, missing: StoredBytesMissing) -> HttpResponse:
    """For pages that can show nothing without them."""
    return render(request, "errors/410.html", {"missing": missing.name}, status=410)


def explain_wrong_methods(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: the address of a form, opened as a page, says so; Django answers with nothing."""

    def respond(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if response.status_code == 405 and not response.content:
            response.content = render(request, "errors/405.html", {"project": _project_of(request)}).content
        return response

    return respond


def _project_of(request: HttpRequest) -> Project | None:
    """The one in the address, for its navigation, where the user may see it."""
    inside = re.match(r"/p/([\w-]+)/", request.path)
    return _mine(request).filter(slug=inside[1]).first() if inside else None


def _mine(request: HttpRequest) -> QuerySet[Project]:
    return projects_of(getattr(request, "user", AnonymousUser())).order_by("name")


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render(request, "errors/csrf.html", status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """A reference that stands in the log as well; the page needs neither the database nor a user."""
    if isinstance(sys.exc_info()[1], OperationalError | InterfaceError):
        return unavailable()
    reference = secrets.token_hex(4)
    logger.error("Reference %s: the page %s failed; see the traceback above or below.", reference, request.path)
    return HttpResponse(render_to_string("errors/500.html", {"reference": reference}), status=500)


def unavailable() -> HttpResponse:
    return HttpResponse(render_to_string("errors/503.html"), status=503, headers={"Retry-After": "2"})
