"""Approvals that a fork decides otherwise."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

Decisions = Mapping[str, str | None]
"""By the id of a call: the words of a denial, None for an approval."""


def decided_by_hand(requests: DeferredToolRequests, decisions: Decisions) -> DeferredToolResults:
    """Of calls that wait while the run goes on, before the team's code is asked."""
    results = DeferredToolResults()
    for call_id in decisions.keys() & {call.tool_call_id for call in requests.approvals}:
        denial = decisions[call_id]
        results.approvals[call_id] = True if denial is None else ToolDenied(denial)
    return results
