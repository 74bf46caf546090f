"""The API's addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.gzip import gzip_page

from sessions_app.api import (
    about,
    checkpoints,
    datasets,
    docs,
    exports,
    failure_groups,
    forks,
    goldens,
    live_models,
    notes,
    observed,
    projects,
    reads,
    redaction,
    reports,
    runs,
    session_replays,
    tags,
)
from sessions_app.api.auth import sent_key
from sessions_app.api.errors import add_handlers, refusal
from sessions_app.api.metrics import get_metrics
from sessions_app.api.openapi import ABOUT, DescribedApi
from sessions_app.api.parameters import refuse_unknown_parameters
from sessions_app.api.rendering import QuickRenderer
from sessions_app.core.version import API_VERSION
from sessions_app.services.keys import find_key

api = DescribedApi(
    title="Agent replay",
    version=API_VERSION,
    description=ABOUT,
    docs_url=None,
    urls_namespace="api-1",
    renderer=QuickRenderer(),
)
api.add_decorator(refuse_unknown_parameters)
api.add_router("", about.router)
api.add_router("", projects.router)
api.add_router("", redaction.router)
api.add_router("", live_models.router)
api.add_router("", exports.router)  # first, for the address of a run takes all that follows it
api.add_router("", forks.router)
api.add_router("", goldens.router)
api.add_router("", failure_groups.router)
api.add_router("", datasets.router)
api.add_router("", checkpoints.router)
api.add_router("", observed.router)
api.add_router("", notes.router)
api.add_router("", reports.router)  # before that of a run, for the same reason
api.add_router("", runs.router)
api.add_router("", tags.router)
api.add_router("", session_replays.router)  # before that of a session, likewise
api.add_router("", reads.router)
add_handlers(api)


def may_read_docs(request: HttpRequest) -> bool:
    """Whoever is signed in or holds a key; everybody where the settings say so."""
    return settings.API_DOCS_PUBLIC or request.user.is_authenticated or find_key(sent_key(request)) is not None


def api_docs(request: HttpRequest, group: str | None = None) -> HttpResponse:
    if not may_read_docs(request):
        return redirect_to_login(request.get_full_path())
    return docs.group_page(request, api, group) if group else docs.index_page(request, api)


def not_for_strangers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The description that clients are generated from."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if may_read_docs(request):
            return view(request, *args, **kwargs)
        words = "Send a valid key: Authorization: Bearer <key>."
        return refusal(401, "unauthorized", words, **{"WWW-Authenticate": "Bearer"})

    return answer


@csrf_exempt  # cookies mean nothing here, and whoever asks wants an answer in JSON
def nothing_here(request: HttpRequest) -> HttpResponse:
    return refusal(404, "not_found", "There is nothing at this address.")


def in_our_words(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Ninja answers a wrong method with a bare sentence."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        methods = response["Allow"].split(", ")
        allowed = ", ".join(sorted(methods + (["HEAD"] if "GET" in methods else [])))
        return refusal(405, "method_not_allowed", f"Allowed here: {allowed}.", Allow=allowed)

    return answer


def with_head(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """HEAD is answered as GET is; the server leaves the body out."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        if request.method != "HEAD":
            return view(request, *args, **kwargs)
        request.method = "GET"
        try:
            return view(request, *args, **kwargs)
        finally:
            request.method = "HEAD"

    return answer


routes, api_name, api_namespace = api.urls
for route in routes:
    if isinstance(route, URLPattern):
        # Packed for those who ask for it, unlike pages: BREACH needs a browser that sends what an attacker's page tells
        # it, and these requests are opened by a key, which no browser sends by itself. What is left is somebody who
        # sends guesses as recordings and measures the answers to another's script: Django's random padding hides these.
        route.callback = in_our_words(with_head(gzip_page(route.callback)))
        if route.name == "openapi-json":
            route.callback = not_for_strangers(route.callback)

urlpatterns = [
    path("api/v1/docs", api_docs, name="api-docs"),
    path("api/v1/docs/<slug:group>", api_docs, name="api-docs-group"),
    path("api/v1/", nothing_here),
    path("api/v1/", (routes, api_name, api_namespace)),
    re_path(r"^api/v1/", nothing_here),
    path("metrics", get_metrics, name="metrics"),
]
