"""Where a fork is going to stop, said before it is queued.

Nothing is said where that depends on the team's code, on a condition or on a live model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sessions_app.core.compare.strict import same_json
from sessions_app.core.fork.answering import is_as_recorded
from sessions_app.core.fork.changes import Answer, Change, NewInstructions, NewMessage, NewModel, NewModelAnswer
from sessions_app.core.fork.changes import NewToolResult as ToolResult
from sessions_app.core.fork.decisions import HELD_BACK, is_held_back
from sessions_app.core.fork.order import Order
from sessions_app.core.fork.plan import edited_message
from sessions_app.core.fork.written_answers import says
from sessions_app.core.payload import JsonObject, JsonValue, Payload, sha256_hex
from sessions_app.core.run import ATTEMPT, WAITING, Fixture, ModelCall, RunStatus, Step, ToolCall, is_answered_by_tool
from sessions_app.core.step_summary import StepSummary

_TOLD = (ToolResult, NewModelAnswer, NewInstructions, NewModel, NewMessage)


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """What is going to happen, in a sentence. `asks` names a request to the model that nothing recorded answers."""

    words: str
    asks: int | None = None


class RecordedSteps(Protocol):
    """What was recorded, read where it is needed."""

    status: RunStatus
    """How the run ended."""
    model: str | None
    replayable_to: int | None
    """The last step that a replay comes to, as the recording was judged; None for its end."""
    is_text_final: bool
    """Whether the first text that came was the output, whatever was called beside it (`run_stream`)."""

    def step(self, index: int) -> Step:
        """Of a request without its messages."""

    def instructions(self, index: int) -> str | None:
        """Those of the request at this step."""

    def message(self, index: int, position: int) -> JsonValue:
        """One of the messages of the request at this step; None where it is gone."""


def foretell(
    order: Order, steps: Sequence[StepSummary], main: set[int], recorded: RecordedSteps, *, is_edited: bool = True
) -> Foretold | None:
    """`main` are the steps of the agent's own loop. Of a form that nobody has typed in yet (`is_edited` false) it says
    what an edit would lead to."""
    if order.agent is not None or order.samples is not None or not all(isinstance(c, _TOLD) for c in order.changes):
        return None
    return _Foreteller(order, steps, main, recorded).told(is_edited)


class _Foreteller:
    def __init__(self, order: Order, steps: Sequence[StepSummary], main: set[int], recorded: RecordedSteps) -> None:
        self._order = order
        self._steps = steps
        self._loop = [step for step in steps if step.index in main]
        self._last = len(steps)
        self._recorded = recorded
        self._answers = {c.step: c.answer for c in order.changes if isinstance(c, NewModelAnswer)}

    def told(self, is_edited: bool) -> Foretold | None:
        changes = [c for c in self._order.changes if not (is_edited and self._is_as_recorded(c))]
        first = min(changes, key=lambda change: self._begins(change, is_edited), default=None)
        limit = self._recorded.replayable_to
        if limit is not None and first is not None and self._begins(first, is_edited) > limit:
            words = f"The recording can be replayed to step {limit} only: what comes behind it is not known."
            return Foretold(words=words)
        failed = self._failed_request()
        if failed is not None and (first is None or failed < self._begins(first, is_edited)):
            return self._stops(failed)
        if first is None:
            return Foretold(words="This is what was recorded: nothing would change.")
        if isinstance(first, ToolResult):
            return self._after_tool(first)
        if isinstance(first, NewModelAnswer):
            return self._answered(first.step, first.answer)
        return self._asked(self._begins(first, is_edited))

    def _failed_request(self) -> int | None:
        """A fork that begins at a request that failed is there to get past it."""
        at = self._order.at_step or 1
        found = next((step for step in self._loop if step.index >= at and step.kind in ("model", "tool")), None)
        is_failed = found is not None and found.kind == "model" and found.result_key is None
        return found.index if found is not None and is_failed and found.index not in self._answers else None

    # --- what changes

    def _begins(self, change: Change, is_edited: bool) -> int:
        """The step from which on the fork is another run."""
        if isinstance(change, ToolResult | NewModelAnswer | NewMessage):
            return change.step
        asked = self._request_from(self._order.at_step or 1)
        if not is_edited or not isinstance(change, NewInstructions | NewModel):
            return asked
        return next((step for step in self._requests() if not self._is_asked_so(step, change)), asked)

    def _requests(self) -> list[int]:
        """From the fork's step on."""
        return [each.index for each in self._loop if each.index >= (self._order.at_step or 1) and each.kind == "model"]

    def _is_as_recorded(self, change: Change) -> bool:
        if isinstance(change, NewInstructions | NewModel):
            requests = self._requests()
            return all(self._is_asked_so(step, change) for step in requests) and bool(requests)
        if isinstance(change, NewMessage):
            message = self._recorded.message(change.step, change.index)
            return message is not None and same_json(edited_message(change.value, message), message)
        if not isinstance(change, ToolResult | NewModelAnswer):
            return False
        step = self._recorded.step(change.step)
        call = step.call
        if isinstance(change, NewModelAnswer):
            return isinstance(call, ModelCall) and call.response is not None and says(call.response, change.answer)
        return isinstance(call, ToolCall) and is_as_recorded(change, Fixture(step=0, call=call, error=step.error))

    def _is_asked_so(self, index: int, change: NewInstructions | NewModel) -> bool:
        if isinstance(change, NewInstructions):
            return self._recorded.instructions(index) == change.value
        call = self._recorded.step(index).call
        if not isinstance(call, ModelCall):
            return False
        settings = call.settings.value if call.settings and isinstance(call.settings.value, dict) else {}
        is_same_model = change.model in (None, call.model or self._recorded.model)
        return is_same_model and same_json(settings, {**settings, **(change.settings or {})})

    # --- what follows

    def _request_from(self, step: int) -> int:
        """The request to the model at a step or after it; past the recording's end it is one more step."""
        found = (each.index for each in self._loop if each.index >= step and each.kind == "model")
        return next(found, self._last + 1)

    def _is_over(self, changed: int | None) -> bool:
        """Whether the loop asks nothing more behind the last step: the run came to an output, or waits for somebody
        beside the call whose answer is changed."""
        last = max((step.index for step in self._loop if step.kind == "model"), default=0)
        behind = (step.index for step in self._loop if step.index > last and step.index != changed)
        waits = any(self._waits(index, last) for index in behind)
        return waits or (self._recorded.status == "ok" and not self._is_ended_by_tools(last))

    def _is_ended_by_tools(self, asked: int) -> bool:
        """Whether the last answer asked for tools alone, and something that is not rebuilt ended the run there."""
        calls = [call for _, call in self._calls_behind(asked)]
        return bool(calls) and not self._recorded.is_text_final and not any(call.is_output for call in calls)

    def _calls_behind(self, asked: int) -> list[tuple[int, ToolCall]]:
        """What the answer of this request asked for, without attempts that were made again."""
        until = self._request_from(asked + 1)
        steps = [self._recorded.step(each.index) for each in self._loop if asked < each.index < until]
        made = (step for step in steps if ATTEMPT not in step.extra)
        return [(step.index, step.call) for step in made if isinstance(step.call, ToolCall)]

    def _waits(self, index: int, asked: int) -> bool:
        call, asking = self._recorded.step(index).call, self._recorded.step(asked).call if asked else None
        is_asked = isinstance(asking, ModelCall) and isinstance(call, ToolCall) and is_held_back(call, asking)
        return is_asked or (isinstance(call, ToolCall) and call.outcome in WAITING)

    def _had_error(self, changed: int | None) -> bool:
        return changed is not None and self._steps[changed - 1].has_error

    def _after_tool(self, change: ToolResult) -> Foretold:
        if change.failure is not None and change.failure.crashes:
            return Foretold(words=f"The run ends at step {change.step} with this error.")
        beside = self._unanswered_beside(change.step)
        if beside is not None:
            return beside
        asked = self._request_from(change.step + 1)
        return self._asked(asked, left_out=self._left_out(change.step, asked), changed=change.step)

    def _unanswered_beside(self, changed: int) -> Foretold | None:
        """A tool that ended the run does so again, and one that was interrupted then has no answer now."""
        asked = max((each.index for each in self._loop if each.index < changed and each.kind == "model"), default=0)
        beside = [(step, call) for step, call in self._calls_behind(asked) if step != changed]
        if any(call.outcome == "crashed" for _, call in beside):
            return Foretold(words="The run ends with its error again.")
        for step, call in beside:
            if call.outcome == "interrupted":
                return Foretold(words=f"Stops at step {step}: no answer of {call.tool_name} was recorded.")
        return None

    def _left_out(self, changed: int, until: int) -> int:
        """Steps that the fork does not have: what ran inside of the tool then, and beside the loop behind it."""
        around = {step.index: self._tool_around(step) for step in self._steps[changed : until - 1]}
        loop = {step.index for step in self._loop if step.kind in ("model", "tool")}
        return sum(index not in loop and tool in (None, changed) for index, tool in around.items())

    def _tool_around(self, step: StepSummary) -> int | None:
        """The tool of the loop inside of which it ran."""
        while step.parent is not None:
            step = self._steps[step.parent - 1]
            if step.kind == "tool" and step in self._loop:
                return step.index
        return None

    def _asked(self, step: int, *, left_out: int = 0, changed: int | None = None) -> Foretold:
        """A request that is not the recorded one; behind a tool's answer that was `changed`."""
        if step in self._answers:
            return self._answered(step, self._answers[step])
        if step > self._last and self._is_over(changed):
            return Foretold(words="The run ends as it did: no request to the model follows.")
        if step > self._last and self._recorded.status == "error" and not self._had_error(changed):
            words = f"The run ends with its error again, or stops at step {step}: the model's answer is unknown."
            return Foretold(words=words)
        if self._order.on_difference == "live":
            return Foretold(words=f"From step {step} on, a live model answers.", asks=step)
        if self._order.on_difference == "play_on" and step <= self._last:
            words = (
                f"From step {step} on, the model gives its recorded answers, marked as recorded for another request."
            )
            return Foretold(words=words, asks=step)
        return self._stops(step, left_out=left_out)

    def _stops(self, step: int, *, left_out: int = 0) -> Foretold:
        place = f"{step} (step {step - left_out} of the fork)" if left_out else str(step)
        return Foretold(words=f"Stops at step {place}: the model's answer is unknown.", asks=step)

    def _answered(self, step: int, answer: Answer) -> Foretold:
        parameters = self._parameters(step)
        if not answer.tool_calls:
            return self._text_given(step, parameters)
        outputs = {tool.get("name") for tool in parameters.get("output_tools") or []}
        if any(call.name in outputs for call in answer.tool_calls):
            return Foretold(words="The run ends if the output is accepted; otherwise the model is asked again.")
        recorded, offered = self._recorded_calls(step), self._offered(step)
        waiting = next((call.name for call in answer.tool_calls if offered.get(call.name) in HELD_BACK), None)
        if waiting is not None:
            return Foretold(words=f"The run waits for a decision or a result from outside: {waiting} needs one.")
        for place, call in enumerate(answer.tool_calls, start=1):
            asked = call.name, _key(call.arguments)
            if recorded[asked] == 0 and call.name in offered:
                words = f"Stops at step {step + place}: no call of {call.name} with these arguments was recorded."
                return Foretold(words=words)
            recorded[asked] -= 1
        if answer.text and self._recorded.is_text_final:
            return Foretold(words="The run ends once these tools have answered: the text beside them is its outcome.")
        return self._asked_after_calls()

    def _text_given(self, step: int, parameters: JsonObject) -> Foretold:
        """A text is the outcome where the model was asked for one, and nothing reads it."""
        is_plain = parameters.get("output_mode") in (None, "text") or parameters.get("allow_text_output")
        is_asked = is_plain and not parameters.get("output_object")
        if is_asked and (parameters or not self._has_output_calls()):
            return Foretold(words=f"The run ends at step {step}: an answer without tool calls is its outcome.")
        return Foretold(
            words=f"The run ends at step {step} if this text is accepted as output; otherwise the model is asked again."
        )

    def _has_output_calls(self) -> bool:
        """Whether a call carried an output, where the record does not say what the model was asked for."""
        calls = (self._recorded.step(step.index).call for step in self._loop if step.kind == "tool")
        return any(isinstance(call, ToolCall) and call.is_output for call in calls)

    def _parameters(self, step: int) -> JsonObject:
        call = self._recorded.step(step).call
        value = call.parameters.value if isinstance(call, ModelCall) and call.parameters else None
        return value if isinstance(value, dict) else {}

    def _offered(self, step: int) -> dict[str, JsonValue]:
        """Tools that the loop knows there, with their kinds; it refuses calls of others itself."""
        call = self._recorded.step(step).call
        tools = [tool.value for tool in call.tools or ()] if isinstance(call, ModelCall) else []
        told = {str(tool.get("name")): tool.get("kind") for tool in tools}
        return told or {step.tool_name or step.name: None for step in self._loop if step.kind == "tool"}

    def _recorded_calls(self, after: int) -> Counter[tuple[str, bytes | None]]:
        """Calls with an end that a tool came to."""
        later = (step for step in self._loop if step.index > after and step.kind == "tool")
        ended = ((step, self._recorded.step(step.index).call) for step in later)
        return Counter(
            (step.tool_name or step.name, step.arguments_key)
            for step, call in ended
            if isinstance(call, ToolCall) and is_answered_by_tool(call) and call.outcome not in WAITING
        )

    def _asked_after_calls(self) -> Foretold:
        if self._order.on_difference == "stop":
            return Foretold(words="Stops once these tools have answered: the model's next answer is unknown.")
        return Foretold(words="The tools return their recorded answers, and the model is asked again.")


def _key(value: JsonValue) -> bytes:
    """As `StepSummary.arguments_key` and `result_key` are made."""
    return bytes.fromhex(sha256_hex(Payload.of(value).canonical))[:16]
