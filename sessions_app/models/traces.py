"""Spans as they arrived; the runs that are made of them are in `recordings`."""

from __future__ import annotations

from django.db import models

from sessions_app.models.projects import Project
from sessions_app.models.recordings import Run

WANTED = -1
"""In place of a number of batches: the run is to be made again although nothing came."""
IS_BEHIND = models.Q(batches_assembled__lt=models.F("batches_received"))
"""More has come than the run was made of."""


class Trace(models.Model):
    """All that arrived of one trace, and how far it was made into a run."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="traces", db_index=False)
    trace_id = models.CharField(max_length=32)
    run = models.OneToOneField(Run, null=True, on_delete=models.SET_NULL, related_name="trace")
    joined = models.ForeignKey("self", null=True, on_delete=models.CASCADE, related_name="others", db_index=False)
    """The trace whose run holds this one's spans too (services/lone_calls.py); None where it has a run of its own."""
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
            models.Index(fields=["joined"], name="traces_joined", condition=models.Q(joined__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.trace_id

    @property
    def held_by(self) -> Run | None:
        """The run that its spans are in."""
        return self.run if self.joined is None else self.joined.run

    @property
    def problem_words(self) -> str | None:
        """The problem for people: an error of the product itself is noted by its class alone."""
        is_class = self.problem is not None and self.problem.isidentifier()
        return f"the product failed on it ({self.problem})" if is_class else self.problem


class LoneCall(models.Model):
    """What a trace says that holds one call of a model alone: see core/assembly/lone_calls.py."""

    trace = models.OneToOneField(Trace, primary_key=True, on_delete=models.CASCADE, related_name="lone_call")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+", db_index=False)
    continues = models.BinaryField(null=True)
    leaves = models.BinaryField(null=True)
    response = models.BinaryField(null=True)
    scope = models.TextField()
    is_answered = models.BooleanField()
    began_ns = models.BigIntegerField()
    ended_ns = models.BigIntegerField()
    after = models.ForeignKey(Trace, null=True, on_delete=models.SET_NULL, related_name="+")
    """The trace that it goes on from, or that tells of the same call."""
    is_told_again = models.BooleanField(default=False)
    """Whether it tells of the same call as `after`, so nothing goes on from it."""
    is_settled = models.BooleanField(default=False)
    """Whether `after` was looked for since this row and its neighbours changed."""

    class Meta:
        indexes = [
            models.Index(fields=["project", "continues"], name="calls_by_start", condition=~models.Q(continues=None)),
            models.Index(fields=["project", "leaves"], name="calls_by_end", condition=~models.Q(leaves=None)),
            models.Index(fields=["project", "response"], name="calls_by_answer", condition=~models.Q(response=None)),
            models.Index(fields=["project"], name="calls_to_settle", condition=models.Q(is_settled=False)),
        ]

    def __str__(self) -> str:
        return f"the call of trace {self.trace_id}"


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
