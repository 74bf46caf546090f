"""API keys: made, found, revoked. The key itself is never stored."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from sessions_app.models import ApiKey, Project

_SHOWN = 12
_USE_IS_NOTED_EVERY = timedelta(minutes=1)


def create_key(*, project: Project, name: str, scope: str, user: User | None = None) -> tuple[ApiKey, str]:
    """A new key and its text, `rpk_` and 43 random characters; the text cannot be shown again."""
    text = f"rpk_{secrets.token_urlsafe(32)}"
    key = ApiKey.objects.create(
        project=project,
        name=name,
        prefix=text[:_SHOWN],
        digest=_digest(text),
        scope=scope,
        created_by=user,
    )
    return key, text


def find_key(text: str) -> ApiKey | None:
    """The key that is not revoked; looked up by its digest, so nothing is compared in the clear."""
    key = ApiKey.objects.select_related("project").filter(digest=_digest(text), revoked_at=None).first()
    if key is not None:
        _note_use(key)
    return key


def revoke_key(key: ApiKey) -> None:
    key.revoked_at = timezone.now()
    key.save(update_fields=["revoked_at"])


def _note_use(key: ApiKey) -> None:
    """At most one write a minute: a busy sender must not make its key's row hot."""
    now = timezone.now()
    is_stale = Q(last_used_at=None) | Q(last_used_at__lt=now - _USE_IS_NOTED_EVERY)
    if key.last_used_at is None or key.last_used_at < now - _USE_IS_NOTED_EVERY:
        ApiKey.objects.filter(is_stale, pk=key.pk).update(last_used_at=now)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()
