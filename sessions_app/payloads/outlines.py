"""The summaries of a run's steps, as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from zstandard import ZstdError

from sessions_app.core.errors import StepMissing
from sessions_app.core.step_summary import StepSummary, read_summaries, write_summaries
from sessions_app.payloads.compression import compress_block, decompress


def pack_outline(steps: Sequence[StepSummary]) -> bytes:
    return compress_block(write_summaries(steps))


def unpack_outline(data: bytes) -> tuple[StepSummary, ...]:
    """Raises `StepMissing` when they are not what was written."""
    try:
        return read_summaries(decompress(data))
    except (ZstdError, msgspec.DecodeError):
        raise StepMissing(1) from None
