"""The state of a team's own agent in a replay: given to its code at the start, and taken after each step."""

from __future__ import annotations

from typing import Any

from sessions_app.agents.gate import plain
from sessions_app.agents.registry import OwnAgent
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.observed import States
from sessions_app.core.run import StateChange
from sessions_app.core.state import diff_state


class OwnState:
    """One for each replay. `deps` are what the agent's run is given."""

    def __init__(self, own: OwnAgent, given: JsonValue, *, has_run_tools: bool) -> None:
        """`given` is the recorded state that it begins with; None where there is none."""
        is_given = own.deps_of_state is not None and given is not None
        self.deps: Any = own.deps_of_state(given) if own.deps_of_state is not None and is_given else own.deps
        self._read = own.state_of_deps
        self._has_run_tools = has_run_tools
        self.first = self.last = self._now()

    @property
    def states(self) -> States:
        """Frozen tools change nothing, so what they changed then is carried over."""
        if self._read is not None:
            return "taken"
        return "unknown" if self._has_run_tools else "carried"

    def change(self) -> StateChange | None:
        """What has happened to the state since this was asked last; None for nothing."""
        last, self.last = self.last, self._now()
        operations = diff_state(last, self.last)
        return StateChange(after=tuple(operations)) if operations else None

    def _now(self) -> JsonValue:
        return None if self._read is None else plain(self._read(self.deps))
