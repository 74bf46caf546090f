"""A run as empty steps inside one another: enough to tell the agent's own requests from those of its tools."""

from __future__ import annotations

from sessions_app import models
from sessions_app.core.run import AgentCall, Call, ModelCall, OtherCall, Retrieval, Run, Step, ToolCall

_CALLS: dict[str, Call] = {
    "model": ModelCall(history=None, response=None),
    "tool": ToolCall(tool_name=""),
    "retrieval": Retrieval(query=None, chunks=None),
    "agent": AgentCall(run_id=None),
    "other": OtherCall(),
}


def shape_of(run: models.Run) -> Run:
    """What its summaries say of kind and place; nothing of its payloads is read."""
    steps = (Step(index=row.index, name="", call=_CALLS[row.kind], parent=row.parent) for row in run.steps)
    return Run(run_id=run.run_id, session_id="", status="ok", steps=tuple(steps))
