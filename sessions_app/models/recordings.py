"""Recorded runs: columns for what lists filter and show. What was recorded itself is in `contents`."""

from __future__ import annotations

import re
from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.step_summary import StepSummary
from sessions_app.models.contents import RunContent
from sessions_app.models.packed import PackedKitField
from sessions_app.models.projects import Project


class Session(models.Model):
    """Runs that belong together, such as the turns of one conversation."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sessions", db_index=False)
    session_id = models.CharField(max_length=512)
    started_at = models.DateTimeField()
    last_at = models.DateTimeField()
    tags = ArrayField(models.TextField(), default=list, db_default=[])
    """What people call it by, in the order of the alphabet (services/tags.py)."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "session_id"], name="one_session_an_id")]
        indexes = [
            GinIndex(fields=["tags"], name="sessions_by_tag"),
            models.Index(fields=["project"], name="tagged_sessions", condition=~models.Q(tags=[])),
            models.Index(fields=["project", "-last_at", "-id"], name="sessions_newest_first"),
            models.Index(fields=["session_id"], name="session_prefix", opclasses=["text_pattern_ops"]),
        ]

    def __str__(self) -> str:
        return self.session_id


CLOCK_TOLERANCE = timedelta(minutes=5)
"""Clocks of machines differ by seconds; more is worth a word."""


class Run(models.Model):
    """One execution of an agent."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs", db_index=False)
    run_id = models.CharField(max_length=512)
    origin = models.CharField(max_length=8)
    parent_run_id = models.CharField(max_length=512, null=True)
    parent_step = models.PositiveIntegerField(null=True)
    """At which step of it this one was called, or begins."""
    status = models.CharField(max_length=8)
    content = models.OneToOneField(RunContent, on_delete=models.RESTRICT, related_name="run")
    content_digest = models.BinaryField()
    """That of its content: tells the same run sent again from another one under the same id."""
    source_format = models.CharField(max_length=40)
    source_digest = models.BinaryField(null=True)
    """The document as received, after redaction; None for a run that was made of spans, or here by a replay."""
    received_at = models.DateTimeField(auto_now_add=True)
    is_example = models.BooleanField(default=False)
    """Came with the product. When the same run is sent by somebody it becomes theirs."""
    span_id = models.CharField(max_length=16, null=True)
    """Of the span that stands for the run itself, where the run was made of spans."""

    agent_name = models.TextField(null=True)
    agent_version = models.TextField(null=True)
    commit = models.TextField(null=True)
    model = models.TextField(null=True)
    provider = models.TextField(null=True)
    user_id = models.TextField(null=True)
    tenant_id = models.TextField(null=True)
    started_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(null=True)
    input_preview = models.TextField(null=True)
    output_preview = models.TextField(null=True)
    error_preview = models.TextField(null=True)
    step_count = models.IntegerField()
    model_call_count = models.IntegerField()
    tool_call_count = models.IntegerField()
    message_count = models.IntegerField()
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    tool_names = ArrayField(models.TextField(), default=list)
    model_names = ArrayField(models.TextField(), default=list)
    step_kinds = ArrayField(models.TextField(), default=list)
    strip = models.TextField()
    """One letter a step for the list: m t r a o, upper case when it failed; cut at 200."""

    verdict = models.CharField(max_length=20)
    verdict_step = models.IntegerField(null=True)
    verdict_reasons = models.JSONField(default=list)
    anomalies = models.JSONField(default=list)
    kit = PackedKitField(default=dict)
    kit_lacks = ArrayField(models.TextField(), default=list)
    """Keys of the lines of the kit that were not captured, or not whole; in its order."""
    kit_captured = models.SmallIntegerField()
    story = models.TextField()
    answer_sources = models.JSONField(default=dict)
    """The steps that its values come from, and those that are in no step (core/judge/answer_sources.py)."""
    failure_group = models.CharField(max_length=10, null=True)
    """The same for runs that failed the same way (core/failures.py); None for one that did not."""
    search = SearchVectorField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "run_id"], name="one_run_an_id")]
        indexes = [
            models.Index(fields=["session", "id"], name="runs_of_a_session"),
            models.Index(fields=["run_id"], name="run_prefix", opclasses=["text_pattern_ops"]),
            models.Index(fields=["project", "parent_run_id"], name="runs_of_a_parent"),
            models.Index(fields=["span_id"], name="runs_of_a_span", condition=models.Q(span_id__isnull=False)),
            models.Index(fields=["project", "-id"], name="runs_with_errors", condition=~models.Q(status="ok")),
            models.Index(
                fields=["project", "failure_group"],
                name="runs_by_failure",
                condition=models.Q(failure_group__isnull=False),
            ),
            GinIndex(fields=["search"], name="runs_search"),
            GinIndex(fields=["tool_names"], name="runs_tools"),
        ]

    def __str__(self) -> str:
        return self.run_id

    @property
    def clock_ahead(self) -> timedelta | None:
        """By how much the sender's clock was ahead when it arrived; None where it was right, as far as that is seen."""
        ahead = self.started_at - self.received_at if self.started_at else timedelta(0)
        return ahead if ahead > CLOCK_TOLERANCE else None

    @property
    def foremost_anomalies(self) -> list[Anomaly]:
        """The warnings, or the notes of a run that has no warning."""
        found = [Anomaly.from_json(item) for item in self.anomalies]
        return [each for each in found if each.level == "warning"] or found

    @property
    def document(self) -> str:
        """The SHA-256 of the document as received, in hex; empty where there was none."""
        return bytes(self.source_digest or b"").hex()

    @property
    def steps(self) -> tuple[StepSummary, ...]:
        """In their order, which is that of their indices from 1. Raises `StepMissing`."""
        return self.content.steps

    def step(self, index: int) -> StepSummary | None:
        return self.steps[index - 1] if 1 <= index <= len(self.steps) else None


_CODE = re.compile(r"[a-z]+(_[a-z]+)+")


class ColdCase(models.Model):
    """A run that people have given up reproducing, and why."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="cold_case")
    reason = models.TextField()
    missing = ArrayField(models.TextField(), default=list)
    """Keys of the kit lines that were missing or partial when it was marked."""
    marked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    marked_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.run_id}: {self.reason}"

    @property
    def words(self) -> str:
        """The reason as people read it: programs send codes."""
        return self.reason.replace("_", " ") if _CODE.fullmatch(self.reason) else self.reason
