"""The state of a team's own agent in a replay: given to its code at the start, and taken after each step."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from sessions_app.agents.own_code.gate import plain
from sessions_app.agents.own_code.registry import OwnAgent
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.observed import StateLeft, States
from sessions_app.core.run import StateChange
from sessions_app.core.state import diff_state


class NoStateToBeginWith(BaseException):
    """The registration makes the dependencies of a state, and the run has none."""

    def __init__(self) -> None:
        super().__init__(
            "The registered agent makes its dependencies of a state (deps_of_state), and no state of this run was "
            "recorded. Record with install(state=…), or register deps to begin with."
        )


class OwnState:
    """One for each replay. `deps` are what the agent's run is given."""

    def __init__(self, own: OwnAgent, given: JsonValue, *, has_run_tools: bool) -> None:
        """`given` is the recorded state that it begins with; None where there is none. Raises `NoStateToBeginWith`."""
        self.deps: Any = own.deps
        if own.deps_of_state is not None:
            if given is None and own.deps is None:
                raise NoStateToBeginWith
            # A copy: the team's tools may change what they are given.
            self.deps = own.deps_of_state(deepcopy(given)) if given is not None else own.deps
        self._read = own.state_of_deps
        self._has_run_tools = has_run_tools
        self.first = self._last = self._now()
        self._taken = 0

    @property
    def states(self) -> States:
        """Frozen tools change nothing, so what they changed then is carried over."""
        if not self._has_run_tools:
            return "carried"
        return "unknown" if self._read is None else "taken"

    def taken(self) -> JsonObject:
        """The state of a request or call that has just ended, and what has happened to it since the one before; nothing
        where the states are not taken."""
        if self.states != "taken":
            return {}
        last, self._last = self._last, self._now()
        left = StateLeft(order=self._taken, value=self._last)
        self._taken += 1
        operations = diff_state(last, self._last)
        return {"left": left, "state": StateChange(after=tuple(operations)) if operations else None}

    def _now(self) -> JsonValue:
        return None if self._read is None else plain(self._read(self.deps))
