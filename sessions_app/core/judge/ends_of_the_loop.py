"""Errors by which Pydantic AI's loop ends a run by itself, and whether the recording leads to them.

A replay comes to such an error without any of the team's code, so it is evidence; and what the last answer asked for
beside it was never made, so nothing of it was lost.
"""

from __future__ import annotations

import re

from sessions_app.core.judge.last_calls import asked_last, calls_in, kinds_said, names_of_tools
from sessions_app.core.judge.reading import SeenMessage, is_of_recorder, main_models, object_of, seen_message, value_of
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.budgets import Budgets
from sessions_app.core.run import ErrorInfo, ModelCall, Run, Step, ToolCall

LIMIT_REACHED, UNEXPECTED = "UsageLimitExceeded", "UnexpectedModelBehavior"
CUT_CALL, CUT_ANSWER, FILTERED = "IncompleteToolCall", "OutputTokenLimitExceeded", "ContentFilterError"
OF_THE_LOOP = frozenset({LIMIT_REACHED, UNEXPECTED, CUT_CALL, CUT_ANSWER, FILTERED})

_CALLS = "tool_calls_limit"
_TOKENS = {
    "input_tokens_limit": ("input_tokens",),
    "output_tokens_limit": ("output_tokens",),
    "total_tokens_limit": ("input_tokens", "output_tokens"),
}
_OF_A_TOOL = re.compile(r"Tool '(.*)' exceeded max retries count of (\d+)")
"""The loop's words when a tool has refused once too often."""
_RETRIES_USED = re.compile(r"Exceeded maximum output retries \((\d+)\)")
_MAX_TOKENS = re.compile(r"Model token limit \((.+?)\)")


def ends_before_tools(run: Run, call: ModelCall, error: ErrorInfo) -> bool:
    """Whether the loop raises it in the place of the tools that were asked for last."""
    if error.type == LIMIT_REACHED:
        return _limit_in(error) != "request_limit"
    tool = _OF_A_TOOL.match(error.message or "")
    if error.type != UNEXPECTED or tool is None:
        return error.type in OF_THE_LOOP
    return any(one.tool_name == tool[1] and _is_refused_unmade(call, one) for _, one in asked_last(run))


def lack(run: Run, error: ErrorInfo) -> str | None:
    """What a replay would have to know to come to this error, and the recording does not say."""
    if error.type == LIMIT_REACHED:
        is_told = isinstance(_limits(run).get(_limit_in(error) or ""), int)
        return (
            None if is_told else "The usage limits of the run were not recorded, so a replay cannot reach this error."
        )
    if error.type == UNEXPECTED and _MAX_TOKENS.match(error.message or ""):
        return "The error is that of another version of Pydantic AI; a replay raises one of another type."
    if error.type == FILTERED and not is_of_recorder(run):
        return "The error repeats the model's answer as the library held it, which was not recorded."
    tool, output = (words.match(error.message or "") for words in (_OF_A_TOOL, _RETRIES_USED))
    is_other = tool is not None and Budgets(run).of_tool(tool[1]) != int(tool[2])
    if is_other or (output is not None and Budgets(run).of_output != int(output[1])):
        return f"How many retries the loop allows was not recorded{_UNREACHED}"
    return None


_UNREACHED = ", so a replay cannot reach this error."


def is_due(run: Run, call: ModelCall, error: ErrorInfo) -> bool:
    """Whether the loop, with what was recorded, raises this error behind the last answer and asks the model no more."""
    name = _limit_in(error)
    if name == "request_limit":
        return sum(call.response is not None for _, call in main_models(run)) >= int(_limits(run)[name])
    if name in _TOKENS:
        return _tokens(run, _TOKENS[name]) > int(_limits(run)[name])
    if error.type == FILTERED:
        return _finish_of(call) == "content_filter" and _says_nothing(call)
    if error.type == CUT_ANSWER:
        return _is_cut(call, error) and (_says_nothing(call) or (_ends_with_text(run, call) and _is_no_output(call)))
    if error.type == CUT_CALL:
        return _is_cut(call, error) and _gives_up_at_last_call(run, call)
    tool = _OF_A_TOOL.match(error.message or "")
    if tool is not None:
        return any(one.tool_name == tool[1] and _gives_up(run, call, step, one) for step, one in asked_last(run))
    return not _goes_on(run) and _has_used_retries(run, error)


def may_be_outcome(run: Run, call: ModelCall) -> bool:
    """Whether nothing but code of the team's could refuse the answer."""
    outputs = {each.call_id for _, each in run.tool_calls if each.is_output}
    if any(part.get("tool_call_id") in outputs and not _is_unreadable(part.get("args")) for part in calls_in(call)):
        return True
    return _ends_with_text(run, call) and not _is_no_output(call)


def may_be_taken(run: Run, call: ModelCall) -> bool:
    """Whether a loop that knows of no refusal takes the answer for the output, or one of its calls."""
    offered = object_of(call.parameters).get("output_tools")
    names = {tool.get("name") for tool in offered if isinstance(tool, dict)} if isinstance(offered, list) else set()
    asked = (part for part in calls_in(call) if part.get("tool_name") in names)
    return any(not _is_unreadable(part.get("args")) for part in asked) or may_be_outcome(run, call)


def _ends_with_text(run: Run, call: ModelCall) -> bool:
    """Whether the loop takes the text for the output: `run_stream` does so beside calls, and with an empty one."""
    is_stream = run.agent.entry_point == "run_stream"
    return "text" in kinds_said(call) and (is_stream or not (calls_in(call) or _says_nothing(call)))


# --- limits ------------------------------------------------------------------------------------


def _limit_in(error: ErrorInfo) -> str | None:
    """The limit that the library's words name."""
    if error.type != LIMIT_REACHED:
        return None
    found = re.search(r"\b(request_limit|tool_calls_limit|(?:input|output|total)_tokens_limit)\b", error.message or "")
    return found[1] if found else None


def _limits(run: Run) -> JsonObject:
    return run.agent.usage_limits or {}


def _tokens(run: Run, kinds: tuple[str, ...]) -> int:
    used = (object_of(call.response).get("usage") for _, call in main_models(run))
    counts = (each.get(kind) for each in used if isinstance(each, dict) for kind in kinds)
    return sum(count for count in counts if isinstance(count, int))


# --- answers that break off or say nothing -----------------------------------------------------


def _finish_of(call: ModelCall) -> JsonValue:
    return object_of(call.response).get("finish_reason")


def _is_cut(call: ModelCall, error: ErrorInfo) -> bool:
    """The error names the limit of the request's settings."""
    named = _MAX_TOKENS.match(error.message or "")
    limit = object_of(call.settings).get("max_tokens") or "provider default"
    return _finish_of(call) == "length" and named is not None and named[1] == str(limit)


def _says_nothing(call: ModelCall) -> bool:
    return kinds_said(call) <= {"text"} and not said_in(call)


def _is_no_output(call: ModelCall) -> bool:
    """A text where nothing but JSON can be the output. An empty one is an empty object to the loop."""
    parameters = object_of(call.parameters)
    is_schema = parameters.get("output_mode") in ("native", "prompted") or parameters.get("allow_text_output") is False
    return is_schema and said_in(call) != "" and not spells_json(call)


def said_in(call: ModelCall) -> str:
    """The text of an answer."""
    parts = seen_message(call.response, step=0).parts_of("text") if call.response else []
    return "".join(part["content"] for part in parts if isinstance(part.get("content"), str))


def spells_json(call: ModelCall) -> bool:
    return isinstance(Payload.of_text(said_in(call)).parsed, dict | list)


def _is_unreadable(arguments: JsonValue) -> bool:
    """No object, and no JSON text of one."""
    return isinstance(arguments, str) and arguments != "" and not isinstance(Payload.of_text(arguments).parsed, dict)


# --- retries -----------------------------------------------------------------------------------


def _goes_on(run: Run) -> bool:
    """Whether all that was asked for last has an answer that the model would be told."""
    asked = [call for _, call in asked_last(run)]
    return bool(asked) and all(call.result is not None and not _gave_up(call) for call in asked)


def _gave_up(call: ToolCall) -> bool:
    return call.outcome == "crashed" or _tries_left(call) == -1


def _tries_left(call: ToolCall) -> int | None:
    """How often the loop would let the tool refuse again; -1 where it gave up. None where no refusal was recorded."""
    attempt, most = ((call.retry or {}).get(name) for name in ("attempt", "max_retries"))
    return max(most - attempt, -1) if isinstance(attempt, int) and isinstance(most, int) else None


def _gives_up_at_last_call(run: Run, asked: ModelCall) -> bool:
    """Which is the one that breaks off."""
    last = next(iter(seen_message(asked.response, step=0).parts[-1:]), {}) if asked.response else {}
    if last.get("part_kind") != "tool-call" or not _is_unreadable(last.get("args")):
        return False
    pairs = [pair for pair in run.tool_calls if pair[1].call_id == last.get("tool_call_id")]
    return any(_gives_up(run, asked, *pair) for pair in pairs[-1:])


def _gives_up(run: Run, asked: ModelCall, step: Step, call: ToolCall) -> bool:
    """Whether the loop does at this call, which may be the one that was refused last."""
    if call.result is not None or not _is_refused_by_loop(asked, call):
        return _gave_up(call)
    earlier = (one for at, one in run.tool_calls if at.index < step.index and at.parent != step.parent)
    before = [one for one in earlier if one.tool_name == call.tool_name]
    return bool(before) and _tries_left(before[-1]) == 0


def _is_refused_unmade(asked: ModelCall, call: ToolCall) -> bool:
    """The loop checks all calls of an answer before it makes the first."""
    if call.result is not None:
        return (call.retry or {}).get("cause") in ("validation_error", "unknown_tool")
    return _is_refused_by_loop(asked, call)


def _is_refused_by_loop(asked: ModelCall, call: ToolCall) -> bool:
    """Whatever the tool is."""
    offered = None if call.is_output else names_of_tools(asked)
    return _is_unreadable(value_of(call.arguments)) or (offered is not None and call.tool_name not in offered)


def _has_used_retries(run: Run, error: ErrorInfo) -> bool:
    """Whether output was refused as often as the error says. The last refusal is the error."""
    used = _RETRIES_USED.match(error.message or "")
    models = main_models(run)
    if used is None or any(call.history is None for _, call in models):
        return True
    newest = (seen_message(call.history.message, step=0) for _, call in models if call.history)
    return sum(map(_tells_of_refusal, newest)) >= int(used[1])


def _tells_of_refusal(seen: SeenMessage) -> bool:
    outputs = [part for part in seen.parts_of("tool-return") if part.get("outcome") == "retried"]
    return bool(outputs or seen.parts_of("retry-feedback", "retry-prompt"))
