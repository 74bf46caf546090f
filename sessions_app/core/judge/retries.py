"""Whether a step says of its retry what the model was told, and what the run says of its tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sessions_app.core.judge.reading import is_of_recorder, seen_messages, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, ToolCall

_TOLD = ("retry-prompt", "retry-feedback", "tool-return")


def retry_gaps(run: Run) -> Iterator[Reason]:
    """The first one; a replay counts for itself, and would find it in the request behind."""
    if not is_of_recorder(run):
        return
    told, last = _told(run), _last_of_tools(run)
    for step, call in run.tool_calls:
        if _differs(call.retry, told.get(call.call_id or "")):
            yield _reason(run, step, "the model was told")
            return
        if last.get(call.tool_name) is step and _is_other_budget(run, call):
            yield _reason(run, step, "the run says of its tool")
            return


def _reason(run: Run, step: Step, what: str) -> Reason:
    message = f"The retry of {step_name(step)} is not what {what}."
    return reason_at(run, "retry_contradicted", message, step)


def _told(run: Run) -> dict[str, JsonObject]:
    """What the messages hold of each retry, by the id of its call; ids that come again say nothing."""
    parts = [part for seen in seen_messages(run) for part in seen.parts_of(*_TOLD)]
    counts = Counter(str(part.get("tool_call_id")) for part in parts)
    told = {str(part.get("tool_call_id")): part["retry"] for part in parts if isinstance(part.get("retry"), dict)}
    return {call_id: retry for call_id, retry in told.items() if counts[call_id] == 1}


def _last_of_tools(run: Run) -> dict[str, Step]:
    """The budget that a run says of a tool is that of its last call."""
    return {call.tool_name: step for step, call in run.tool_calls}


def _differs(own: JsonObject | None, told: JsonObject | None) -> bool:
    if own is None or told is None:
        return False
    return any(own[key] != told[key] for key in ("attempt", "max_retries") if key in own and key in told)


def _is_other_budget(run: Run, call: ToolCall) -> bool:
    most, said = (call.retry or {}).get("max_retries"), (run.agent.tool_retries or {}).get(call.tool_name)
    return isinstance(most, int) and isinstance(said, int) and most != said
