"""One thing done to every session that a query found. The rows stay, as the account of who did what to how many."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models

from sessions_app.models.projects import Project


def new_bulk_job_id() -> str:
    return f"bj_{secrets.token_hex(8)}"


class BulkAction(models.TextChoices):
    REPLAY = "replay"
    CANCEL = "cancel"
    COLD = "cold"
    TAG = "tag"
    UNTAG = "untag"


class BulkJob(models.Model):
    """The result as it was when somebody confirmed it: sessions that came later have a larger primary key."""

    bulk_job_id = models.CharField(max_length=40, unique=True, default=new_bulk_job_id)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="bulk_jobs")
    action = models.CharField(max_length=10, choices=BulkAction)
    words = models.TextField(blank=True)
    """Why they are cold, or the tags with commas between."""
    query = models.TextField(blank=True)
    since = models.DateTimeField(null=True)
    until = models.DateTimeField(null=True)
    newest = models.BigIntegerField()
    """Primary key of the last session that belongs to it."""
    total = models.IntegerField()
    """Sessions that matched when it was confirmed."""
    position = models.BigIntegerField(default=0)
    """Primary key of the last session that was looked at."""
    looked_at = models.IntegerField(default=0)
    changed = models.IntegerField(default=0)
    """The others are named by the action: cold runs are not replayed, what is not running is not cancelled."""
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    request_key = models.CharField(max_length=120)
    """Of the form: the same form again is the same job."""
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "request_key"], name="one_bulk_job_a_request_key"),
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(finished_at=None), name="bulk_jobs_at_work"),
        ]

    def __str__(self) -> str:
        return self.bulk_job_id
