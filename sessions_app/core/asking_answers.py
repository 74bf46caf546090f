"""Calls of which a record does not say that an answer asked for them: the answer before them holds the id."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.payload import Payload
from sessions_app.core.run import (
    OPENAI_AGENTS,
    PYDANTIC_AI,
    ModelCall,
    Run,
    ToolCall,
    is_of_library_recorder,
    main_steps,
)


def with_asking_answers(run: Run) -> Run:
    """With the answer as the parent of such calls; nothing depends on it where no library is named."""
    if run.agent.framework not in (PYDANTIC_AI, OPENAI_AGENTS) or is_of_library_recorder(run):
        return run
    parents = _asking_answers(run)
    steps = tuple(replace(s, parent=parents[s.index]) if s.index in parents else s for s in run.steps)
    return replace(run, steps=steps) if parents else run


def _asking_answers(run: Run) -> dict[int, int]:
    """By the step of the call. A call with which the run was resumed belongs to an answer before the run."""
    newest, ids, found = 0, frozenset[str](), {}
    for step in main_steps(run):
        match step.call:
            case ModelCall() as call:
                newest, ids = step.index, _ids_asked_for(call.response)
            case ToolCall(call_id=str() as call_id) if step.parent is None and call_id in ids - run.decided.keys():
                found[step.index] = newest
    return found


def _ids_asked_for(response: Payload | None) -> frozenset[str]:
    message = response.value if response is not None else None
    parts = message.get("parts") if isinstance(message, dict) else None
    calls = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return frozenset(str(part.get("tool_call_id")) for part in calls if part.get("part_kind") == "tool-call")
