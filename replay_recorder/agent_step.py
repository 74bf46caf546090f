"""A run inside a run: a step of the outer one, with a record of its own."""

from __future__ import annotations

from typing import Any

from replay_recorder.context import Place
from replay_recorder.writing.run_writer import RunWriter


class AgentStep:
    """The step of kind `agent` in the run around; nothing where there is none."""

    def __init__(self, parent: Place | None, run: RunWriter, *, name: str | None, **fields: Any) -> None:
        """`fields` are those of the step, such as `arguments`."""
        self._parent = parent
        if parent is not None:
            self._step = parent.run.begin(
                "agent", name=name or "agent", parent=parent.step, run_id=run.run_id, **fields
            )
            parent.run.inside[self._step] = self.end

    def end(self, **fields: Any) -> None:
        """Once: a run that is stopped ends the steps of those inside, which learn of it later."""
        if self._parent is not None and self._step in self._parent.run.inside:
            del self._parent.run.inside[self._step]
            self._parent.run.end(self._step, **fields)
