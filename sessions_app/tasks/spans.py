"""The task that makes runs of spans which nobody waited for."""

from __future__ import annotations

from celery import shared_task

from sessions_app.services.trace_runs import make_waiting_runs
from sessions_app.services.wakeups import SPANS_TASK


@shared_task(name=SPANS_TASK)
def make_runs() -> None:
    """Running it twice does no harm: each trace is locked while its run is made."""
    while make_waiting_runs():
        pass  # more may have come meanwhile
