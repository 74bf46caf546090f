"""How often the loop may retry, read from the recording.

Budgets stand in the agent's facts when a recorder wrote them, else in the retries themselves
(`max_retries` beside each attempt, in the messages or in the step of the call). Where neither says
anything, the budget must not be what ends a replay, so it is generous.
"""

from __future__ import annotations

from sessions_app.core.history import messages
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, last_history

_GENEROUS = 50


class Budgets:
    """Retry budgets of a run's tools and of its output."""

    def __init__(self, run: Run) -> None:
        self._by_tool: JsonObject = dict(run.agent.tool_retries or {})
        self._output = run.agent.output_retries
        self._seen: dict[str | None, int] = {}
        self._of_unknown: int | None = None
        for message in messages(last_history(run)):
            self._read(message.value)
        for _, call in run.tool_calls:
            self._note(call.tool_name, call.retry)

    def of_tool(self, name: str) -> int:
        recorded = self._by_tool.get(name)
        return recorded if isinstance(recorded, int) else self._seen.get(name, self.default)

    @property
    def of_output(self) -> int:
        return self._output if self._output is not None else self._seen.get(None, self.default)

    @property
    def default(self) -> int:
        """For tools that were never retried, and for calls of tools that do not exist, which tell of it exactly."""
        return self._of_unknown if self._of_unknown is not None else max(self._seen.values(), default=_GENEROUS)

    def _read(self, message: JsonValue) -> None:
        parts = message.get("parts") if isinstance(message, dict) else None
        for part in parts or []:
            if isinstance(part, dict):
                self._note(part.get("tool_name"), part.get("retry"))

    def _note(self, name: str | None, retry: JsonValue) -> None:
        if isinstance(retry, dict) and isinstance(retry.get("max_retries"), int):
            self._seen[name] = retry["max_retries"]
            if retry.get("cause") == "unknown_tool":
                self._of_unknown = retry["max_retries"]
