"""The time and the agent that a page of figures is about; both stand in its address."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict

from sessions_app.queries.sessions import Span

RANGES = {
    "15m": ("15 min", timedelta(minutes=15)),
    "1h": ("1 h", timedelta(hours=1)),
    "24h": ("24 h", timedelta(hours=24)),
    "7d": ("7 d", timedelta(days=7)),
    "30d": ("30 d", timedelta(days=30)),
}
"""Words and length of the ranges that end now; without one, all times."""
_OF_FIGURES = ("24h", "7d", "30d")


@dataclass(frozen=True, kw_only=True, slots=True)
class Period:
    range: str = ""
    agent: str = ""

    @classmethod
    def read(cls, data: QueryDict) -> Period:
        """What cannot be understood is all times."""
        asked = data.get("range", "")
        return cls(range=asked if asked in RANGES else "", agent=data.get("agent", "").replace("\x00", ""))

    def span(self, now: datetime) -> Span:
        return Span(since=now - RANGES[self.range][1]) if self.range else Span()

    def address(self, **more: str) -> str:
        """From the question mark on."""
        parts = {"range": self.range, "agent": self.agent, **more}
        return "?" + urlencode({name: value for name, value in parts.items() if value})

    def choices(self, agents: list[str], **more: str) -> dict[str, Any]:
        """Words, address, and whether it is the one in force: of times, and of agents."""
        times = [(RANGES[name][0], name) for name in _OF_FIGURES]
        return {
            "period": self,
            "times": [
                (words, replace(self, range=name).address(**more), name == self.range)
                for words, name in [*times, ("All time", "")]
            ],
            "agents": [
                (name, replace(self, agent=name).address(**more), name == self.agent)
                for name in (agents if self.agent in ("", *agents) else [*agents, self.agent])
            ],
            "all_agents": replace(self, agent="").address(**more),
        }
