"""The API's addresses."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import path
from ninja import NinjaAPI

from sessions_app.api import docs, reads, runs
from sessions_app.api.errors import add_handlers

api = NinjaAPI(title="Agent replay", version="1", docs_url=None, urls_namespace="api-1")
api.add_router("", runs.router)
api.add_router("", reads.router)
add_handlers(api)


def api_docs(request: HttpRequest) -> HttpResponse:
    return docs.docs_page(request, api)


urlpatterns = [
    path("api/v1/docs", api_docs, name="api-docs"),
    path("api/v1/", api.urls),
]
