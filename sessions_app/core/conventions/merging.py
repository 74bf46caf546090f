"""Several readings of one operation as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields

from sessions_app.core.conventions.told_twice import (
    are_instructions_told_otherwise,
    are_messages_told_otherwise,
    are_settings_told_otherwise,
    are_tools_told_otherwise,
    is_conversation_told_otherwise,
    is_value_told_otherwise,
)
from sessions_app.core.model_names import could_be_same_model
from sessions_app.core.spans.reading import Reading

_TOGETHER = {"result": "has_result", "arguments": "has_arguments"}
"""A value, and whether it was captured."""
_APART = {"convention", "used", *_TOGETHER, *_TOGETHER.values()}
_ALONE = tuple(each.name for each in fields(Reading) if each.name not in _APART)


def merged(readings: Sequence[Reading]) -> Reading:
    """The first one, after its gaps were filled by the others in their order."""
    first, *others = readings
    for other in others:
        _fill(first, other)
    return first


def _fill(reading: Reading, other: Reading) -> None:
    kind = reading.kind or other.kind
    if kind == "model":
        reading.are_messages_told_otherwise |= are_messages_told_otherwise(reading, other)
        reading.are_messages_told_otherwise |= are_instructions_told_otherwise(reading, other)
        reading.are_settings_told_otherwise |= are_settings_told_otherwise(reading.settings, other.settings)
        reading.are_settings_told_otherwise |= not could_be_same_model(reading.model, other.model)
        reading.are_tools_told_otherwise |= are_tools_told_otherwise(reading.tools, other.tools)
    if kind in ("agent", "chain"):
        reading.is_conversation_told_otherwise |= is_conversation_told_otherwise(reading, other)
        reading.is_conversation_told_otherwise |= are_instructions_told_otherwise(reading, other)
        reading.is_input_told_otherwise |= is_value_told_otherwise(reading.input, other.input)
        reading.is_output_told_otherwise |= is_value_told_otherwise(reading.output, other.output)
    if reading.tool_name is not None:
        named = (reading.other_tool_name, other.tool_name, other.other_tool_name)
        reading.other_tool_name = _another(reading.tool_name, named)
    if reading.call_id is not None:
        reading.other_call_id = _another(reading.call_id, (reading.other_call_id, other.call_id, other.other_call_id))
    if reading.has_arguments and other.has_arguments:
        reading.are_arguments_told_otherwise |= is_value_told_otherwise(reading.arguments, other.arguments)
    if reading.has_result and other.has_result:
        reading.is_result_told_otherwise |= is_value_told_otherwise(reading.result, other.result)
    gaps = [name for name in _ALONE if (said := getattr(reading, name)) is None or said is False]
    for name, captured in _TOGETHER.items():
        gaps += () if getattr(reading, captured) else (name, captured)
    for name in gaps:
        setattr(reading, name, getattr(other, name))
    reading.used |= other.used


def _another(told: str, others: Iterable[str | None]) -> str | None:
    return next((each for each in others if each not in (None, told)), None)
