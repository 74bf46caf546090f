"""Exact bytes, each kept once a project by its SHA-256, and the chains of messages that they make."""

from __future__ import annotations

from django.db import models

from sessions_app.models.projects import Project


class PayloadBlock(models.Model):
    """The bytes of payloads that came together (payloads/blocks.py)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"block {self.pk}"


class StoredPayload(models.Model):
    """Exact bytes, stored once a project under their SHA-256."""

    pk = models.CompositePrimaryKey("project", "digest")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField()
    size = models.IntegerField()
    """Bytes before compression."""
    stored_size = models.IntegerField()
    """Of one in a block, its share of it."""
    data = models.BinaryField(null=True)
    """The bytes of one that stands alone, compressed with zstd when `is_compressed`; null when they lie in a block or
    in the blob folder."""
    is_compressed = models.BooleanField()
    block = models.ForeignKey(
        PayloadBlock, null=True, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    """Written in the same statement, so the database need not look after it."""
    place = models.IntegerField(null=True)
    """Where it begins in its block."""

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class HistoryNode(models.Model):
    """One link of a message history: its parent and the message that it adds (core/history.py). Of those that several
    runs or batches of spans may have; the others are in `RunContent` and in the batches."""

    pk = models.CompositePrimaryKey("project", "digest")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField()
    parent = models.BinaryField(null=True)
    message = models.BinaryField()
    """Digest of the message's payload."""

    def __str__(self) -> str:
        return bytes(self.digest).hex()
