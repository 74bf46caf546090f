"""What is looked for in the contents of runs, as numbers of 64 bits; whoever finds one looks at the thing itself.

Of answered calls SHA-256 of the tool and the arguments, of requests their key, of spans their id, of answers the
key of the id that the provider gave them, of payloads and of
the history that the run ended with their digest: the first 8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256

from sessions_app.core.step_summary import StepSummary


def keys_of(steps: Iterable[StepSummary], held: Iterable[int]) -> list[int]:
    """`held` are those of its payloads, and of the node that its history ends with."""
    return sorted({*held, *(key for step in steps for key in _keys(step))})


def answered(tool_name: str, arguments_key: bytes) -> int:
    """A call of this tool that succeeded."""
    call = tool_name.encode() + b"\0" + arguments_key
    return _number(sha256(call).digest())


def requested(request_key: bytes) -> int:
    """A request that the model answered."""
    return _number(request_key)


def told_by(span_id: bytes) -> int:
    return _number(span_id)


def answered_as(response: bytes) -> int:
    """A model's answer that has this id at its provider."""
    return _number(response)


def holding(digest: str) -> int:
    """A payload, or the node that the final history ends with; SHA-256 in hex."""
    return _number(bytes.fromhex(digest))


def holding_content(content: bytes) -> int:
    """`holding` of a payload's bytes."""
    return _number(sha256(content).digest())


def is_answer(step: StepSummary) -> bool:
    """Whether the tool succeeded and its answer was captured."""
    return not step.has_error and step.outcome in (None, "success") and step.result_key is not None


def is_response(step: StepSummary) -> bool:
    """Whether the model answered, and its answer goes on from the request."""
    return not step.has_error and step.output_node not in (None, step.input_node)


def _keys(step: StepSummary) -> Iterator[int]:
    yield from map(told_by, step.span_ids)
    if step.answer_key is not None:
        yield answered_as(step.answer_key)
    if step.request_key is not None and is_response(step):
        yield requested(step.request_key)
    if step.kind == "tool" and step.arguments_key is not None and is_answer(step):
        yield answered(step.tool_name or step.name, step.arguments_key)


def _number(key: bytes) -> int:
    return int.from_bytes(key[:8], "big", signed=True)
