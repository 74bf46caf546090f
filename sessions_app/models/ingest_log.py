"""What arrived at the doors for recordings, and what was refused there."""

from __future__ import annotations

from django.db import models

from sessions_app.models.projects import Project


class IngestNote(models.Model):
    """A refusal in words with how often it came, or the newest delivery at a door (`words` is empty then)."""

    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE, related_name="ingest_notes")
    """None when no key told whose it is."""
    door = models.CharField(max_length=32)
    status = models.SmallIntegerField()
    """The HTTP status that the sender was given; 200 also where a part of a delivery was refused."""
    words = models.CharField(max_length=300)
    count = models.IntegerField(default=0)
    """Spans or runs: of the newest delivery, or of all the refusals that this row stands for."""
    times = models.IntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["project", "-last_at"], name="ingest_notes_newest")]

    def __str__(self) -> str:
        return f"{self.door} {self.status} {self.words or self.count}"
