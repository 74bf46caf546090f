"""What was recorded of runs: written once, never changed, and deleted when nothing needs it any more."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.db import models

from sessions_app.models.packed import PackedField
from sessions_app.models.projects import Project


class RunContent(models.Model):
    """All that was recorded of a run at one time. Whoever reads one reads one consistent run: when more comes, the run
    gets another content, and this one is deleted once no fork and no replay needs it (services/contents.py)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="contents", db_index=False)
    digest = models.BinaryField()
    """SHA-256 of the whole run (core/formats/native.py)."""
    header = PackedField()
    """All facts of the run as JSON, payloads by digest (mapping/rows.py)."""
    prior_node = models.BinaryField(null=True)
    final_node = models.BinaryField(null=True)
    node_count = models.IntegerField(default=0)
    nodes = models.BinaryField(null=True)
    """The links of its histories that no other run has, as core/packed_nodes.py writes them."""
    base = models.ForeignKey("self", null=True, on_delete=models.RESTRICT, related_name="forks", db_index=False)
    """Of a fork: the content that it begins with. It cannot go before this one."""
    shared = models.JSONField(default=list)
    """Of a fork: where its first steps lie, `content` with its steps behind index `after` up to `upto`. More than one
    part where the base is itself of a fork."""
    released_at = models.DateTimeField(null=True)
    """When its run got another content, or was deleted."""

    class Meta:
        indexes = [
            models.Index(fields=["base"], name="forks_of_a_content", condition=models.Q(base__isnull=False)),
            models.Index(fields=["released_at"], name="released", condition=models.Q(released_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return bytes(self.digest).hex()

    @property
    def steps(self) -> models.QuerySet[Step]:
        """All steps, those that it shares with its base included."""
        wanted = models.Q(content=self.pk)
        for part in self.shared:
            wanted |= models.Q(content=part["content"], index__gt=part["after"], index__lte=part["upto"])
        return Step.objects.filter(wanted)

    @property
    def shared_count(self) -> int:
        """How many of its first steps it has from its base."""
        return self.shared[-1]["upto"] if self.shared else 0


class Step(models.Model):
    """One operation in a run."""

    pk = models.CompositePrimaryKey("content", "index")
    content = models.ForeignKey(RunContent, on_delete=models.CASCADE, related_name="own_steps", db_index=False)
    index = models.IntegerField()
    kind = models.CharField(max_length=10)
    name = models.TextField()
    call_id = models.TextField(null=True)
    tool_name = models.TextField(null=True)
    """Of the tool, where the step has another name."""
    parent = models.IntegerField(null=True)
    arguments_key = models.BinaryField(null=True)
    """SHA-256 of the canonical arguments: equal for equal calls however they were spelled."""
    result_key = models.BinaryField(null=True)
    """Of the result in the same way, the first 16 bytes."""
    input_node = models.BinaryField(null=True)
    output_node = models.BinaryField(null=True)
    request_key = models.BinaryField(null=True)
    """Of a model step, 16 bytes: equal for requests that ask for the same (core/replay/request_key.py)."""
    model = models.TextField(null=True)
    outcome = models.TextField(null=True)
    source = models.CharField(max_length=32)
    has_error = models.BooleanField()
    started_at = models.DateTimeField(null=True)
    duration_ms = models.FloatField(null=True)
    input_tokens = models.BigIntegerField(null=True)
    output_tokens = models.BigIntegerField(null=True)
    arguments_preview = models.TextField(null=True)
    result_preview = models.TextField(null=True)
    error_preview = models.TextField(null=True)
    state_changes = models.TextField(null=True)
    """Which keys of the state this step changed, as `+docs −plan ~count`."""
    has_state = models.BooleanField(null=True)
    """True when it says something of the state, else null."""
    span_ids = ArrayField(models.TextField(), null=True)
    """Ids of the spans that told of this step; null for most: only runs made of spans have them."""

    class Meta:
        indexes = [
            # Nobody asks for an order of digests, and hash indexes are half as large.
            HashIndex(fields=["arguments_key"], name="equal_calls", condition=models.Q(arguments_key__isnull=False)),
            HashIndex(fields=["request_key"], name="equal_requests", condition=models.Q(request_key__isnull=False)),
            GinIndex(fields=["span_ids"], name="steps_of_a_span", condition=models.Q(span_ids__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.index} {self.name}"


class StepBlock(models.Model):
    """The texts of steps that follow one another, payloads by digest (mapping/details.py)."""

    pk = models.CompositePrimaryKey("content", "first")
    content = models.ForeignKey(RunContent, on_delete=models.CASCADE, related_name="own_blocks", db_index=False)
    first = models.IntegerField()
    """Index of the first of them; the block reaches to the next one's."""
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"from {self.first}"
