"""Goldens and failing runs as JSON lines, for tools that run evals."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.api.openapi import answers_file
from sessions_app.api.schemas import ErrorAnswer, PageSize
from sessions_app.core.goldens.dataset import DatasetFormat
from sessions_app.core.search.query import parse_query
from sessions_app.queries.goldens import goldens_of
from sessions_app.queries.run_lists import Page, page_of, runs_page
from sessions_app.services.datasets import goldens_as_jsonl, runs_as_jsonl

router = Router(auth=FullKeyHolder(), tags=["datasets"])
FAILING = "status:error"
_LINES = "text/plain"


@router.get("/datasets/goldens", response={410: ErrorAnswer}, openapi_extra=answers_file(_LINES))
def get_golden_dataset(
    request: HttpRequest, format: DatasetFormat = "rows", cursor: str | None = None, limit: PageSize = 500
) -> HttpResponse:
    """Export goldens as JSON Lines, newest first. `rows` has all that is known; `openai-evals` and `inspect` are
    samples for these tools. Where there are more, the header `X-Next-Cursor` is set."""
    goldens, next_cursor = page_of(goldens_of(project_of(request)), cursor, limit)
    return _lines(goldens_as_jsonl(goldens, format), next_cursor)


@router.get("/datasets/runs", response={410: ErrorAnswer}, openapi_extra=answers_file(_LINES))
def get_run_dataset(
    request: HttpRequest,
    q: str = FAILING,
    format: DatasetFormat = "rows",
    cursor: str | None = None,
    limit: PageSize = 100,
) -> HttpResponse:
    """Export runs as JSON Lines. `q` selects them, as on the Sessions page; failed runs by default."""
    runs, next_cursor = runs_page(project_of(request), parse_query(q), Page(cursor=cursor, limit=limit))
    return _lines(runs_as_jsonl(runs, format), next_cursor)


def _lines(content: bytes, next_cursor: str | None) -> HttpResponse:
    response = HttpResponse(content, content_type=f"{_LINES}; charset=utf-8")
    response.headers["X-Content-Type-Options"] = "nosniff"
    if next_cursor:
        response.headers["X-Next-Cursor"] = next_cursor
    return response
