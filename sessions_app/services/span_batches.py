"""The stored batches of a trace: each by itself while it grows, and together once it is closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, repeat

from zstandard import ZstdError

from sessions_app.core.errors import SpansMissing
from sessions_app.models import SpanBatch, Trace
from sessions_app.payloads.blocks import pack_block, parts_of, unpack_block
from sessions_app.payloads.compression import unpack

_TOGETHER = 8 * 1024 * 1024
"""Bytes before compression that are compressed together."""

Opened = tuple[SpanBatch, bytes | None]
"""A batch, and its content as core/spans/carried.py wrote it; None where that is damaged."""


def open_batches(batches: Iterable[SpanBatch]) -> Iterator[Opened]:
    """`batches` are all of a trace."""
    ordered = sorted(batches, key=lambda batch: (_holder(batch), batch.pk))
    for holder, held in groupby(ordered, key=_holder):
        together = list(held)
        contents = _contents(next(batch for batch in together if batch.pk == holder))
        yield from zip(together, contents or repeat(None, len(together)), strict=True)


def _holder(batch: SpanBatch) -> int:
    return batch.holder or batch.pk


def _contents(batch: SpanBatch) -> list[bytes] | None:
    content = bytes(batch.content)
    try:
        return [unpack(content, is_compressed=batch.is_compressed)] if batch.holder is None else unpack_block(content)
    except ZstdError:
        return None


def read_batches(trace: Trace) -> list[bytes]:
    """All contents. Raises `SpansMissing`."""
    found = []
    for batch, content in open_batches(trace.batches.all()):
        if content is None:
            raise SpansMissing(str(batch))
        found.append(content)
    return found


def compact(trace: Trace) -> None:
    """Compress those together that came one by one: spans of a trace say the same again and again.

    In a transaction in which nobody else does the same. Batches that come meanwhile stay as they are.
    """
    opened = open_batches(trace.batches.filter(holder=None).order_by("pk"))
    loose = [(batch, content) for batch, content in opened if content is not None]
    batches = iter([batch for batch, _ in loose])
    for contents in parts_of([content for _, content in loose], _TOGETHER):
        _store_together(list(islice(batches, len(contents))), contents)


def _store_together(batches: Sequence[SpanBatch], contents: Sequence[bytes]) -> None:
    if len(batches) == 1:
        return
    holder = batches[0].pk
    SpanBatch.objects.filter(pk__in=[batch.pk for batch in batches]).update(holder=holder, content=b"")
    SpanBatch.objects.filter(pk=holder).update(content=pack_block(contents), is_compressed=True)
