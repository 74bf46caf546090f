"""`/metrics` in the text format of Prometheus, for the project of the key that asks.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.http import HttpRequest, HttpResponse
from ninja import Router

from sessions_app.api.auth import FullKeyHolder, project_of
from sessions_app.queries.counts import Counted, counted

router = Router(auth=FullKeyHolder(), tags=["metrics"])


@router.get("/metrics", include_in_schema=False)
def get_metrics(request: HttpRequest) -> HttpResponse:
    text = "".join(_lines(counted(project_of(request))))
    return HttpResponse(text, content_type="text/plain; version=0.0.4; charset=utf-8")


def _lines(metrics: Iterable[Counted]) -> Iterator[str]:
    for metric in metrics:
        yield f"# HELP {metric.name} {metric.about}\n# TYPE {metric.name} gauge\n"
        for value, count in metric.counts:
            labels = f'{{{metric.label}="{value}"}}' if metric.label else ""
            yield f"{metric.name}{labels} {count}\n"
