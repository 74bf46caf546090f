"""What a share link shows: one run, read-only, to anyone who holds the token and to no search engine."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from sessions_app.core.errors import StoredBytesMissing
from sessions_app.models import Run, ShareLink
from sessions_app.queries.payloads import read_payload
from sessions_app.queries.sharing import run_holds
from sessions_app.services.sharing import find_link, note_view
from sessions_app.web.errors.views import gone, not_found
from sessions_app.web.htmx import HtmxHttpRequest
from sessions_app.web.link_preview import preview_of_shared
from sessions_app.web.render.payloads import guess, show
from sessions_app.web.run_pages import RunPlace
from sessions_app.web.sessions.messages import messages_context
from sessions_app.web.sessions.step_list import steps_context
from sessions_app.web.sessions.tried import attempts_of
from sessions_app.web.sessions.views import above_steps
from sessions_app.web.steps.views import step_context
from sessions_app.web.timeline.view import timeline_context

HEADERS = {
    "X-Robots-Tag": "noindex, nofollow",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "private, no-store",
}
"""The address is the secret: it must not travel on, and a revoked page must not come back from a cache."""
VIEWS = {"steps": steps_context, "timeline": timeline_context, "messages": messages_context}
_DIGEST = re.compile(r"[0-9a-f]{64}")

View = Callable[..., HttpResponse]


def shared_page(view: View) -> View:
    """`view(request, link, place, …)`; no link, an expired or a revoked one, and no such part all look the same."""

    @require_GET
    @wraps(view)
    def inner(request: HttpRequest, token: str, **kwargs: Any) -> HttpResponse:
        link = find_link(token, now=timezone.now())
        try:
            response = view(request, link, _place(request, link, token), **kwargs) if link else not_found(request)
        except Http404:
            response = not_found(request)
        except StoredBytesMissing as missing:
            response = gone(request, missing)
        for name, value in HEADERS.items():
            response.headers[name] = value
        return response

    return inner


def _place(request: HttpRequest, link: ShareLink, token: str) -> RunPlace:
    """The run of the link, whatever the address asks for; its siblings are not even read."""
    run = Run.objects.select_related("session", "cold_case", "trace", "produced_by").get(pk=link.run_id)
    if request.GET.get("run", run.run_id) != run.run_id:
        raise Http404
    return RunPlace(run=run, number=1, siblings=(run,), token=token)


@shared_page
def session(request: HttpRequest, link: ShareLink, place: RunPlace) -> HttpResponse:
    asked = request.GET.get("view", "steps")
    view = asked if asked in VIEWS else "steps"
    context = above_steps(request, link.project, place, view) | VIEWS[view](request, link.project, place)
    note_view(link)
    replays = {"replays": attempts_of(place.run)}
    return render(request, "shared/session.html", context | replays | _frame(link, place))


@shared_page
def step(request: HtmxHttpRequest, link: ShareLink, place: RunPlace, n: int) -> HttpResponse:
    is_panel = bool(request.htmx)
    context = step_context(link.project, place, n, for_panel=is_panel) | _frame(link, place)
    return render(request, "steps/_panel.html" if is_panel else "shared/step.html", context)


@shared_page
def payload(request: HttpRequest, link: ShareLink, place: RunPlace, digest: str) -> HttpResponse:
    """The first part, and only of what belongs to the run."""
    if not _DIGEST.fullmatch(digest) or not run_holds(place.run, digest):
        raise Http404
    try:
        found = guess(read_payload(link.project_id, digest))
    except StoredBytesMissing:
        raise Http404 from None
    return render(
        request, "shared/payload.html", {"payload": found, "shown": show(found), "run": place.run} | _frame(link, place)
    )


def _frame(link: ShareLink, place: RunPlace) -> dict[str, Any]:
    return {
        "project": link.project,
        "preview": preview_of_shared(place.run, link.expires_at),
        "share": link,
        "share_token": place.token,
        "shared_by": link.created_by.get_username() if link.created_by else "a former member",
        "may_change": False,
        "q_shared": place.session_address(link.project),
    }
