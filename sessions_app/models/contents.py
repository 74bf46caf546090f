"""What was recorded of runs: written once, never changed, and deleted when nothing needs it any more."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

import msgspec
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import connection, models
from django.db.backends.base.base import BaseDatabaseWrapper

from sessions_app.core.errors import HeaderMissing, RecordError
from sessions_app.core.formats.fields import as_object
from sessions_app.core.step_summary import StepSummary
from sessions_app.models.packed import PackedField
from sessions_app.models.projects import Project
from sessions_app.payloads.outlines import unpack_outline


class Part(NamedTuple):
    """A content, as one that goes on from it sees it."""

    content: int
    """Its primary key."""
    base_steps: int
    first_piece: int
    first_node: int


class NumbersField(ArrayField):  # type: ignore[type-arg]  # at run time it takes none
    """Whole numbers as the text of an array: as a list each is prepared by itself, and a run may have tens of
    thousands."""

    def get_db_prep_value(self, value: Iterable[int], connection: BaseDatabaseWrapper, prepared: bool = False) -> str:
        return f"{{{','.join(map(str, value))}}}"


class RunContent(models.Model):
    """All that was recorded of a run at one time. Whoever reads one reads one consistent run: when more comes, the run
    gets another content, and this one is deleted once nothing needs it (services/contents.py).

    It consists of pieces, which are counted from 0: the text of each step, and each payload that is not long. A content
    may go on from another one, its base: that of a fork from its parent's, that of a turn from the turn's before. Then
    its own pieces and nodes are counted on from those of the base, so that one number means one thing in both.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="contents", db_index=False)
    digest = models.BinaryField()
    """SHA-256 of the whole run (core/formats/native.py)."""
    header = PackedField()
    """All facts of the run as JSON, payloads by reference (mapping/stored.py)."""
    outline = models.BinaryField()
    """The summaries of its own steps, without those that it shares with its base (payloads/outlines.py)."""
    step_count = models.IntegerField()
    """How many these are."""
    change_count = models.IntegerField()
    """How many of them changed the state."""
    keys = NumbersField(models.BigIntegerField(), default=list)
    """Of what is looked for in it: calls, answers, requests, spans, payloads (mapping/content_keys.py)."""
    prior_node = models.IntegerField(null=True)
    final_node = models.IntegerField(null=True)
    nodes = models.BinaryField(null=True)
    """The links of its histories, without those of its base (core/packed_nodes.py)."""
    node_count = models.IntegerField(default=0)
    first_node = models.IntegerField(default=0)
    piece_count = models.IntegerField(default=0)
    first_piece = models.IntegerField(default=0)
    base = models.ForeignKey("self", null=True, on_delete=models.RESTRICT, related_name="followers", db_index=False)
    """It cannot go before this one."""
    base_steps = models.IntegerField(default=0)
    """With how many steps of its base the run begins."""
    released_at = models.DateTimeField(null=True)
    """When its run got another content, or was deleted."""

    class Meta:
        indexes = [
            models.Index(fields=["base"], name="followers_of_a_content", condition=models.Q(base__isnull=False)),
            models.Index(fields=["released_at"], name="released", condition=models.Q(released_at__isnull=False)),
            GinIndex(fields=["keys"], name="contents_by_key"),
        ]

    def __str__(self) -> str:
        return bytes(self.digest).hex()

    @cached_property
    def intact_header(self) -> bytes:
        """Looked at once. Raises `HeaderMissing` where it is damaged."""
        text = bytes(self.header)
        try:
            as_object(text, "header")
        except (RecordError, msgspec.DecodeError):
            raise HeaderMissing from None
        return text

    @cached_property
    def own_steps(self) -> tuple[StepSummary, ...]:
        """Those that it does not share with its base. Raises `StepMissing` where they are damaged."""
        return unpack_outline(bytes(self.outline))

    @cached_property
    def steps(self) -> tuple[StepSummary, ...]:
        """All steps in their order, that of their indices from 1. Two queries more for those that it shares."""
        if not self.base_steps:
            return self.own_steps
        return (*_shared_steps(self.parts), *self.own_steps)

    @property
    def length(self) -> int:
        """How many steps the run has, those that it shares and those of kind `other` included."""
        return self.base_steps + self.step_count

    @property
    def next_piece(self) -> int:
        return self.first_piece + self.piece_count

    @property
    def next_node(self) -> int:
        return self.first_node + self.node_count

    # --- where its pieces lie ------------------------------------------------------------------

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Itself behind what it goes on from, the oldest first; a query where it has a base (see `find_parts`)."""
        find_parts([self])
        return self.parts

    def holder_of(self, piece: int) -> int:
        """The primary key of the content that has the piece."""
        return self.parts[bisect_right(self.parts, piece, key=lambda part: part.first_piece) - 1].content

    @cached_property
    def opened(self) -> dict[int, bytes]:
        """The pieces that were read so far, by number (mapping/pieces.py)."""
        return {}


_PARTS = """
WITH RECURSIVE part AS (
    SELECT id AS follower, 0 AS back, id, base_id, base_steps, first_piece, first_node
    FROM sessions_app_runcontent WHERE id = ANY(%s)
  UNION ALL
    SELECT follower, back + 1, base.id, base.base_id, base.base_steps, base.first_piece, base.first_node
    FROM part JOIN sessions_app_runcontent base ON base.id = part.base_id
)
SELECT follower, id, base_steps, first_piece, first_node FROM part ORDER BY follower, back DESC
"""


def find_parts(contents: Iterable[RunContent]) -> None:
    """Find the parts of all of these in one query; in none where they have no base."""
    following = {}
    for content in contents:
        if content.base_id is None:
            content.parts = (Part(content.pk, 0, 0, 0),)
        elif "parts" not in content.__dict__:
            following[content.pk] = content
    if following:
        with connection.cursor() as cursor:
            cursor.execute(_PARTS, [list(following)])
            for follower, rows in groupby(cursor.fetchall(), key=lambda row: row[0]):
                following[follower].parts = tuple(Part(*row[1:]) for row in rows)


def _shared_steps(parts: Sequence[Part]) -> tuple[StepSummary, ...]:
    """The steps of bases that the last of these begins with."""
    begin = max(at for at, part in enumerate(parts) if not part.base_steps)
    holders = RunContent.objects.only("outline").in_bulk([part.content for part in parts[begin:-1]])
    steps: tuple[StepSummary, ...] = ()
    for part, following in zip(parts[begin:], parts[begin + 1 :], strict=False):
        steps = (*steps, *holders[part.content].own_steps)[: following.base_steps]
    return steps


class ContentBlock(models.Model):
    """Pieces of a content that follow one another, compressed together (mapping/pieces.py)."""

    pk = models.CompositePrimaryKey("content", "first")
    content = models.ForeignKey(RunContent, on_delete=models.CASCADE, related_name="own_blocks", db_index=False)
    first = models.IntegerField()
    """Number of the first of them; the block reaches to the next one's."""
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"from {self.first}"
