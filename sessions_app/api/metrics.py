"""`/metrics` in the text format of Prometheus, for the project of the key that asks.

A view of its own and no route of the API: those who collect metrics expect this address. Everything is counted in the
database when it is asked for, so every web process gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sessions_app.api.auth import sent_key
from sessions_app.models import Project
from sessions_app.models.projects import KeyScope
from sessions_app.queries.counts import SECONDS, Counted, Lasted, counted, lasted
from sessions_app.services.keys import find_key


@require_safe
def get_metrics(request: HttpRequest) -> HttpResponse:
    key = find_key(sent_key(request))
    if key is None:
        return HttpResponse(status=401, headers={"WWW-Authenticate": "Bearer"})
    if key.scope == KeyScope.INGEST:
        return HttpResponse(status=403)
    registry = CollectorRegistry()
    registry.register(_OfProject(key.project))
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_PLAIN_0_0_4)


class _OfProject(Collector):
    def __init__(self, project: Project) -> None:
        self._project = project

    def describe(self) -> Iterator[Metric]:
        """Nothing, or the registry would count everything to learn the names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield from map(_gauge, counted(self._project))
        yield from map(_histogram, lasted(self._project))


def _gauge(metric: Counted) -> Metric:
    family = GaugeMetricFamily(metric.name, metric.about, labels=[metric.label] if metric.label else [])
    for value, count in metric.counts:
        family.add_metric([value] if metric.label else [], count)
    return family


def _histogram(metric: Lasted) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.about)
    ends = [str(float(each)) for each in SECONDS]
    family.add_metric([], [*zip(ends, metric.up_to, strict=True), ("+Inf", metric.count)], metric.seconds)
    return family
