"""Several readings of one operation as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from sessions_app.core.spans.reading import Reading

_TOGETHER = {"result": "has_result", "arguments": "has_arguments"}
"""A value, and whether it was captured."""
_APART = {"convention", "used", *_TOGETHER, *_TOGETHER.values()}
_ALONE = tuple(each.name for each in fields(Reading) if each.name not in _APART)


def merged(readings: Sequence[Reading]) -> Reading:
    """The first one, with its gaps filled by the others in their order."""
    first, *others = readings
    for other in others:
        gaps = {name: getattr(other, name) for name in _ALONE if not _is_said(getattr(first, name))}
        for name, captured in _TOGETHER.items():
            if not getattr(first, captured):
                gaps |= {name: getattr(other, name), captured: getattr(other, captured)}
        first = replace(first, used=first.used | other.used, **gaps)
    return first


def _is_said(value: object) -> bool:
    return value is not None and value is not False
