"""Trace and span ids as tracing tools write them, and where their spans are shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import islice

from django.db.models import Q, QuerySet

from sessions_app.core.step_summary import StepSummary
from sessions_app.mapping.content_keys import told_by
from sessions_app.mapping.contents_by_key import contents_by_key
from sessions_app.models import Project, Run, Trace

MOST = 20
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}", re.ASCII | re.IGNORECASE)
"""Source: W3C Trace Context."""
_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}", re.ASCII)
_SPAN_LENGTH, _TRACE_LENGTH = 16, 32
_RUN = ("run_id", "status", "received_at", "input_preview", "project__slug", "project__name", "session__session_id")


def telemetry_ids(candidates: Iterable[str]) -> list[str]:
    """The trace and span ids among them, in lower case and without dashes, as they are stored."""
    found: list[str] = []
    for word in candidates:
        if header := _TRACEPARENT.search(word):
            found += [header[1].lower(), header[2].lower()]
        plain = word.replace("-", "").lower()
        found += [plain] if _ID.fullmatch(plain) else []
    return list(dict.fromkeys(found))


def steps_of_spans(projects: QuerySet[Project], ids: Iterable[str]) -> list[tuple[Run, StepSummary]]:
    """Steps with their runs, newest first; by the index of the spans' ids."""
    wanted = {bytes.fromhex(found) for found in ids if len(found) == _SPAN_LENGTH}
    if not wanted:
        return []
    contents = contents_by_key(projects.values_list("pk", flat=True), map(told_by, wanted))
    runs = Run.objects.filter(content__in=contents)
    of_contents = ("content__outline", "content__base", "content__base_steps")
    shown = runs.select_related("project", "session", "content").only(*_RUN, *of_contents).order_by("-pk")
    steps = (
        (run, step) for run in shown[:MOST] for step in run.content.own_steps if wanted.intersection(step.span_ids)
    )
    return list(islice(steps, MOST))


def runs_of_spans(projects: QuerySet[Project], ids: Iterable[str]) -> list[Run]:
    """Runs whose own span has one of these ids."""
    wanted = [found for found in ids if len(found) == _SPAN_LENGTH]
    if not wanted:
        return []
    runs = Run.objects.filter(span_id__in=wanted, project__in=projects)
    return list(runs.select_related("project", "session").only("span_id", *_RUN).order_by("-pk")[:MOST])


def in_traces(trace_ids: Iterable[str]) -> Q:
    """Runs that hold spans of one of these traces."""
    traces = Trace.objects.filter(trace_id__in=trace_ids)
    return Q(trace__in=traces) | Q(trace__in=traces.exclude(joined=None).values("joined"))


def runs_of_traces(projects: QuerySet[Project], ids: Iterable[str]) -> list[Run]:
    """Runs that were made of one of these traces and have another id than it."""
    wanted = [found for found in ids if len(found) == _TRACE_LENGTH]
    if not wanted:
        return []
    runs = Run.objects.filter(in_traces(wanted), project__in=projects).exclude(run_id__in=wanted).distinct()
    return list(runs.select_related("project", "session").only(*_RUN).order_by("-pk")[:MOST])


def traces_without_run(projects: QuerySet[Project], condition: Callable[[str], Q]) -> list[Trace]:
    """Of which no run was made, or not yet: their spans have a page of their own."""
    traces = Trace.objects.filter(condition("trace_id"), run=None, joined=None, project__in=projects)
    return list(traces.select_related("project").order_by("-pk")[:MOST])
