"""What was recorded of runs: written once, never changed, and deleted when nothing needs it any more."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from sessions_app.core.payload import JsonObject
from sessions_app.core.step_summary import StepSummary
from sessions_app.models.packed import PackedField
from sessions_app.models.projects import Project
from sessions_app.payloads.outlines import unpack_outline


class RunContent(models.Model):
    """All that was recorded of a run at one time. Whoever reads one reads one consistent run: when more comes, the run
    gets another content, and this one is deleted once no fork and no replay needs it (services/contents.py)."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="contents", db_index=False)
    digest = models.BinaryField()
    """SHA-256 of the whole run (core/formats/native.py)."""
    header = PackedField()
    """All facts of the run as JSON, payloads by digest (mapping/rows.py)."""
    outline = models.BinaryField()
    """The summaries of its own steps, without those that it shares with its base (payloads/outlines.py)."""
    step_count = models.IntegerField()
    """How many these are."""
    change_count = models.IntegerField()
    """How many of them changed the state."""
    keys = ArrayField(models.BigIntegerField(), default=list)
    """Of what other runs look for in it: calls, answers, requests and spans (mapping/content_keys.py)."""
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
            GinIndex(fields=["keys"], name="contents_by_key"),
        ]

    def __str__(self) -> str:
        return bytes(self.digest).hex()

    @cached_property
    def own_steps(self) -> tuple[StepSummary, ...]:
        """Those that it does not share with its base. Raises `StepMissing` where they are damaged."""
        return unpack_outline(bytes(self.outline))

    @cached_property
    def steps(self) -> tuple[StepSummary, ...]:
        """All steps in their order, which is that of their indices from 1. A query more for those that it shares."""
        if not self.shared:
            return self.own_steps
        holders = RunContent.objects.only("outline").in_bulk([part["content"] for part in self.shared])
        return (*(step for part in self.shared for step in _part(holders[part["content"]], part)), *self.own_steps)

    def place_of(self, index: int) -> tuple[int, int]:
        """The content that has the text of a step, and the step's index."""
        part = next((part for part in self.shared if index <= part["upto"]), None)
        return (self.pk if part is None else part["content"], index)

    @property
    def length(self) -> int:
        """How many steps the run has, those that it shares and those of kind `other` included."""
        return (self.shared[-1]["upto"] if self.shared else 0) + self.step_count


def _part(holder: RunContent, part: JsonObject) -> Iterator[StepSummary]:
    return (step for step in holder.own_steps if part["after"] < step.index <= part["upto"])


class StepBlock(models.Model):
    """The texts of steps that follow one another, payloads by digest (mapping/details.py)."""

    pk = models.CompositePrimaryKey("content", "first")
    content = models.ForeignKey(RunContent, on_delete=models.CASCADE, related_name="own_blocks", db_index=False)
    first = models.IntegerField()
    """Index of the first of them; the block reaches to the next one's."""
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"from {self.first}"
