"""Where the step of a call stands, and where it would stand if it is not there."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.core.history import nodes
from sessions_app.core.payload import JsonValue
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.run import WAITING, ModelCall, Run


def place_without_step(run: Run, answer: int, asked: Sequence[JsonValue], call_id: JsonValue) -> int:
    """The index that a step of this call would have: `asked` are the ids of all calls of the answer, in their order.

    Pydantic AI's recorder writes them in that order. The OpenAI Agents SDK first runs what needs nobody, and then
    hands over what waits, as all calls of one tool do.
    """
    if not is_openai_agents(run):
        return answer + 1 + asked.index(call_id)
    siblings = [(step, call) for step, call in run.tool_calls if step.index > answer and call.call_id in asked]
    later = asked[asked.index(call_id) + 1 :]
    before = later if _was_answered(run, call_id) else ()
    waiting = {call.tool_name for _, call in siblings if call.outcome in WAITING}
    if _name_of(run, answer, call_id) in waiting:
        following = [step.index for step, call in siblings if call.outcome in WAITING and call.call_id in later]
    else:
        following = [step.index for step, call in siblings if call.outcome in WAITING or call.call_id in before]
    return min(following) if following else max((step.index for step, _ in siblings), default=answer) + 1


def _name_of(run: Run, answer: int, call_id: JsonValue) -> JsonValue:
    """The tool that the answer asks for with this id."""
    call = run.steps[answer - 1].call if answer else None
    response = call.response.value if isinstance(call, ModelCall) and call.response else {}
    parts = [part for part in response.get("parts") or [] if part.get("tool_call_id") == call_id]
    return parts[0].get("tool_name") if parts else None


def _was_answered(run: Run, call_id: JsonValue) -> bool:
    """Whether a message tells what the call gave: then it did not wait."""
    last = run.final or next((call.history for _, call in reversed(run.model_calls) if call.history), None)
    messages = (node.message.value for node in nodes(last)) if last is not None else ()
    parts = (part for message in messages if isinstance(message, dict) for part in message.get("parts") or [])
    answers = (part for part in parts if isinstance(part, dict) and part.get("part_kind") == "tool-return")
    return any(part.get("tool_call_id") == call_id for part in answers)
