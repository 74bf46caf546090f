"""The API's addresses."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path, re_path
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI

from sessions_app.api import checkpoints, docs, exports, forks, observed, reads, runs, session_replays
from sessions_app.api.errors import add_handlers
from sessions_app.api.metrics import get_metrics
from sessions_app.api.rendering import QuickRenderer

api = NinjaAPI(title="Agent replay", version="1", docs_url=None, urls_namespace="api-1", renderer=QuickRenderer())
api.add_router("", exports.router)  # first, for the address of a run takes all that follows it
api.add_router("", forks.router)
api.add_router("", checkpoints.router)
api.add_router("", observed.router)
api.add_router("", runs.router)
api.add_router("", session_replays.router)  # before that of a session, for the same reason
api.add_router("", reads.router)
add_handlers(api)


def api_docs(request: HttpRequest) -> HttpResponse:
    return docs.docs_page(request, api)


@csrf_exempt  # cookies mean nothing here, and whoever asks wants an answer in JSON
def nothing_here(request: HttpRequest) -> HttpResponse:
    return refusal(404, "not_found", "There is nothing at this address.")


def refusal(status: int, code: str, message: str) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message, "field": None}}, status=status)


def in_our_words(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Ninja answers a wrong method with a bare sentence."""

    @wraps(view)
    def answer(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if response.status_code != 405:
            return response
        refused = refusal(405, "method_not_allowed", f"Allowed here: {response['Allow']}.")
        refused["Allow"] = response["Allow"]
        return refused

    return answer


routes, api_name, api_namespace = api.urls
for route in routes:
    if isinstance(route, URLPattern):
        route.callback = in_our_words(route.callback)

urlpatterns = [
    path("api/v1/docs", api_docs, name="api-docs"),
    path("api/v1/", nothing_here),
    path("api/v1/", (routes, api_name, api_namespace)),
    re_path(r"^api/v1/", nothing_here),
    path("metrics", get_metrics, name="metrics"),
]
