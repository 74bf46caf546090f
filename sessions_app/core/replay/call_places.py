"""Where the step of a call stands, and where it would stand if it is not there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, nodes
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.hand_overs import is_openai_agents
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.refusal_words import refusal_in_words
from sessions_app.core.run import WAITING, ModelCall, Run, Step, ToolCall

MESSAGE = re.compile(r"messages\[(\d+)\]")
_PART = re.compile(r"messages\[(\d+)\]\.parts\[(\d+)\]")
_MANNER = (".part_kind", ".outcome", ".retry")


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldAnswer:
    """A recorded message tells what a call came to."""

    step: Step
    call: ToolCall
    part: JsonObject
    field: str
    """What of the part a path names, such as `.content.status`."""
    decided: JsonValue = None
    """What the run says of the call, where it was resumed with it."""


def answer_at(run: Run, history: History, path: str, *, before: int | None = None) -> ToldAnswer | None:
    """The answer that the messages hold at this path; None where they hold something else. An id may come again: it
    is told of its calls `before` that step in their order."""
    found = _PART.match(path)
    part = None if found is None else _part(history, int(found[1]), int(found[2]))
    if found is None or part is None:
        return None
    calls = [pair for pair in run.tool_calls if before is None or pair[0].index < before]
    of_id = [pair for pair in calls if pair[1].call_id == part["tool_call_id"]]
    if not of_id:
        return None
    step, call = of_id[-min(_told_since(run, history, int(found[1]), part), len(of_id))]
    decided = run.decided.get(call.call_id or "")
    return ToldAnswer(step=step, call=call, part=part, field=path[found.end() :], decided=decided)


def _told_since(run: Run, history: History, position: int, part: JsonObject) -> int:
    """How often this run tells of a call with the same id from that message on: a loop may keep the last answers of one
    id alone."""
    begins = max(position, run.prior.length if run.prior else 0)
    own = (node.message.value for node in nodes(history) if node.length > begins)
    requests = (message for message in own if isinstance(message, dict) and message.get("kind") == "request")
    parts = (each for message in requests for each in message.get("parts") or [] if isinstance(each, dict))
    told = [each for each in parts if each.get("tool_call_id") == part["tool_call_id"]]
    return max(1, len(told))


def is_how_it_ended(answer: ToldAnswer, replayed: JsonValue) -> bool:
    """Whether the difference is in the kind or the outcome of the answer. So is that in the words or in what stands
    beside them, where step and message have the same: an answer that ended so comes without. Where the step has the
    replayed outcome, and all that comes with it, the message alone tells another one."""
    if answer.field == ".outcome" and replayed == answer.call.outcome and _has_what_comes_with_it(answer):
        return False
    if answer.field.startswith(".retry") and same_json(_retry_of(answer), replayed):
        return False
    if answer.field.startswith(_MANNER):
        return True
    return any(
        given is not None and answer.field.startswith(f".{name}") and same_json(given.value, answer.part.get(name))
        for name, given in (("content", answer.call.result), ("metadata", answer.call.metadata))
    )


def of_call(answer: ToldAnswer, found: Divergence) -> Divergence:
    """A difference in what a request tells of a call, as one of the call's own field, where it has one."""
    name = _FIELD.match(answer.field)
    own = _OF_CALLS.get(name[1]) if name else None
    if name is None or own is None:
        return found
    here = replace(found, path=own + answer.field[name.end() :])
    if here.path != "result":
        return here
    return replace(here, recorded=refusal_in_words(found.recorded), replayed=refusal_in_words(found.replayed))


_FIELD = re.compile(r"\.(\w+)")
_OF_CALLS = {"content": "result", "metadata": "metadata", "outcome": "outcome", "retry": "retry"}
"""Fields of an answer in a message, and of the call."""


def _retry_of(answer: ToldAnswer) -> JsonValue:
    """What the step itself says of its retry, at the field that differs."""
    name = answer.field.removeprefix(".retry").removeprefix(".")
    return (answer.call.retry or {}).get(name) if name else answer.call.retry


def _has_what_comes_with_it(answer: ToldAnswer) -> bool:
    """A recorder writes an error, a retry, or whether the tool ran, of what did not go well and of nothing else. Of a
    call with which the run was resumed, the run says the outcome as well."""
    step, call = answer.step, answer.call
    if answer.decided is not None and answer.decided == call.outcome:
        return True
    told = step.error is not None or "tool_ran" in step.extra
    match call.outcome:
        case "success":
            return not told and call.retry is None
        case "failed":
            return told and call.retry is None
        case "retried":
            return call.retry is not None
    return False


def _part(history: History, position: int, number: int) -> JsonObject | None:
    """A part that the loop wrote."""
    message: JsonValue = next((node.message.value for node in nodes(history) if node.length == position + 1), None)
    parts = message.get("parts") or [] if isinstance(message, dict) and message.get("kind") == "request" else []
    part = parts[number] if number < len(parts) else None
    return part if isinstance(part, dict) and isinstance(part.get("tool_call_id"), str) else None


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
