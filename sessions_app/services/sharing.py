"""Share links: made, found, revoked. The token itself is never stored."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import F
from django.utils import timezone

from sessions_app.models import Run, ShareLink
from sessions_app.models.sharing import LASTS
from sessions_app.services.tokens import digest_of, new_token


def create_link(*, run: Run, user: User | None, lasts: timedelta = LASTS) -> tuple[ShareLink, str]:
    """A new link and its token of 256 random bits; the token cannot be shown again."""
    token = new_token()
    link = ShareLink.objects.create(
        project_id=run.project_id,
        run=run,
        digest=digest_of(token),
        created_by=user,
        expires_at=timezone.now() + lasts,
    )
    return link, token


def find_link(token: str, *, now: datetime) -> ShareLink | None:
    """The link while it holds; looked up by its digest, so nothing is compared in the clear."""
    links = ShareLink.objects.filter(digest=digest_of(token), revoked_at=None, expires_at__gt=now)
    return links.select_related("project", "created_by", "run__session").first()


def note_view(link: ShareLink) -> None:
    ShareLink.objects.filter(pk=link.pk).update(views=F("views") + 1)


def revoke_link(link: ShareLink) -> None:
    """From the next request on the link shows nothing. Revoking again changes nothing."""
    ShareLink.objects.filter(pk=link.pk, revoked_at=None).update(revoked_at=timezone.now())
