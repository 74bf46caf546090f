"""The run of a recorded function.

Whether the function needs a run of its own is known only later. Around an agent whose framework is recorded it
would say everything twice, and one question would be two runs in the session. So the run is opened when the
function has a step of its own to record, and else at its end, unless runs of agents inside have said it all. Until
then the code inside runs where the function itself was called: no run points to a parent that never comes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from replay_recorder.agent_step import AgentStep
from replay_recorder.context import Place, Surroundings, inside, place_for_step, surround, surroundings
from replay_recorder.fork_lock import ForkLock
from replay_recorder.guard import guard
from replay_recorder.recorder import Recorder
from replay_recorder.tools.calls import error_of
from replay_recorder.writing.json_text import JsonText
from replay_recorder.writing.run_writer import RunWriter, now


class FunctionScope:
    """One call of a recorded function, and where its code runs: `with scope:` around each of its turns.

    Nothing here raises.
    """

    def __init__(self, recorder: Recorder, name: str, facts: Mapping[str, Any], input: JsonText | None) -> None:
        """`name` of the agent; `facts` as `context()` takes them; `input` as it is recorded."""
        identity, self._outer = surroundings()
        self.max_output = recorder.settings.max_run_bytes
        self._recorder = recorder
        self._name = name
        self._input = input
        self._identity = identity.with_facts(facts)
        self._started_at, self._mark = now(), time.perf_counter()
        self._lock = ForkLock()
        self._is_decided = False
        self._is_over = False
        self._run: RunWriter | None = None
        self._agent_step: AgentStep | None = None
        self._inner: list[Mapping[str, Any]] = []
        """Summaries of runs that began inside before this one had a run itself."""
        self._session_id: str | None = None
        """Of the first run inside that has one, or of its own."""
        # A generator is left and entered again; what its code has set up must be there again.
        self._inside: Surroundings = (self._identity, self)
        self._outside: Surroundings = (identity, self._outer)

    def __enter__(self) -> None:
        self._outside = surroundings()
        surround(*self._inside)

    def __exit__(self, *error: object) -> None:
        self._inside = surroundings()
        surround(*self._outside)

    # --- as a `Scope`

    @property
    def session_id(self) -> str | None:
        if self._session_id is None and self._outer is not None and not isinstance(self._outer, Place):
            return self._outer.session_id
        return self._session_id

    def place(self) -> Place | None:
        if self._run is not None:
            return Place(run=self._run)
        return self._outer if self._outer is None or isinstance(self._outer, Place) else self._outer.place()

    def open_place(self) -> Place | None:
        run = self._opened()
        return None if run is None else Place(run=run)

    def note(self, session_id: str, run: Mapping[str, Any]) -> None:
        with self._lock:
            self._session_id = self._session_id or session_id
            if self._run is None:
                self._inner.append(run)

    # --- the run

    def _opened(self) -> RunWriter | None:
        """Its run; None when it cannot be recorded, which is tried once, and when the call ended without one."""
        with self._lock:
            if not self._is_decided and not self._is_over:
                self._is_decided = True
                with guard("function_began"):
                    self._open()
            return self._run

    def _open(self) -> None:
        with inside(self._outer):
            parent = place_for_step()
            run = self._recorder.begin(
                identity=self._identity, parent=parent, session_id=self.session_id, input=self._input
            )
        if run is not None:
            self._run = run
            self._session_id = run.session_id
            run.put(started_at=self._started_at)
            run.put_agent(name=self._name)
            fields = {"started_at": self._started_at, "arguments": self._input}
            self._agent_step = AgentStep(parent, run, name=self._name, **fields)
            for inner in self._inner:
                self._add(run, inner)

    def _add(self, run: RunWriter, inner: Mapping[str, Any]) -> None:
        """An earlier run inside, as a step; without a duration while it goes on."""
        index = run.begin("agent", started_at=inner["started_at"], run_id=inner["run_id"])
        if "status" in inner:
            run.end(index, duration_ms=inner["duration_ms"], error=inner["error"])

    # --- the end

    def answered(self, output: JsonText | None) -> None:
        self._end("ok", output, None)

    def failed(self, error: BaseException, output: JsonText | None = None) -> None:
        """`output` is what a stream had said by then. Cancelled or left half way, a call is cut off."""
        is_left = isinstance(error, GeneratorExit)
        self._end("error" if isinstance(error, Exception) else "cut_off", output, None if is_left else error_of(error))

    def _end(self, status: str, output: JsonText | None, error: Mapping[str, Any] | None) -> None:
        duration = round((time.perf_counter() - self._mark) * 1000, 3)
        with guard("function_ended"):
            run = self._opened() if self._is_needed(status, error) else None
            if run is None:
                self._hand_on()
            self._is_over = True
            if run is not None:
                with guard("function_parent"):
                    if self._agent_step is not None:
                        self._agent_step.end(duration_ms=duration, result=output, error=error)
                self._recorder.end(run, status, duration_ms=duration, output=output, error=error)

    def _is_needed(self, status: str, error: Mapping[str, Any] | None) -> bool:
        """Whether the runs inside have not said all there is to say."""
        if self._is_decided or not self._inner:
            return True
        return status != "ok" and not any(_ended_like(run, status, error) for run in self._inner)

    def _hand_on(self) -> None:
        """The runs inside are now runs inside what is around."""
        if self._outer is not None and not isinstance(self._outer, Place) and self._session_id is not None:
            for run in self._inner:
                self._outer.note(self._session_id, run)


def _ended_like(run: Mapping[str, Any], status: str, error: Mapping[str, Any] | None) -> bool:
    """Whether it has said already how the function ends; a cancelled one need not give the same reason."""
    return run.get("status") == status and (status == "cut_off" or run.get("error") == error)
