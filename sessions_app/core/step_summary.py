"""What lists and searches need of the steps of a run: short, and read for all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

_EMPTY = ("[]", "{}", '""', "null", "")


class StepSummary(msgspec.Struct, array_like=True, kw_only=True, gc=False):
    """One step. The order of the fields is that of the stored bytes."""

    index: int
    kind: str
    name: str
    text: int
    """The number of the piece that holds what was recorded of it (mapping/pieces.py)."""
    call_id: str | None = None
    tool_name: str | None = None
    """Of the tool, where the step has another name."""
    parent: int | None = None
    arguments_key: bytes | None = None
    result_key: bytes | None = None
    """The first 16 bytes of SHA-256 of the canonical values: equal for equal ones however they were spelled."""
    input_node: int | None = None
    output_node: int | None = None
    """Where the histories of a request and of its answer end, by the numbers of the content's nodes."""
    request_key: bytes | None = None
    """Of a model step, 16 bytes: equal for requests that ask for the same (core/replay/request_key.py)."""
    model: str | None = None
    outcome: str | None = None
    source: str = "recorded"
    has_error: bool = False
    started_at: datetime | None = None
    duration_ms: float | None = None
    first_token_ms: float | None = None
    """Of a model step, since its start."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    arguments_preview: str | None = None
    result_preview: str | None = None
    error_preview: str | None = None
    state_changes: str | None = None
    """Which keys of the state this step changed, as `+docs −plan ~count`."""
    has_state: bool = False
    """Whether it says something of the state."""
    span_ids: tuple[bytes, ...] = ()
    """Of the spans that told of this step; only runs made of spans have them."""
    answer_key: bytes | None = None
    """Of a model step, 8 bytes: of the provider's id of the answer (core/assembly/lone_calls.py)."""
    tells_failure: bool = False
    """Whether its answer tells of a failure, as one with HTTP status 429 does, though it is no error."""

    @property
    def has_failed(self) -> bool:
        """As the story of the run counts it."""
        return self.has_error or self.tells_failure

    @property
    def title(self) -> str:
        """What people call it: a model step without a name of its own goes by its model."""
        return self.model if self.model and self.kind == self.name == "model" else self.name

    @property
    def is_answer_empty(self) -> bool:
        """Whether its answer was captured and holds nothing: an empty value, or an object of nothing but empty ones."""
        text = (self.result_preview or "").replace(" ", "")
        if self.result_key is None:
            return False
        if not (text.startswith("{") and text.endswith("}")):
            return text in _EMPTY
        return text == "{}" or all(part.partition(":")[2] in (*_EMPTY, "0", "false") for part in text[1:-1].split(","))


_READER = msgspec.msgpack.Decoder(list[list[Any]])
_WRITER = msgspec.msgpack.Encoder()


def write_summaries(steps: Sequence[StepSummary]) -> bytes:
    """Field by field, each of all steps: a tenth less when compressed than step by step."""
    return _WRITER.encode([_column(steps, name) for name in StepSummary.__struct_fields__])


def _column(steps: Sequence[StepSummary], name: str) -> msgspec.Raw:
    """As bytes: the values of all fields at once take more room than the summaries."""
    return msgspec.Raw(_WRITER.encode([getattr(step, name) for step in steps]))


def read_summaries(data: bytes) -> tuple[StepSummary, ...]:
    """Raises `msgspec.DecodeError` for other bytes."""
    rows = list(zip(*_READER.decode(data), strict=True))
    return msgspec.convert(rows, tuple[StepSummary, ...], builtin_types=(bytes,))
