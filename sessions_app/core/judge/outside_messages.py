"""Messages that code outside of the loop put into a run: a replay, which has none of that code, cannot make them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sessions_app.core.judge.reading import is_of_recorder, main_models, object_of, own_tools, seen_message, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ModelCall, Run


def outside_messages(run: Run) -> Iterator[Reason]:
    if is_of_recorder(run):
        yield from _queued(run)
        yield from _retries_from_outside(run)
        yield from _other_instructions(run)


def _queued(run: Run) -> Iterator[Reason]:
    """More prompts of a user behind an answer than its tools gave along, or words in place of what the calls gave. A
    run that is resumed may begin with a prompt of its own."""
    own = 0 if run.input is None else 1
    resumed = [(None, own, pair) for pair in main_models(run)[:1] if run.deferred is not None]
    later = [(asking.index, 0, pair) for (asking, _), pair in pairwise(main_models(run))]
    for asking, prompts, (step, call) in [*resumed, *later]:
        parts = seen_message(call.history.message, step=0).parts_of("user-prompt") if call.history else []
        given = [one for each, one in own_tools(run) if each.parent == asking and one.content is not None]
        if len(parts) > len(given) + prompts or _is_refused_whole(run, asking, call):
            message = f"The request of {step_name(step)} holds a message that code outside of the loop put there."
            yield reason_at(run, "message_from_code", message, step)
            return


def _is_refused_whole(run: Run, asking: int | None, call: ModelCall) -> bool:
    """Whether a hook refused an answer with its calls, of which none was made."""
    if call.history is None or not any(step.parent == asking for step, _ in run.tool_calls):
        return False
    newest = seen_message(call.history.message, step=0)
    return bool(newest.parts_of("retry-feedback")) and not newest.parts_of("tool-return", "retry-prompt")


def _retries_from_outside(run: Run) -> Iterator[Reason]:
    """Somebody outside asked for another try of a call, which counts otherwise than when a tool does."""
    for step, call in own_tools(run):
        is_resumed = call.call_id in run.decided
        if is_resumed and call.outcome == "retried" and (call.retry or {}).get("attempt") is None:
            message = f"The answer of {step_name(step)} came from outside and asked for another try."
            yield reason_at(run, "retry_from_outside", message, step)
            return


def _other_instructions(run: Run) -> Iterator[Reason]:
    """Instructions that are said to stay as they are, and do not: a toolset may be made anew at each request."""
    for (_, before), (step, call) in pairwise(main_models(run)):
        if _lasting(before) != _lasting(call):
            message = f"The instructions of {step_name(step)} are others, and the record does not say what made them."
            yield reason_at(run, "message_from_code", message, step)
            return


def _lasting(call: ModelCall) -> list[JsonValue]:
    parts = object_of(call.parameters).get("instruction_parts") or []
    return [part.get("content") for part in parts if isinstance(part, dict) and not part.get("dynamic")]
