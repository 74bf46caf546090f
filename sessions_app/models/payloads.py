"""Exact bytes, each kept once a project by its SHA-256, and the chains of messages that they make."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from sessions_app.models.projects import Project


class StoredPayload(models.Model):
    """Exact bytes, stored once a project under their SHA-256."""

    pk = models.CompositePrimaryKey("project", "digest")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField()
    size = models.IntegerField()
    """Bytes before compression."""
    stored_size = models.IntegerField()
    data = models.BinaryField(null=True)
    """Compressed with zstd when `is_compressed`; null when they lie in the blob folder."""
    is_compressed = models.BooleanField()
    is_doomed = models.BooleanField(default=False)
    """Whether it goes as soon as nothing refers to it: what did refer to it was redacted."""

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["digest"], condition=models.Q(data=None), name="payload_in_folder"),
            models.Index(fields=["project"], condition=models.Q(is_doomed=True), name="payloads_doomed"),
        ]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class HistoryNode(models.Model):
    """One link of a message history: its parent and the message that it adds (core/history.py). Of those that several
    batches of spans may have; the others are in the batches. Runs keep their own (`RunContent.nodes`)."""

    pk = models.CompositePrimaryKey("project", "digest")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField()
    parent = models.BinaryField(null=True)
    message = models.BinaryField()
    """Digest of the message's payload."""

    def __str__(self) -> str:
        return bytes(self.digest).hex()
