"""Why the answers of models ended, in the words of every protocol."""

from __future__ import annotations

from sessions_app.core.payload import JsonValue

_DONE = ("stop", "end_turn", "stop_sequence", "completed", "tool_call", "tool_calls", "tool-calls", "tool_use")
_ENDS = {
    **dict.fromkeys(_DONE, "done"),
    **dict.fromkeys(("length", "max_tokens", "incomplete", "max_output_tokens"), "cut"),
    **dict.fromkeys(("error", "failed"), "failed"),
    **dict.fromkeys(("content_filter", "content-filter", "refusal", "safety", "prohibited_content"), "refused"),
}


def ended_otherwise(one: str | None, other: str | None) -> bool:
    """Whether one of the two says that the answer is whole, and the other that it is not, or not for the same reason.
    Of other words nobody knows."""
    ends = [_ENDS.get(str(each).lower()) for each in (one, other)]
    return None not in ends and ends[0] != ends[1]


def is_cut(reason: JsonValue) -> bool:
    """Whether an answer ended at a limit of tokens and not at its own end."""
    return _ENDS.get(str(reason).lower()) == "cut"
