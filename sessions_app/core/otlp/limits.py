"""How much one OTLP request may hold. Its bytes are limited where they are received."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class OtlpLimits:
    """Every one is checked before, or while, the objects are made that it counts."""

    max_records: int = 10_000
    """Spans or log records of a request."""
    max_items: int = 2_000
    """Attributes of one record, event or link; events of a span; links of a span."""
    max_depth: int = 32
    """Levels of an attribute's value; a plain text is one level."""
    max_fields: int = 2_000_000
    """Protobuf fields of a request, also those that nobody knows; a plain attribute has four."""
    max_json_tokens: int = 1_000_000
    """`{`, `[` and `,` of a JSON request; a plain attribute has about five."""
    max_json_depth: int = 400
    """Brackets within brackets, whatever they mean; a legal value of `max_depth` needs about 140."""


DEFAULT_LIMITS = OtlpLimits()
