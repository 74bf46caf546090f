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
    """Delete those that no run has and that no other content and no replay needs; returns how many.

    What only they went on from is not needed any more then, so it goes too.
    """
    swept = 0
    while swept < _AT_ONCE and (keys := _unused()):
        RunContent.objects.filter(pk__in=keys).delete()
        swept += len(keys)
    return swept


def _unused() -> list[int]:
    unused = RunContent.objects.filter(run=None, followers=None, replays=None)
    old = unused.filter(released_at__lt=timezone.now() - KEPT_FOR).order_by("released_at", "pk")
    return list(old.values_list("pk", flat=True)[:_AT_ONCE])
