"""API keys: made, found, revoked. The key itself is never stored."""

from __future__ import annotations

from datetime import datetime, timedelta
from time import monotonic

from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q
from django.utils import timezone

from sessions_app.core.errors import ReplayProductError
from sessions_app.mapping.binary_rows import binary_cursor
from sessions_app.models import ApiKey, Project
from sessions_app.services.tokens import digest_of, new_token

_SHOWN = 12
_USE_IS_NOTED_EVERY = timedelta(minutes=1)


def create_key(
    *, project: Project, name: str, scope: str, user: User | None = None, expires_at: datetime | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, `rpk_` and 43 random characters; the text cannot be shown again."""
    text = f"rpk_{new_token()}"
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=text[:_SHOWN],
        digest=digest_of(text),
        scope=scope,
        created_by=user,
        expires_at=expires_at,
    )
    return key, text


_KEY = [field.attname for field in ApiKey._meta.concrete_fields]
_PROJECT = [field.attname for field in Project._meta.concrete_fields]
_FIND = """
SELECT {} FROM sessions_app_apikey AS key JOIN sessions_app_project AS project ON project.id = key.project_id
WHERE key.digest = %(digest)b AND key.revoked_at IS NULL AND (key.expires_at IS NULL OR key.expires_at > now())
""".format(", ".join([f"key.{name}" for name in _KEY] + [f"project.{name}" for name in _PROJECT]))
"""Every request of a script asks this: putting the same together by the ORM takes longer than the answer."""


def find_key(text: str) -> ApiKey | None:
    """The key that is in force; looked up by its digest, so nothing is compared in the clear."""
    with binary_cursor() as cursor:
        cursor.execute(_FIND, {"digest": digest_of(text)})
        row = cursor.fetchone()
    if row is None:
        return None
    key = ApiKey.from_db(connection.alias, _KEY, row[: len(_KEY)])
    key.project = Project.from_db(connection.alias, _PROJECT, row[len(_KEY) :])
    _note_use(key)
    return key


def how_it_ended(text: str) -> str | None:
    """`expired on 2026-11-26 10:00 UTC`, `was revoked on …`; None for what never was a key."""
    key = ApiKey.objects.filter(digest=digest_of(text)).first()
    if key is None:
        return None
    ended = f"was revoked on {key.revoked_at:{_MOMENT}}" if key.revoked_at else f"expired on {key.expires_at:{_MOMENT}}"
    return f"{ended} UTC"


_MOMENT = "%Y-%m-%d %H:%M"
_BELIEVED_FOR = 1.0
"""Seconds."""
_believed: dict[bytes, tuple[float, ApiKey]] = {}
"""Keys that were found, and until when that is not asked again."""


def recent_key(text: str) -> ApiKey | None:
    """`find_key` for doors through which many requests come: one that another process revokes is good for a second."""
    digest = digest_of(text)
    until, key = _believed.get(digest, (0.0, None))
    if key is None or monotonic() >= until:
        key = find_key(text)
        _believed.pop(digest, None)
        if key is not None:
            _believed[digest] = (monotonic() + _BELIEVED_FOR, key)
    return key


ROTATION_OVERLAP = timedelta(days=1)


class AlreadyReplaced(ReplayProductError):
    """Its days are those of the overlap: a key made after it would end with them."""


def rotate_key(key: ApiKey, *, user: User | None = None, overlap: timedelta = ROTATION_OVERLAP) -> tuple[ApiKey, str]:
    """A new key of the same name and scope, and its text. The old one is good for the overlap, and no longer than it
    was; the new one lasts as long as the old one was made for. Raises `AlreadyReplaced`."""
    now = timezone.now()
    ends = now + overlap
    with transaction.atomic():
        if not ApiKey.objects.filter(pk=key.pk, replaced_at=None).update(replaced_at=now):
            raise AlreadyReplaced(f"The key {key.name} ({key.prefix}…) was replaced before. Replace the newer one.")
        lasts = None if key.expires_at is None else now + (key.expires_at - key.created_at)
        ApiKey.objects.filter(pk=key.pk).exclude(expires_at__lt=ends).update(expires_at=ends)
        return create_key(project=key.project, name=key.name, scope=key.scope, user=user, expires_at=lasts)


def revoke_key(key: ApiKey) -> None:
    key.revoked_at = timezone.now()
    key.save(update_fields=["revoked_at"])
    _believed.pop(bytes(key.digest), None)


def _note_use(key: ApiKey) -> None:
    """At most one write a minute: a busy sender must not make its key's row hot."""
    now = timezone.now()
    is_stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_IS_NOTED_EVERY)
    if key.last_used_at is None or key.last_used_at < now - _USE_IS_NOTED_EVERY:
        ApiKey.objects.filter(is_stale, pk=key.pk).update(last_used_at=now)
