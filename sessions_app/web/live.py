"""Parts of pages that poll: answered with 304 while they have not changed."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers

from sessions_app.models import Project
from sessions_app.web.frame import open_replays


def live_part(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponseBase:
    """The part with an ETag of its content; it must hold nothing that changes by itself, such as tokens."""
    content = render_to_string(template, context, request=request)
    etag = f'"{sha256(content.encode()).hexdigest()[:32]}"'
    response: HttpResponseBase = HttpResponse(content)
    if request.headers.get("If-None-Match") == etag:
        response = HttpResponseNotModified()
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    return response


def live_part_of(request: HttpRequest, template: str, context: dict[str, Any], seen: object) -> HttpResponseBase:
    """For a part that holds forms: its ETag is made of the facts, for the text has a token that is new each time."""
    etag = f'"{sha256(repr(seen).encode()).hexdigest()[:32]}"'
    is_known = request.headers.get("If-None-Match") == etag
    response = HttpResponseNotModified() if is_known else render(request, template, context)
    if not is_known:
        response.write(_open_replays(context["project"]))
    response["ETag"] = etag
    response["Cache-Control"] = "private, no-cache"
    patch_vary_headers(response, ("HX-Request", "Cookie"))
    return response


def _open_replays(project: Project) -> str:
    """The number in the bar, which ends when the part does."""
    counted = {"project": project, "open_replays": open_replays(project), "is_brought": True}
    return render_to_string("_open_replays.html", counted)
