"""Contents that their runs have released: each goes when nothing needs it any more."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from sessions_app.models import RunContent

KEPT_FOR = timedelta(minutes=1)
"""Whoever has found a content through its run may still be reading it, or giving an order for it."""
_AT_ONCE = 200


def release(contents: QuerySet[RunContent]) -> None:
    """Before their runs are deleted, or after these got others."""
    contents.update(released_at=timezone.now())


def sweep_contents() -> int:
    """Delete those that no run has and that no fork and no replay needs; returns how many."""
    unused = RunContent.objects.filter(run=None, forks=None, replays=None)
    old = unused.filter(released_at__lt=timezone.now() - KEPT_FOR).order_by("released_at", "pk")
    keys = list(old.values_list("pk", flat=True)[:_AT_ONCE])
    RunContent.objects.filter(pk__in=keys).delete()
    return len(keys)
