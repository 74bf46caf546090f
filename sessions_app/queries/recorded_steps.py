"""What was recorded of single steps of a stored run, as the forecast of a fork asks for it."""

from __future__ import annotations

from functools import cache
from typing import cast

from sessions_app import models
from sessions_app.core.fork.instructions import carried_instructions, system_prompts
from sessions_app.core.packed_nodes import Reference
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import RunStatus, Step
from sessions_app.mapping.load import load_facts
from sessions_app.queries.steps import GonePayload, chain_of, read_messages, step_body


class StoredSteps:
    """One for each look at a run: what was read is kept."""

    def __init__(self, run: models.Run) -> None:
        self._run = run
        self.status = cast(RunStatus, run.status)
        self.model: str | None = run.model
        self.replayable_to = run.verdict_step if run.verdict == "replayable_to_step" else None
        self.is_text_final = load_facts(run).agent.entry_point == "run_stream"
        self.step = cache(self._step)
        self.instructions = cache(self._instructions)
        self._messages: dict[Reference, JsonValue] = {}

    def _step(self, index: int) -> Step:
        return step_body(self._run, self._run.steps[index - 1])

    def message(self, index: int, position: int) -> JsonValue:
        chain = self._chain(index)
        return self._read(chain[position : position + 1])[0] if position < len(chain) else None

    def _instructions(self, index: int) -> str | None:
        """The system prompts are read where the newest message carries none."""
        chain = self._chain(index)
        carried = [carried_instructions(message) for message in self._read(chain[-1:])]
        if carried and carried[0] is not None:
            return carried[0]
        prompts = [prompt for message in self._read(chain) for prompt in system_prompts(message)]
        return "\n\n".join(prompts) or None

    def _chain(self, index: int) -> tuple[Reference, ...]:
        return chain_of(self._run, self._run.steps[index - 1].input_node).messages

    def _read(self, references: tuple[Reference, ...]) -> list[JsonValue]:
        unread = [each for each in dict.fromkeys(references) if each not in self._messages]
        for reference, payload in zip(unread, read_messages(self._run, unread), strict=True):
            self._messages[reference] = None if isinstance(payload, GonePayload) else payload.value
        return [self._messages[each] for each in references]
