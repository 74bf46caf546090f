"""`/metrics` in the text format of Prometheus, for the project of the key that asks.

A view of its own and no route of the API: those who collect metrics expect this address.
Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from sessions_app.models.projects import KeyScope
from sessions_app.queries.counts import Counted, counted
from sessions_app.services.keys import find_key


@require_safe
def get_metrics(request: HttpRequest) -> HttpResponse:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    key = find_key(token.strip()) if scheme.lower() == "bearer" else None
    if key is None:
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    if key.scope == KeyScope.INGEST:
        return HttpResponse(status=403)
    text = "".join(_lines(counted(key.project)))
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


def _lines(metrics: Iterable[Counted]) -> Iterator[str]:
    for metric in metrics:
        yield f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} gauge\n"
        for value, count in metric.counts:
            labels = f'{{{metric.label}="{value}"}}' if metric.label else ""
            yield f"{metric.name}{labels} {count}\n"
