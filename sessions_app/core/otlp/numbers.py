"""Numbers as they were meant, which JSON and protobuf do not always say."""

from __future__ import annotations

import math

from sessions_app.core.payload import JsonValue


def sayable(number: float) -> JsonValue:
    """The number itself, or `{"double": "NaN" | "Infinity" | "-Infinity"}`."""
    if math.isfinite(number):
        return number
    if math.isnan(number):
        return {"double": "NaN"}
    return {"double": "Infinity" if number > 0 else "-Infinity"}


def signed(number: int) -> int:
    """Out of 64 bits."""
    return number - 2**64 if number >= 2**63 else number
