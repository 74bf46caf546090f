"""Whether the steps of a run are the calls that its answers ask for.

A replay takes calls from the answers. Where no tool ran, as beside a final answer, it never asks for the step, so a
step that tells of another call would go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.conventions import fix_for
from sessions_app.core.judge.last_calls import calls_in, last_model
from sessions_app.core.judge.reading import main_models, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run

_FRAMEWORK = "pydantic-ai"
"""The recorder for it writes a step for each call of an answer."""


def call_step_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format == "native":
        yield from _steps_of_other_calls(run)
        yield from _last_calls_without_steps(run)


def _steps_of_other_calls(run: Run) -> Iterator[Reason]:
    asked = _names_asked_for(run)
    for step, call in run.tool_calls:
        names = asked.get((step.parent, call.call_id))
        if names and call.tool_name not in names:
            message = f"At {step_name(step)} the model asked for {min(names)}, not for {call.tool_name}."
            yield reason_at(run, "call_contradicted", message, step)
            return


def _names_asked_for(run: Run) -> dict[tuple[int | None, JsonValue], set[str]]:
    """Names of tools by the step of the answer and the id of the call; an id may come again in one answer."""
    found: dict[tuple[int | None, JsonValue], set[str]] = {}
    for step, call in main_models(run):
        for part in calls_in(call):
            if part.get("tool_call_id"):
                found.setdefault((step.index, part["tool_call_id"]), set()).add(str(part.get("tool_name")))
    return found


def _last_calls_without_steps(run: Run) -> Iterator[Reason]:
    last = last_model(run)
    if last is None or run.agent.framework != _FRAMEWORK:
        return
    told = {call.call_id for _, call in run.tool_calls}
    for part in calls_in(last[1]):
        if part.get("tool_call_id") not in told:
            message = f"The call of {part.get('tool_name')} that {step_name(last[0])} asks for has no step of its own."
            fix = fix_for(run, "tool_step_missing").sentence
            yield Reason(code="tool_step_missing", message=message, step=last[0].index + 1, fix=fix)
            return
