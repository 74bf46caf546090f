"""Recorded runs. Plain columns exist for what lists filter and show; the rest is kept by digest."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex, HashIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from sessions_app.models.packed import PackedField, PackedKitField
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

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="one_payload_a_digest")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class HistoryNode(models.Model):
    """One link of a message history: its parent and the message that it adds (core/history.py). Of those that several
    runs or batches of spans may have; the others are in `RunHistory` and in the batches."""

    pk = models.CompositePrimaryKey("project", "digest")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, db_index=False)
    digest = models.BinaryField()
    parent = models.BinaryField(null=True)
    message = models.BinaryField()
    """Digest of the message's payload."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "digest"], name="one_node_a_digest")]

    def __str__(self) -> str:
        return bytes(self.digest).hex()


class Session(models.Model):
    """Runs that belong together, such as the turns of one conversation."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sessions", db_index=False)
    session_id = models.CharField(max_length=512)
    started_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "session_id"], name="one_session_an_id")]
        indexes = [
            models.Index(fields=["project", "-last_at", "-id"], name="sessions_newest_first"),
            models.Index(fields=["session_id"], name="session_prefix", opclasses=["text_pattern_ops"]),
        ]

    def __str__(self) -> str:
        return self.session_id


class Run(models.Model):
    """One execution of an agent."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="runs", db_index=False)
    run_id = models.CharField(max_length=512)
    origin = models.CharField(max_length=8)
    parent_run_id = models.CharField(max_length=512, null=True)
    status = models.CharField(max_length=8)
    content_digest = models.BinaryField()
    """Tells the same run sent again from another one under the same id."""
    source_format = models.CharField(max_length=40)
    source_digest = models.BinaryField()
    """The document as received, after redaction."""
    received_at = models.DateTimeField(auto_now_add=True)
    is_example = models.BooleanField(default=False)
    """Came with the product. When the same run is sent by somebody it becomes theirs."""
    header = PackedField()
    """All facts of the run as JSON, payloads by digest (mapping/rows.py)."""
    prior_node = models.BinaryField(null=True)
    final_node = models.BinaryField(null=True)
    kept = models.JSONField(default=list)
    """Of a fork: the steps that it shares with its parents, which have their rows. `run` is the primary key of one, and
    its steps behind index `after` up to `upto` are this run's too."""
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
    search = SearchVectorField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "run_id"], name="one_run_an_id")]
        indexes = [
            models.Index(fields=["session", "id"], name="runs_of_a_session"),
            models.Index(fields=["run_id"], name="run_prefix", opclasses=["text_pattern_ops"]),
            models.Index(fields=["project", "parent_run_id"], name="runs_of_a_parent"),
            models.Index(fields=["span_id"], name="runs_of_a_span", condition=models.Q(span_id__isnull=False)),
            models.Index(fields=["project"], name="runs_that_share", condition=~models.Q(kept=[])),
            models.Index(fields=["project", "-id"], name="runs_with_errors", condition=~models.Q(status="ok")),
            GinIndex(fields=["search"], name="runs_search"),
            GinIndex(fields=["tool_names"], name="runs_tools"),
        ]

    def __str__(self) -> str:
        return self.run_id

    @property
    def steps(self) -> models.QuerySet[Step]:
        """All steps, those that it shares with its parents included.

        A parent that is written anew gives its steps back; `kept` may be older than that.
        """
        wanted = models.Q(run=self.pk)
        for part in self.kept:
            is_lent = models.Exists(Run.objects.filter(pk=self.pk, kept__contains=[part]))
            wanted |= models.Q(is_lent, run=part["run"], index__gt=part["after"], index__lte=part["upto"])
        return Step.objects.filter(wanted)


class Step(models.Model):
    """One operation in a run."""

    pk = models.CompositePrimaryKey("run", "index")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="own_steps", db_index=False)
    index = models.IntegerField()
    kind = models.CharField(max_length=10)
    name = models.TextField()
    call_id = models.TextField(null=True)
    tool_name = models.TextField(null=True)
    """Of the tool, where the step has another name."""
    parent = models.IntegerField(null=True)
    detail = PackedField(null=True)
    """The step as JSON, payloads by digest (mapping/stored.py). Null in the database, but for rows from before these
    texts lay in blocks; mapping/details.py reads both."""
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
    """True when it says something of the state. Null when it does not, and also in rows from before there was this
    column, whose detail is not compressed."""
    span_ids = ArrayField(models.TextField(), null=True)
    """Ids of the spans that told of this step; null for most: only runs made of spans have them."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "index"], name="one_step_an_index")]
        indexes = [
            # Nobody asks for an order of digests, and hash indexes are half as large.
            HashIndex(fields=["arguments_key"], name="equal_calls", condition=models.Q(arguments_key__isnull=False)),
            HashIndex(fields=["request_key"], name="equal_requests", condition=models.Q(request_key__isnull=False)),
            GinIndex(fields=["span_ids"], name="steps_of_a_span", condition=models.Q(span_ids__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.index} {self.name}"


class StepBlock(models.Model):
    """The texts of steps that follow one another (mapping/details.py)."""

    pk = models.CompositePrimaryKey("run", "first")
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="own_blocks", db_index=False)
    """The one that has the rows of these steps."""
    first = models.IntegerField()
    """Index of the first of them; the block reaches to the next one's."""
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"from {self.first}"


class RunHistory(models.Model):
    """The nodes of a run's histories that no other run has (mapping/run_history.py). Runs from before there was this
    table have rows for all of theirs."""

    run = models.OneToOneField(Run, primary_key=True, on_delete=models.CASCADE, related_name="own_history")
    count = models.IntegerField()
    nodes = models.BinaryField()
    """As core/packed_nodes.py writes them."""

    def __str__(self) -> str:
        return f"{self.count} nodes"


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
