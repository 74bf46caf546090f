"""The ruler beside a long list: where errors, anomalies and hits are in the whole run, and which part is shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly
from sessions_app.core.payload import JsonObject
from sessions_app.core.step_summary import StepSummary

HEIGHT = 1000
LINE = 2
"""Marks nearer than this are one mark."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruler:
    """SVG paths and places, in units of a drawing that is `HEIGHT` high."""

    failed: str
    odd: str
    hits: str
    shown_y: int
    shown_height: int


def ruler_of(
    failed: Sequence[int],
    anomalies: Iterable[JsonObject],
    last: int,
    rows: Sequence[StepSummary],
    hits: Iterable[int] = (),
) -> Ruler:
    """For a list of which these rows are a part."""
    odd = {step for item in anomalies if (step := Anomaly.from_json(item).odd_step)}
    top, bottom = _y(rows[0].index, last), _y(rows[-1].index + 1, last)
    return Ruler(
        failed=_path(failed, last, "M0 {}h14"),
        odd=_path(odd - set(failed), last, "M7 {}h7"),
        hits=_path(hits, last, "M0 {}h7"),
        shown_y=top,
        shown_height=max(bottom - top, 6),
    )


def _path(indices: Iterable[int], last: int, stroke: str) -> str:
    return "".join(stroke.format(y) for y in sorted({_y(index, last) // LINE * LINE for index in indices}))


def _y(index: int, last: int) -> int:
    return (index - 1) * HEIGHT // max(last, 1)
