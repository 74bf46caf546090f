"""Spans as they arrived; the runs that are made of them are in `recordings`."""

from __future__ import annotations

from django.db import models

from sessions_app.models.projects import Project
from sessions_app.models.recordings import Run

IS_BEHIND = models.Q(batches_assembled__lt=models.F("batches_received"))
"""More has come than the run was made of."""


class Trace(models.Model):
    """All that arrived of one trace, and how far it was made into a run."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="traces", db_index=False)
    trace_id = models.CharField(max_length=32)
    run = models.OneToOneField(Run, null=True, on_delete=models.SET_NULL, related_name="trace")
    batches_received = models.IntegerField(default=0)
    batches_assembled = models.IntegerField(default=0)
    """How many of them the run was made of; fewer than received while it waits to be made again."""
    span_count = models.IntegerField(default=0)
    """Spans of all batches; one that came twice in different batches counts twice."""
    said_bytes = models.BigIntegerField(default=0)
    """Attributes of these spans, their events and log records as they were sent (core/spans/sizes.py)."""
    changed_at = models.DateTimeField(auto_now_add=True)
    is_closed = models.BooleanField(default=False)
    """Whether nobody waits for its topmost span any more."""
    problem = models.TextField(null=True)
    """Why no run could be made of it; the spans are kept."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "trace_id"], name="one_trace_an_id")]
        indexes = [
            models.Index(
                fields=["changed_at"],
                name="traces_to_assemble",
                condition=IS_BEHIND,
            ),
            models.Index(fields=["changed_at"], name="traces_open", condition=models.Q(is_closed=False)),
            models.Index(
                fields=["trace_id"],
                name="traces_without_run",
                opclasses=["text_pattern_ops"],
                condition=models.Q(run__isnull=True),
            ),
            models.Index(
                fields=["project", "-changed_at"],
                name="traces_not_read",
                condition=models.Q(problem__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.trace_id

    @property
    def problem_words(self) -> str | None:
        """The problem for people: an error of the product itself is noted by its class alone."""
        is_class = self.problem is not None and self.problem.isidentifier()
        return f"the product failed on it ({self.problem})" if is_class else self.problem


class SpanBatch(models.Model):
    """Spans and log records of one trace that came in one request (core/spans/batch.py)."""

    trace = models.ForeignKey(Trace, on_delete=models.CASCADE, related_name="batches", db_index=False)
    digest = models.BinaryField()
    """SHA-256 of the content."""
    content = models.BinaryField()
    """Compressed with zstd when `is_compressed`."""
    is_compressed = models.BooleanField()
    holder = models.BigIntegerField(null=True)
    """Primary key of the batch whose content holds this one's too, once the trace is closed
    (services/span_batches.py)."""
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["trace", "digest"], name="one_batch_a_digest")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()
