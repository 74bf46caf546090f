"""Where a replay with frozen tools differs, and nobody knows whether a tool that did not run is why."""

from __future__ import annotations

import re

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, messages
from sessions_app.core.judge.reading import main_models, object_of
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.changes_told import NEW_TOOLS
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, fixtures

_OF_TOOLS = ("parameters.function_tools", "parameters.introduced_tool_names")
_VALUE = re.compile(r"(?:parameters\.(?P<parameter>\w+)|settings)\b")
_MESSAGE = re.compile(r"messages\[(?P<message>\d+)\](?:\.parts\[(?P<part>\d+)\])?(?P<rest>.*)")
_OF_CODE = ("system-prompt", "user-prompt")
"""Kinds of parts that code may put into a history."""
_FEEDBACK = "retry-feedback"


def changed_by_frozen_tool(run: Run, found: Divergence | None) -> Reason | None:
    """Why a replay in which no tool ran ends where the recorded request has something else of the team's code than the
    one before it, such as other instructions: a tool that was called in between may have written what that code
    reads. What was the same in both, and is another today, no tool has changed."""
    models = main_models(run)
    place = next((at for at, (step, _) in enumerate(models) if found is not None and step.index == found.step), 0)
    step = models[place][0] if place else None
    before = next((pair for pair in reversed(models[:place]) if step and _agent(pair[0]) == _agent(step)), None)
    if found is None or step is None or before is None:
        return None
    names = _not_run(run, after=before[0].index, before=step.index)
    changed = _changed(found, before[1], models[place][1]) if names else None
    return None if changed is None else _reason(run, step, changed, names)


def possible_cause(run: Run, found: Divergence | None) -> str | None:
    """Of a difference at a call, or in what a check of the output told the model: checks and hooks may read what a tool
    before them has written. Nothing in the recording tells, so it stays a difference, and the tool is named beside."""
    at = found.step if found is not None and found.step is not None else 0
    step = run.steps[at - 1] if 0 < at <= len(run.steps) else None
    if found is None or step is None or not (isinstance(step.call, ToolCall) or _is_of_check(found, step.call)):
        return None
    names = _not_run(run, after=0, before=step.index)
    return f"an earlier call ({names}) may have changed what your code reads, and no tool ran" if names else None


def _not_run(run: Run, *, after: int, before: int) -> str:
    """The tools that were called between these steps, each once."""
    between = (each for each in fixtures(run) if after < each.step < before and not each.ended_before_tool)
    called = (each.call.tool_name for each in between if "handoff" not in run.steps[each.step - 1].extra)
    return ", ".join(dict.fromkeys(called))


def _is_of_check(found: Divergence, call: object) -> bool:
    """Whether it is in what a check of the output told the model."""
    place, history = _MESSAGE.match(found.path), call.history if isinstance(call, ModelCall) else None
    if place is None or history is None or int(place["message"]) != history.length - 1:
        return False
    return any(part.get("part_kind") == _FEEDBACK for part in object_of(history.message).get("parts") or [])


def _agent(step: Step) -> JsonValue:
    return step.extra.get("agent")


def _changed(found: Divergence, before: ModelCall, call: ModelCall) -> str | None:
    """What of the recorded requests is not the same, where today's differs."""
    if _is_of_tools(found):
        return _other_tools(before, call)
    value, message = _VALUE.match(found.path), _MESSAGE.match(found.path)
    if value is not None:
        return _other_value(value["parameter"], before, call)
    if message is None or before.history is None or call.history is None:
        return None
    if message["rest"].startswith(".instructions"):
        is_other = _instructions(before.history) != _instructions(call.history)
        return "has other instructions than the one before it" if is_other else None
    return _other_words(found, message, before.history, call.history)


def _is_of_tools(found: Divergence) -> bool:
    sides = (side for side in (found.recorded, found.replayed) if isinstance(side, dict))
    return found.path.startswith(_OF_TOOLS) or any(side.get("part_kind") == NEW_TOOLS for side in sides)


def _other_tools(before: ModelCall, call: ModelCall) -> str | None:
    one, other = _tools(before), _tools(call)
    new, changed = sorted(one.keys() ^ other.keys()), [name for name in one if one[name] != other.get(name)]
    if new:
        return f"offers other tools than the one before it: {', '.join(new)}"
    return f"defines tools otherwise than the one before it: {', '.join(changed)}" if changed else None


def _tools(call: ModelCall) -> dict[str, JsonObject]:
    return {str(tool.value.get("name")): tool.value for tool in call.tools or ()}


def _other_value(parameter: str | None, before: ModelCall, call: ModelCall) -> str | None:
    name = parameter or "settings"
    one, other = ({**object_of(each.parameters), "settings": object_of(each.settings)} for each in (before, call))
    return None if same_json(one.get(name), other.get(name)) else f"has other {name} than the one before it"


def _instructions(history: History) -> JsonValue:
    return object_of(history.message).get("instructions")


def _other_words(found: Divergence, place: re.Match[str], before: History, history: History) -> str | None:
    """A prompt that code put into the history of one of the two requests, and not of the other. The newest message is
    the loop's own, and the judge says what code put there."""
    told, at = [words for message in messages(before) for words in _prompts(message.value)], int(place["message"])
    recorded = messages(history)[at].value if at < history.length - 1 else None
    if any(words not in told for words in _prompts(recorded, place["part"])):
        return "has a prompt that the one before it did not have"
    today = found.replayed if place["part"] is None else {"parts": [found.replayed]}
    if not place["rest"] and any(words in told for words in _prompts(today)):
        return "lacks a prompt that the one before it had"
    return None


def _prompts(message: JsonValue, part: str | None = None) -> list[tuple[JsonValue, JsonValue]]:
    """Kind and content of those of a message, or of its part at this place: code may put some into a history."""
    parts = (message.get("parts") if isinstance(message, dict) else None) or []
    here = parts if part is None else parts[int(part) :][:1]
    prompts = (each for each in here if isinstance(each, dict) and each.get("part_kind") in _OF_CODE)
    return [(each["part_kind"], each.get("content")) for each in prompts]


def _reason(run: Run, step: Step, changed: str, names: str) -> Reason:
    message = (
        f"The recorded request of step {step.index} {changed}. A call in between may have changed that ({names}), "
        "and no tool ran in this replay."
    )
    return reason_at(run, "tool_not_run", message, step)
