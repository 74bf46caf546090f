"""Messages that code outside of the loop put into a run: a replay, which has none of that code, cannot make them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from sessions_app.core.judge.reading import main_models, own_tools, seen_message, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.run import Run

_FRAMEWORK = "pydantic-ai"
"""Its loop adds what tools gave and nothing else; what its recorder writes is whole."""


def outside_messages(run: Run) -> Iterator[Reason]:
    if run.source_format == "native" and run.agent.framework == _FRAMEWORK:
        yield from _queued(run)
        yield from _retries_from_outside(run)


def _queued(run: Run) -> Iterator[Reason]:
    """More prompts of a user behind an answer than its tools gave along."""
    for (asking, _), (step, call) in pairwise(main_models(run)):
        parts = seen_message(call.history.message, step=0).parts_of("user-prompt") if call.history else []
        given = [one for each, one in own_tools(run) if each.parent == asking.index and one.content is not None]
        if len(parts) > len(given):
            message = f"The request of {step_name(step)} holds a message that code outside of the loop put there."
            yield reason_at(run, "message_from_code", message, step)
            return


def _retries_from_outside(run: Run) -> Iterator[Reason]:
    """Somebody outside asked for another try of a call, which counts otherwise than when a tool does."""
    resumed = run.deferred.value if run.deferred else None
    for step, call in own_tools(run):
        is_resumed = isinstance(resumed, dict) and call.call_id in resumed
        if is_resumed and call.outcome == "retried" and (call.retry or {}).get("attempt") is None:
            message = f"The answer of {step_name(step)} came from outside and asked for another try."
            yield reason_at(run, "retry_from_outside", message, step)
            return
