"""A short log, for people, of what arrived and what was refused: the page Send data shows it.

Nothing waits for it and nothing fails because of it. Words are redacted like recordings, and of a key that
nobody knows only the beginning is kept.
"""

from __future__ import annotations

import logging
import math
import time
from datetime import timedelta

from django.db import connection, transaction
from django.db.models import F
from django.utils import timezone

from sessions_app.core.clipping import clipped
from sessions_app.mapping.rows import clean
from sessions_app.models import IngestNote, Project
from sessions_app.services.keys import how_it_ended
from sessions_app.services.redaction import redactor_of

logger = logging.getLogger(__name__)

KEPT = 200
"""Refusals of one project, and as many that belong to none."""

_SAME_WITHIN = timedelta(minutes=1)
_DELIVERY_EVERY = timedelta(seconds=1)
_noted_at: dict[tuple[int | None, str], float] = {}
"""When this process noted a delivery of a project at a door: a busy sender costs no query."""
_LONGEST = 300
_KEY_MARK = "rpk_"
_SHOWN_OF_A_KEY = 4


def note(project: Project | None, *, door: str, status: int, words: str, count: int = 0) -> None:
    """Note a refusal in `words`, or, with empty words, that `count` spans, log records or runs were taken in.

    `door` names the way in: `runs`, `traces`, `logs`. `project` is None when no key told whose it is; the members
    of all projects see such a refusal. A refusal that comes again within a minute is counted up; of deliveries the
    newest is kept, to the second. To be called outside of transactions. Never raises, never waits.
    """
    if not words and not (count and _is_due(project, door)):
        return
    try:
        with transaction.atomic():
            _write(IngestNote(project=project, door=door[:32], status=status, words=_safe(project, words), count=count))
    except Exception as error:
        # Whoever sends has been served already; the message may quote what was sent.
        logger.warning("What happened at the door %s could not be noted: %s", door, type(error).__name__)


def _is_due(project: Project | None, door: str) -> bool:
    key, now = (project.pk if project else None, door), time.monotonic()
    if now < _noted_at.get(key, -math.inf) + _DELIVERY_EVERY.total_seconds():
        return False
    _noted_at[key] = now
    return True


def refused_key_words(authorization: str) -> str:
    """Why a request with this header `Authorization` has no project: `unknown key rpk_ab12…`, or
    `key rpk_ab12… expired on 2026-11-26 10:00 UTC`.

    The beginning that all keys share is followed by four characters, of anything else there are four in all.
    """
    scheme, _, key = authorization.strip().partition(" ")
    key = key.strip()
    if scheme.lower() != "bearer" or not key:
        return "no key: send the header Authorization: Bearer <key>"
    shown = key[: _SHOWN_OF_A_KEY + (len(_KEY_MARK) if key.startswith(_KEY_MARK) else 0)]
    if ended := how_it_ended(key):
        return f"key {shown}… {ended}"
    return f"unknown key {shown}…" if shown.isascii() and shown.isprintable() else "unknown key"


def _safe(project: Project | None, words: str) -> str:
    """One line that may be stored. Redacted before it is cut, for half a secret is not recognized."""
    line = " ".join(clean(words).split())
    if project is not None and line:
        line = redactor_of(project).redact_text(line)
    return clipped(line, _LONGEST)


def _write(said: IngestNote) -> None:
    if not _alone_with(said):
        return
    said.first_at = said.last_at = timezone.now()
    if said.words:
        _write_refusal(said)
    else:
        _write_delivery(said)


def _alone_with(said: IngestNote) -> bool:
    """Whether nobody else notes the same at this moment: a busy sender must not make others wait for its row."""
    with connection.cursor() as cursor:
        same = f"{said.project_id} {said.door} {said.status if said.words else ''} {said.words}"
        cursor.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 5))", [same])
        return bool(cursor.fetchone()[0])


def _write_refusal(said: IngestNote) -> None:
    same = IngestNote.objects.filter(
        project=said.project,
        door=said.door,
        status=said.status,
        words=said.words,
        last_at__gt=said.last_at - _SAME_WITHIN,
    )
    if not same.update(times=F("times") + 1, count=F("count") + said.count, last_at=said.last_at):
        said.save()
        _forget_the_oldest(said.project)


def _write_delivery(said: IngestNote) -> None:
    """At most one write a second and door, whatever the number of processes: a sign of life and no statistic."""
    earlier = IngestNote.objects.filter(project=said.project, door=said.door, words="").first()
    if earlier is None:
        said.save()
    elif earlier.last_at < said.last_at - _DELIVERY_EVERY:
        said.pk, said.first_at, said.times = earlier.pk, earlier.first_at, earlier.times + 1
        said.save(force_update=True)


def _forget_the_oldest(project: Project | None) -> None:
    refusals = IngestNote.objects.filter(project=project).exclude(words="")
    IngestNote.objects.filter(pk__in=refusals.order_by("-last_at", "-pk").values("pk")[KEPT:]).delete()
