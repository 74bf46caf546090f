"""The agent's own state: snapshots of it in the recording, and an agent that can go back to one."""

from __future__ import annotations

import copy
import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from replay_recorder.context import Place, inside, place_for_step
from replay_recorder.fork_lock import ForkLock
from replay_recorder.guard import guard, logger
from replay_recorder.settings import Settings
from replay_recorder.tools.calls import written
from replay_recorder.tools.whole_file import write_whole
from replay_recorder.writing.json_patch import diff
from replay_recorder.writing.json_text import dumps, jsonable, name
from replay_recorder.writing.run_writer import RunWriter

EMPTY: Mapping[str, Any] = {
    "step_number": 0,
    "iteration_count": 0,
    "memory": [],
    "context_variables": {},
    "tool_results": [],
}
"""The state that a run begins with where nobody says another, and the shape of every later one."""
AUTOMATIC = "automatic snapshot"

# --- snapshots in the recording


class _History:
    """What was recorded of the state in one run. It does not know the run, which must be free to go."""

    def __init__(self) -> None:
        self.lock = ForkLock()
        self.snapshots: set[int] = set()
        """Indexes of the steps that are snapshots."""
        self.ended = 0
        """Steps that have ended and are no snapshots."""
        self._kept_results: Counter[str] = Counter()
        """Results that an agent kept, by the tool's name; each belongs to one tool step."""
        self._given: dict[str, Any] = dict(EMPTY)
        self._written: Any = None

    def begin(self, run: RunWriter, given: Mapping[str, Any]) -> None:
        """The state that the run found."""
        with self.lock:
            self._begin(run, given)

    def add(self, run: RunWriter, said: Mapping[str, Any], parent: int | None, given: Mapping[str, Any]) -> None:
        """Record the state as far as it changed; what is not given is as it was."""
        with self.lock:
            if self._written is None:
                self._begin(run, {})
            number = run.steps - run.inner_steps - len(self.snapshots)
            self._given |= {"step_number": number, "iteration_count": number, **given}
            before, after = self._written, _redacted(run, self._given)
            change = {"after": diff(before, after)}
            label = said["label"] or "snapshot"
            index = run.begin("other", name=label, parent=parent, snapshot=said, state=change)
            self.snapshots.add(index)
            self._written = after
        run.end(index)

    def add_result(self, run: RunWriter, tool_name: str, args: Any, result: Any, parent: int | None) -> None:
        """A tool step for a result that an agent keeps, unless the tool was recorded when it ran.

        Nobody has seen the call, so the step has no times.
        """
        with self.lock:
            self._kept_results[tool_name] += 1
            if run.tool_steps[tool_name] >= self._kept_results[tool_name]:
                return
            said = {"arguments": written(args), "result": written(result)}
            index = run.begin("tool", tool_name=tool_name, parent=parent, started_at=None, **said)
        run.end(index, duration_ms=None)

    def _begin(self, run: RunWriter, given: Mapping[str, Any]) -> None:
        self._given |= given
        self._written = _redacted(run, self._given)
        run.put(initial_state=self._written)


def _redacted(run: RunWriter, state: dict[str, Any]) -> Any:
    """A copy of the state as it may be written. A patch cannot be redacted: it would no longer fit."""
    return json.loads(dumps(run.redacted(state)))


_histories: WeakKeyDictionary[RunWriter, _History] = WeakKeyDictionary()
_lock = ForkLock()


def _history(run: RunWriter) -> _History:
    with _lock:
        return _histories.setdefault(run, _History())


def snapshot(
    label: str | None = None,
    *,
    memory: Any = None,
    context: Any = None,
    tool_results: Any = None,
    **more: Any,
) -> None:
    """Record the agent's state, as it is now, in the run that the code runs inside; outside one, do nothing.

    `more` are further keys of the state. What is not given is as it was at the last snapshot of the run.
    """
    _record(label, False, _state_of({"memory": memory, "context": context, "tool_results": tool_results, **more}))


def _state_of(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that are known, by their names in the state."""
    return {
        "context_variables" if key == "context" else key: value for key, value in facts.items() if value is not None
    }


def _record(label: str | None, is_automatic: bool, given: Mapping[str, Any]) -> None:
    with guard("snapshot"):
        place = place_for_step()
        if place is not None:
            _add(place, label, is_automatic, given)


def _add(place: Place, label: str | None, is_automatic: bool, given: Mapping[str, Any]) -> None:
    said = {"label": name(label), "automatic": is_automatic}
    # Copied: whatever is given may change before the next snapshot is compared with it.
    _history(place.run).add(place.run, said, place.step, json.loads(dumps(dict(given))))


def _record_result(tool_name: str, args: Any, result: Any) -> None:
    with guard("add_tool_result"):
        place = place_for_step()
        if place is not None:
            known = name(tool_name) or "tool"
            _history(place.run).add_result(place.run, known, args, result, place.step)


# --- snapshots that nobody asks for


def watch(run: RunWriter, settings: Settings) -> None:
    """Write down the state that the run begins with, and take snapshots after some of its steps, where the settings say
    how to get it."""
    if settings.state is None:
        return
    with guard("the state at the start of a run"):
        facts = _facts(settings)
        if facts is not None:
            _history(run).begin(run, facts)
    if settings.snapshot_every:
        run.on_step_end = lambda index: auto_snapshot(run, index, settings)


def _facts(settings: Settings) -> dict[str, Any] | None:
    """What the team's code says; it may call tools to find that, and they are no steps of the agent."""
    assert settings.state is not None
    with inside(None):
        said = settings.state()
    return None if said is None else dict(json.loads(dumps(_state_of(said))))


def auto_snapshot(run: RunWriter, index: int, settings: Settings) -> None:
    """A step has ended. Never raises; an agent that cannot say its state has no snapshot."""
    with guard("auto_snapshot"):
        number = _count_ended(_history(run), index)
        if number and number % settings.snapshot_every == 0:
            facts = _facts(settings)
            if facts is not None:
                _add(Place(run=run), AUTOMATIC, True, {"step_number": number, "iteration_count": number, **facts})


def _count_ended(history: _History, index: int) -> int:
    """How many steps have ended with this one; 0 for a snapshot, which does not count."""
    with history.lock:
        if index in history.snapshots:
            return 0
        history.ended += 1
        return history.ended


# --- an agent that keeps its state


@dataclass
class AgentStateSnapshot:
    """The agent's state after `step_number` tool results."""

    step_number: int
    memory: list[Any] = field(default_factory=list)
    context_variables: dict[str, Any] = field(default_factory=dict)
    tool_results: list[dict[str, Any]] = field(default_factory=list)
    iteration_count: int = 0
    label: str | None = None
    """What it was taken for; None for an automatic one."""

    def save(self, filepath: str | os.PathLike[str]) -> None:
        """As JSON; what JSON does not know is saved in its nearest form, bytes in base64, the rest by `str`."""
        facts = {key: value for key, value in asdict(self).items() if (key, value) != ("label", None)}
        write_whole(Path(filepath), json.dumps(jsonable(facts), indent=2, ensure_ascii=False, allow_nan=False))

    @classmethod
    def load(cls, filepath: str | os.PathLike[str]) -> AgentStateSnapshot:
        """Raises `ValueError` when the file holds no snapshot, and `OSError` when it cannot be read."""
        facts = json.loads(Path(filepath).read_text(encoding="utf-8"))
        known = {each.name for each in fields(cls)}
        if not isinstance(facts, dict) or "step_number" not in facts or not known.issuperset(facts):
            raise ValueError(f"{filepath} holds no snapshot: an object with step_number, and of {sorted(known)}.")
        return cls(**facts)


class StatefulAgent:
    """Keeps what an agent knows, and can go back to how it was.

    Snapshots are copies through and through: changing the agent's state changes none of them. Inside a recorded
    run they are recorded as well.
    """

    def __init__(self, agent: Any, name: str = "agent", snapshot_every: int = 5) -> None:
        """`snapshot_every`: tool results between automatic snapshots; 0 switches them off."""
        if snapshot_every < 0:
            raise ValueError(f"snapshot_every must not be negative and is {snapshot_every!r}.")
        self.agent = agent
        self.name = name
        self.snapshot_every = snapshot_every
        self.memory: list[Any] = []
        self.context: dict[str, Any] = {}
        self.tool_results: list[dict[str, Any]] = []
        self.step = 0
        self.snapshots: list[AgentStateSnapshot] = []

    def take_snapshot(self, label: str | None = None) -> AgentStateSnapshot:
        """Keep the state as it is now, and record it."""
        return self._keep(label, is_automatic=False)

    def restore_snapshot(self, snapshot: AgentStateSnapshot) -> str:
        """Go back; what came later is gone from the agent. Returns what was done, in words."""
        self.memory = _copied(snapshot.memory)
        self.context = _copied(snapshot.context_variables)
        self.tool_results = _copied(snapshot.tool_results)
        self.step = snapshot.step_number
        done = f"Restored to step {snapshot.step_number}"
        logger.info("%s: %s", self.name, done)
        return done

    def add_tool_result(self, tool_name: str, args: Any, result: Any) -> None:
        """Count a step, and keep what the tool answered. Inside a recorded run it is a tool step of that run, so that
        it stays in the record when the agent goes back."""
        self.step += 1
        _record_result(tool_name, args, result)
        self.tool_results.append(
            {"step": self.step, "tool": tool_name, "args": _copied(args), "result": _copied(result)}
        )
        if self.snapshot_every and self.step % self.snapshot_every == 0:
            self._keep(None, is_automatic=True)

    def _keep(self, label: str | None, *, is_automatic: bool) -> AgentStateSnapshot:
        kept = AgentStateSnapshot(
            step_number=self.step,
            memory=_copied(self.memory),
            context_variables=_copied(self.context),
            tool_results=_copied(self.tool_results),
            iteration_count=self.step,
            label=label,
        )
        self.snapshots.append(kept)
        state = {key: getattr(kept, key) for key in EMPTY}
        _record(AUTOMATIC if is_automatic else label, is_automatic, state)
        return kept


def _copied(value: Any) -> Any:
    """A copy that shares nothing; of what cannot be copied, such as an open connection, its nearest form in JSON."""
    try:
        return copy.deepcopy(value)
    except Exception:
        return jsonable(value)
