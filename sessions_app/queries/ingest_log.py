"""What the page Send data shows of the doors: refusals, and when something arrived last."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import Q
from django.utils import timezone

from sessions_app.models import IngestNote, Project

RECENT = timedelta(days=1)
SHOWN = 8


def recent(project: Project, *, limit: int = SHOWN, now: datetime | None = None) -> list[IngestNote]:
    """The refusals of the last day, newest first.

    Those without a known key are shown in every project: they hold the beginning of the key and nothing else,
    and whoever mistyped a key has no other place to learn of it.
    """
    since = (now or timezone.now()) - RECENT
    theirs = IngestNote.objects.filter(Q(project=project) | Q(project=None), last_at__gte=since)
    return list(theirs.exclude(words="").order_by("-last_at", "-pk")[:limit])


def last_received(project: Project) -> IngestNote | None:
    """The newest delivery of spans or log records; runs that were sent whole are to be read from their rows."""
    return IngestNote.objects.filter(project=project, words="").order_by("-last_at").first()
