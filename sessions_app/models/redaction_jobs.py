"""Rules of redaction applied to what is stored. The rows stay, as the account of who did that and what it changed."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.projects import Project


class RedactionState(models.TextChoices):
    COUNTING = "counting"
    """What would change is being counted; nothing is changed."""
    COUNTED = "counted"
    """Somebody has to look at the counts and start it."""
    APPLYING = "applying"
    DONE = "done"
    CANCELLED = "cancelled"


AT_WORK = (RedactionState.COUNTING, RedactionState.APPLYING)


class RedactionPhase(models.TextChoices):
    """What it goes through, in this order; a worker that takes it over goes on behind `position`."""

    TRACES = "traces"
    CONTENTS = "contents"
    WORDS = "words"
    """What people wrote and replays found out."""
    REMAINS = "remains"
    """Payloads that nothing needs any more."""


class RedactionJob(models.Model):
    """First a count, then, when somebody started it, the change."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="redaction_jobs")
    rules = models.TextField(blank=True)
    """Those of the project when it was asked for."""
    state = models.CharField(max_length=10, choices=RedactionState, default=RedactionState.COUNTING)
    phase = models.CharField(max_length=10, choices=RedactionPhase, default=RedactionPhase.CONTENTS)
    position = models.BigIntegerField(default=0)
    """Primary key of the last row of the phase that was looked at."""
    looked_at = models.IntegerField(default=0)
    """Runs that were counted, or traces and contents that were gone through."""
    counts = models.JSONField(default=dict)
    """By rule: how many values in how many runs would change."""
    changed = models.JSONField(default=dict)
    """How many runs, traces and words were changed."""
    unchanged = models.JSONField(default=list)
    """Ids of runs and traces that could not be changed, the first of them."""
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project"],
                name="one_open_redaction_a_project",
                condition=models.Q(state__in=["counting", "counted", "applying"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.project_id}: {self.state}"

    @property
    def is_at_work(self) -> bool:
        return self.state in AT_WORK
