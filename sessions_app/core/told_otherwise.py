"""What spans tell twice and otherwise, as it stands beside the steps and the run that were made of them."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step

_OF_STEPS = frozenset(
    {
        "arguments_told", "defined", "messages_told", "named_call", "named_tool", "other_speaker", "past_told",
        "respelled_tool", "result_told", "settings_told", "tool_results", "tools_told", "unknown_role",
    }
)  # fmt: skip
_OF_RUNS = frozenset(
    {
        "conversation_told",
        "error_told",
        "failed_around",
        "input_told",
        "instructions_told",
        "output_told",
        "settings_told",
        "state_told",
    }
)


def told_of_step(step: Step) -> JsonObject:
    return {name: value for name, value in step.extra.items() if name in _OF_STEPS}


def told_of_run(run: Run) -> JsonObject:
    """Each with the steps whose spans tell it."""
    trace = run.extra.get("trace")
    return {name: value for name, value in trace.items() if name in _OF_RUNS} if isinstance(trace, dict) else {}


def contradicted_spans(run: Run) -> dict[str, list[Step]]:
    """The steps of each span that came with two contents, or gives something two values."""
    trace = run.extra.get("trace")
    ids = trace.get("contradicted_spans") if isinstance(trace, dict) else None
    return (
        {each: [step for step in run.steps if _span_id(step) == each] for each in ids} if isinstance(ids, list) else {}
    )


def _span_id(step: Step) -> JsonValue:
    span = step.extra.get("span")
    return span.get("span_id") if isinstance(span, dict) else None
