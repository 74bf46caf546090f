"""The ruler beside a long list: where errors and anomalies are in the whole run, and which part is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sessions_app.core.payload import JsonObject
from sessions_app.models import Step

HEIGHT = 1000
BUCKETS = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A place on the ruler; `index` is the first step there that is marked."""

    index: int
    y: int
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruler:
    """All in units of a drawing that is `HEIGHT` high."""

    marks: tuple[Mark, ...] = field(default=())
    shown_y: int = 0
    shown_height: int = HEIGHT


def ruler_marks(
    failed: Sequence[int], anomalies: Sequence[JsonObject], last: int, rows: Sequence[Step]
) -> Ruler | None:
    """None for a list that is whole on the page anyway."""
    if not rows or last <= len(rows):
        return None
    odd = sorted({index for item in anomalies for index in item.get("steps") or ()})
    found = {mark.y: mark for mark in _marks(odd, last, "odd")} | {
        mark.y: mark for mark in _marks(failed, last, "failed")
    }
    top = _y(rows[0].index, last)
    bottom = _y(rows[-1].index + 1, last)
    return Ruler(
        marks=tuple(found[y] for y in sorted(found)),
        shown_y=top,
        shown_height=max(bottom - top, 6),
    )


def _marks(indices: Sequence[int], last: int, kind: str) -> list[Mark]:
    step = HEIGHT // BUCKETS
    first_in: dict[int, int] = {}
    for index in indices:
        first_in.setdefault(_y(index, last) // step * step, index)
    return [Mark(index=index, y=y, kind=kind) for y, index in first_in.items()]


def _y(index: int, last: int) -> int:
    return (index - 1) * HEIGHT // max(last, 1)
