"""What the functions of tools were given, where the team's own checks, hooks and toolsets stand in front of them.

The recorder says it of each step where it is not what the model asked with (`ran_with`), and of what it cannot say
(`ran_with_unknown`).
"""

from __future__ import annotations

from collections.abc import Mapping

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import OPENAI_AGENTS, Run, Step, ToolCall, is_answered_by_tool, tool_ran

TOLD = "recorder.ran_with"
"""Field of a run whose recorder hears what tools are given: where a step says nothing, that is what the model sent."""
FIELDS = ("ran_with", "ran_with_unknown")
APPROVED = "approved_arguments"
"""Field of a step: the arguments that whoever approved the call had it run with. A replay approves it with the same."""
OF_APPROVAL = (APPROVED, "approved_tool")
"""Those fields of a step that tell what whoever decided on the call had run in place of what the model asked for."""


def is_told(run: Run) -> bool:
    return run.extra.get(TOLD) is True


def said_of(step: Step) -> JsonObject:
    """What a step of a run says whose recorder hears it."""
    return {name: step.extra[name] for name in FIELDS if name in step.extra}


def told_of(step: Step) -> JsonObject:
    """What a recorder says of a call that did not simply get the answer of its tool."""
    return {name: step.extra[name] for name in ("tool_ran", "waits_with") if name in step.extra}


def has_run(run: Run, step: Step) -> bool | None:
    """Whether the tool of an ended call began; None where that is not known."""
    said = tool_ran(step)
    if said is None and _is_of_sdk_recorder(run) and isinstance(step.call, ToolCall):
        return _has_run_in_sdk(step, step.call)
    if said is not None or not is_told(run) or not isinstance(step.call, ToolCall):
        return said
    is_known = is_answered_by_tool(step.call) and not code_behind(said_of(step)) and "waited_for" not in step.extra
    is_given = step.call.call_id in run.decided
    return True if is_known and not is_given and step.call.outcome == "success" else None


def _is_of_sdk_recorder(run: Run) -> bool:
    return run.agent.framework == OPENAI_AGENTS and "recorder" in run.extra


def _has_run_in_sdk(step: Step, call: ToolCall) -> bool | None:
    """The recorder writes an outcome of a tool that began. One that a guardrail kept from it has an answer alone."""
    if "handoff" in step.extra or call.result is None:
        return None
    return False if call.outcome is None else True if call.outcome in ("success", "failed") else None


def both_given(asked: JsonValue, one: JsonObject, other: JsonObject) -> tuple[JsonValue, JsonValue] | None:
    """What a tool was given in two runs whose model asked with the same, as far as both say it; None where one of them
    does not."""
    if code_behind(one) or code_behind(other):
        return None
    unknown = {*unknown_arguments(one), *unknown_arguments(other)}
    return _without(one.get("ran_with", asked), unknown), _without(other.get("ran_with", asked), unknown)


def code_behind(said: JsonObject) -> list[str]:
    """The team's own code that may have given the tool something else, where nobody heard."""
    return _names(said, "behind")


def unknown_arguments(said: JsonObject) -> list[str]:
    """Those that are no JSON."""
    return _names(said, "arguments")


def _names(said: Mapping[str, JsonValue], kind: str) -> list[str]:
    unknown = said.get("ran_with_unknown")
    names = unknown.get(kind) if isinstance(unknown, dict) else None
    return [str(name) for name in names] if isinstance(names, list) else []


def _without(arguments: JsonValue, unknown: set[str]) -> JsonValue:
    if not isinstance(arguments, dict):
        return arguments
    return {name: value for name, value in arguments.items() if name not in unknown}
