"""Runs as the checks of goldens look at them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from replay_goldens.trace import (
    OF_ANOTHER_REQUEST,
    ToolUse,
    Trace,
    changes_something,
    cost_of,
    given_arguments,
    of_another_from,
)
from sessions_app.core.fork.expected_words import unproven_source
from sessions_app.core.judge.reading import argument_key, own_tools
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.ran_with import is_told, said_of
from sessions_app.core.run import ErrorInfo, Run, Step, StepSource, ToolCall, main_steps, says_there_is_no_tool
from sessions_app.core.state import lack_of_states
from sessions_app.core.state_history import StateHistory
from sessions_app.core.unproven_outcomes import why_answer_unknown, why_unproven


def trace_of(run: Run, *, scene: Run | None = None, why_not_ended: str = "the run did not finish") -> Trace:
    """`scene` is the run that was played again; `why_not_ended` is said of what cannot be judged in a run that was
    stopped."""
    if (unproven := why_unproven(run)) is not None:
        run, why_not_ended = replace(run, status="cut_off", output=None, error=None), unproven
    failed, unknown = run.status == "error", _why_answer_unknown(run)
    output = run.output if unknown is None else None
    return Trace(
        run_id=run.run_id,
        has_ended=run.status == "ok",
        has_failed=failed,
        why_not_ended=f"it ended with an error: {_words(run.error)}" if failed else why_not_ended,
        why_answer_unknown=unknown,
        known_answers=tuple(answer for call in tool_uses(scene) for answer in call.answers),
        calls=tool_uses(run, scene=scene),
        steps=sum(step.kind != "other" for step in main_steps(run)),
        output=output.parsed if output else None,
        output_text=output.as_text() if output else None,
        error=_words(run.error),
        user_id=run.user_id,
        tenant_id=run.tenant_id,
        cost_usd=cost_of(call.response.value if call.response else None for _, call in run.model_calls),
        state_after=None if lack_of_states(run) else _states(run),
        until_another=_until_another(run, scene),
    )


def _until_another(run: Run, scene: Run | None) -> Trace | None:
    first = next((step.index for step, _ in run.model_calls if step.source == _OLD), None)
    if first is None:
        return None
    known = replace(run, steps=run.steps[: first - 1], status="cut_off", output=None, error=None)
    return trace_of(known, scene=scene, why_not_ended=of_another_from(first))


def _why_answer_unknown(run: Run) -> str | None:
    """Code was to make the answer that did not run; or what a fork says of an outcome that rests on old answers."""
    is_old = run.status == "ok" and unproven_source(run, [step for step, _ in run.model_calls]) == _OLD
    return OF_ANOTHER_REQUEST if is_old else why_answer_unknown(run)


_OLD: StepSource = "recorded_for_another_request"


def tool_uses(run: Run | None, *, scene: Run | None = None) -> tuple[ToolUse, ...]:
    """A replay that does not hear what tools are given repeats what they were given in the scene."""
    if run is None:
        return ()
    known = own_tools(scene) if scene is not None and not is_told(run) else []
    heard = {_asked(call): said_of(step) for step, call in known}
    return tuple(_use(step, call, heard.get(_asked(call), {})) for step, call in own_tools(run))


def _asked(call: ToolCall) -> tuple[str | None, str, bytes]:
    return call.call_id, call.tool_name, argument_key(call)


def missing_tools(run: Run, scene: Run) -> tuple[str, ...]:
    """Tools that the recorded answers call and the agent that ran does not have: the loop says so in their place, and
    did not in the scene."""
    had = {call.tool_name for _, call in own_tools(scene)}.difference(_unknown_tools(scene))
    return tuple(name for name in _unknown_tools(run) if name in had)


def _unknown_tools(run: Run) -> list[str]:
    ended = _NO_TOOL.match((run.error and run.error.message) or "")
    found = [*(call.tool_name for _, call in own_tools(run) if _is_unknown(call)), *(ended.groups() if ended else ())]
    return list(dict.fromkeys(found))


_NO_TOOL = re.compile(r"Tool (.+) not found in agent ")
"""How the OpenAI Agents SDK ends a run whose model calls a tool that the agent does not have."""


def _is_unknown(call: ToolCall) -> bool:
    said = call.result.value if call.result and call.outcome == "retried" else None
    return says_there_is_no_tool(said, call.tool_name)


def _use(step: Step, call: ToolCall, heard: JsonObject) -> ToolUse:
    asked = _parsed(call.arguments)
    return ToolUse(
        step=step.index,
        tool=call.tool_name,
        arguments=given_arguments(asked, {**heard, **step.extra}),
        is_as_asked=given_arguments(asked, step.extra) == asked,
        result=_parsed(call.result),
        returned=step.extra.get("returned"),
        error=_words(step.error),
        is_write=changes_something(step.extra.get("tool_kind")),
        user_id=step.user_id,
        tenant_id=step.tenant_id,
    )


def _parsed(payload: Payload | None) -> JsonValue:
    return payload.parsed if payload else None


def _words(error: ErrorInfo | None) -> str | None:
    return None if error is None else ": ".join(part for part in (error.type, error.message) if part)


def _states(run: Run) -> Callable[[int | None], JsonValue]:
    initial = run.initial_state.value if run.initial_state else None
    history = StateHistory(initial, [(step.index, step.state) for step in run.steps if step.state])

    def state_after(step: int | None) -> JsonValue:
        if step is not None and step > len(run.steps):
            raise LookupError(f"there is no step {step}")
        state = history.state_after(len(run.steps) if step is None else step)
        if state is None:
            raise LookupError("the state is not known there")
        return state

    return state_after
