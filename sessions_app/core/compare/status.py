"""One word for what was found between two things."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sessions_app.core.compare.json_diff import Difference

PairStatus = Literal["same", "changed", "only_left", "only_right", "not_comparable"]


def status_of(differences: Sequence[Difference]) -> PairStatus:
    """Not comparable only when nothing is known to differ."""
    if not differences:
        return "same"
    is_known = any(found.status != "not_comparable" for found in differences)
    return "changed" if is_known else "not_comparable"
