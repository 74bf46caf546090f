"""What of a run may have hung on the world outside it: its day, interfaces that changed, limits of rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sessions_app.core.factors import interfaces, limits, time
from sessions_app.core.factors.checks import Check, Sight
from sessions_app.core.run import Run

FactorKey = Literal["time", "api", "rate_limit"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Factor:
    """A question about the world, with the checks that speak to it."""

    key: FactorKey
    title: str
    checks: tuple[Check, ...]

    @property
    def sight(self) -> Sight:
        """Seen when one check is; not seen only when every check could be made."""
        sights = {check.sight for check in self.checks}
        if "seen" in sights:
            return "seen"
        return "not_captured" if "not_captured" in sights else "not_seen"


def external_factors(run: Run) -> list[Factor]:
    """Three factors, in the order in which they are asked. Message histories are not read."""
    return [Factor(key=key, title=title, checks=tuple(look(run) for look in looks)) for key, title, looks in _FACTORS]


_FACTORS: tuple[tuple[FactorKey, str, tuple[Callable[[Run], Check], ...]], ...] = (
    ("time", "Time-dependent data?", time.CHECKS),
    ("api", "API changes?", interfaces.CHECKS),
    ("rate_limit", "Rate limits?", limits.CHECKS),
)
