"""Approvals of a Pydantic AI run that a replay decides otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, HandleDeferredToolCalls
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied

from replay_recorder.replaying.recording import RecordedCall, Recording


def decided_otherwise(recording: Recording, decisions: Mapping[int, bool]) -> dict[str, bool]:
    """`decisions` are by the step of a call; here by its id. Raises `ValueError` where nobody had to decide."""
    calls = {call.step: call for call in recording.calls}
    chosen: dict[str, bool] = {}
    for step, is_approved in decisions.items():
        call = calls.get(step)
        if call is None or call.call_id is None or not _was_decided(recording, call):
            raise ValueError(f"The recording shows no approval decision for step {step}.")
        chosen[call.call_id] = is_approved
    return chosen


def _was_decided(recording: Recording, call: RecordedCall) -> bool:
    """When the run was continued, or by the team's code while it went on."""
    needs = any(
        tool.get("name") == call.name and tool.get("kind") == "unapproved"
        for answer in recording.answers
        for tool in (answer.parameters or {}).get("function_tools") or []
    )
    waits = call.outcome in ("unapproved", "deferred")
    return call.call_id in (recording.record.get("deferred") or {}) or (
        not waits and (needs or call.outcome == "denied")
    )


class DecidedByHand(AbstractCapability[Any]):
    """Decides on calls that wait while the run goes on, before the team's code is asked."""

    def __init__(self, decisions: Mapping[str, bool]) -> None:
        self._decisions = decisions

    def get_ordering(self) -> CapabilityOrdering | None:
        return CapabilityOrdering(wraps=(HandleDeferredToolCalls,))

    async def for_run(self, ctx: RunContext[Any]) -> DecidedByHand:
        return self

    async def handle_deferred_tool_calls(
        self, ctx: RunContext[Any], *, requests: DeferredToolRequests
    ) -> DeferredToolResults | None:
        results = DeferredToolResults()
        for call_id in self._decisions.keys() & {call.tool_call_id for call in requests.approvals}:
            results.approvals[call_id] = self._decisions[call_id] or ToolDenied()
        return results if results.approvals else None
