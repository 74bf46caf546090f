"""Links that show one run to people without an account."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from sessions_app.models.projects import Project
from sessions_app.models.recordings import Run

LASTS = timedelta(days=7)


def default_expiry() -> datetime:
    return timezone.now() + LASTS


class ShareLink(models.Model):
    """One run, read-only, for whoever holds the token. Only its SHA-256 is stored; the token is shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="share_links")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="share_links")
    digest = models.BinaryField(unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(default=default_expiry)
    revoked_at = models.DateTimeField(null=True)
    views = models.IntegerField(default=0)
    """How often the session's page was opened by it."""

    def __str__(self) -> str:
        return f"{self.run_id} until {self.expires_at:%Y-%m-%d}"
