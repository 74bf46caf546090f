"""What was decided of calls that need an approval while their run went on."""

from __future__ import annotations

from typing import Literal

from sessions_app.core.judge.last_calls import kinds_of_tools
from sessions_app.core.run import WAITING, ModelCall, ToolCall

HELD_BACK = ("unapproved", "external")
"""Kinds of tools that are not asked before somebody decides, or that are run elsewhere."""


def decided_by_code(call: ToolCall, asking: ModelCall | None) -> Literal["approved", "denied"] | None:
    """How the team's code decided on a call that its agent did not stop for; None where nobody had to decide, or where
    the recording does not say it. `asking` is the answer of the model that asked for the call."""
    if call.outcome == "denied":
        return "denied"
    needs_approval = asking is not None and kinds_of_tools(asking).get(call.tool_name) == "unapproved"
    return "approved" if needs_approval and call.outcome not in WAITING else None


def is_held_back(call: ToolCall, asking: ModelCall | None) -> bool:
    """Whether the framework itself does not make this call before somebody decides on it, or answers from outside, and
    nobody did."""
    kind = kinds_of_tools(asking).get(call.tool_name) if asking is not None else None
    return call.result is None and kind in HELD_BACK
