"""What was decided on the approval of a call."""

from __future__ import annotations

from sessions_app import models
from sessions_app.core.fork.decisions import decided_by_code
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ModelCall, ToolCall
from sessions_app.mapping.load import load_facts, load_step


def decision_on(run: models.Run, index: int) -> JsonValue:
    """What came of the call of this step, where somebody decided on it when the run was continued, or code did while it
    went on; else None."""
    step = load_step(run, index)
    if not isinstance(step.call, ToolCall):
        return None
    decided = load_facts(run).decided
    if step.call.call_id in decided:
        return decided[step.call.call_id]
    asking = load_step(run, step.parent).call if step.parent else None
    return decided_by_code(step.call, asking if isinstance(asking, ModelCall) else None)
