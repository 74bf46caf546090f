"""Where a fork is going to stop, said before it is queued.

Nothing is said where that depends on the team's code, on a condition or on a live model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.changes import Answer, Change, NewInstructions, NewMessage, NewModel, NewModelAnswer
from sessions_app.core.fork.changes import NewToolResult as ToolResult
from sessions_app.core.fork.order import Order
from sessions_app.core.payload import JsonValue, Payload, sha256_hex
from sessions_app.core.step_summary import StepSummary

_TOLD = (ToolResult, NewModelAnswer, NewInstructions, NewModel, NewMessage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """What is going to happen, in a sentence. `asks` names a request to the model that nothing recorded answers."""

    words: str
    asks: int | None = None


def foretell(
    order: Order,
    steps: Sequence[StepSummary],
    main: set[int],
    result_of: Callable[[int], JsonValue],
    *,
    is_edited: bool = True,
) -> Foretold | None:
    """`main` are the steps of the agent's own loop; `result_of` reads what the tool of a step answered. Of a form that
    nobody has typed in yet (`is_edited` false) it says what an edit would lead to."""
    if order.agent is not None or order.samples is not None or not all(isinstance(c, _TOLD) for c in order.changes):
        return None
    return _Foreteller(order, [step for step in steps if step.index in main], len(steps), result_of).told(is_edited)


class _Foreteller:
    def __init__(self, order: Order, loop: list[StepSummary], last: int, result_of: Callable[[int], JsonValue]) -> None:
        self._order = order
        self._loop = loop
        self._last = last
        self._result_of = result_of
        self._answers = {c.step: c.answer for c in order.changes if isinstance(c, NewModelAnswer)}

    def told(self, is_edited: bool) -> Foretold | None:
        changes = [c for c in self._order.changes if not (is_edited and self._is_as_recorded(c))]
        if not changes:
            return Foretold(words="This is what was recorded: nothing would change.")
        first = min(changes, key=self._begins)
        if isinstance(first, ToolResult):
            return self._after_tool(first)
        if isinstance(first, NewModelAnswer):
            return self._answered(first.step, first.answer)
        return self._asked(self._begins(first))

    def _begins(self, change: Change) -> int:
        """The step from which on the fork is another run."""
        if isinstance(change, ToolResult | NewModelAnswer | NewMessage):
            return change.step
        return self._request_from(self._order.at_step or 1)

    def _is_as_recorded(self, change: Change) -> bool:
        if not isinstance(change, ToolResult) or change.failure is not None:
            return False
        recorded = next((step for step in self._loop if step.index == change.step), None)
        if recorded is None or recorded.has_error or recorded.result_key != _key(change.value):
            return False
        return same_json(self._result_of(change.step), change.value)  # the key knows no order of keys

    def _request_from(self, step: int) -> int:
        """The request to the model at a step or after it; past the recording's end it is one more step."""
        found = (each.index for each in self._loop if each.index >= step and each.kind == "model")
        return next(found, self._last + 1)

    def _after_tool(self, change: ToolResult) -> Foretold:
        if change.failure is not None and change.failure.crashes:
            return Foretold(words=f"The run ends at step {change.step} with this error.")
        return self._asked(self._request_from(change.step + 1))

    def _asked(self, step: int) -> Foretold:
        """A request that is not the recorded one."""
        if step in self._answers:
            return self._answered(step, self._answers[step])
        if self._order.on_difference == "live":
            return Foretold(words=f"From step {step} on, a live model answers.", asks=step)
        if self._order.on_difference == "play_on" and step <= self._last:
            words = (
                f"From step {step} on, the model gives its recorded answers, marked as recorded for another request."
            )
            return Foretold(words=words, asks=step)
        return Foretold(words=f"Stops at step {step}: the model's answer is unknown.", asks=step)

    def _answered(self, step: int, answer: Answer) -> Foretold:
        if not answer.tool_calls:
            return Foretold(words=f"The run ends at step {step}: an answer without tool calls is its outcome.")
        for place, call in enumerate(answer.tool_calls, start=1):
            if (call.name, _key(call.arguments)) not in self._recorded_calls(step):
                words = f"Stops at step {step + place}: no call of {call.name} with these arguments was recorded."
                return Foretold(words=words)
        return self._asked_after_calls()

    def _recorded_calls(self, after: int) -> set[tuple[str, bytes | None]]:
        later = (step for step in self._loop if step.index > after and step.kind == "tool" and step.result_key)
        return {(step.tool_name or step.name, step.arguments_key) for step in later}

    def _asked_after_calls(self) -> Foretold:
        if self._order.on_difference == "stop":
            return Foretold(words="Stops once these tools have answered: the model's next answer is unknown.")
        return Foretold(words="The tools return their recorded answers, and the model is asked again.")


def _key(value: JsonValue) -> bytes:
    """As `StepSummary.arguments_key` and `result_key` are made."""
    return bytes.fromhex(sha256_hex(Payload.of(value).canonical))[:16]
