"""Whether the input that a file saves is the prompt of its messages, by which a replay goes."""

from __future__ import annotations

from sessions_app.core.compare.strict import same_json
from sessions_app.core.judge.reading import first_requests
from sessions_app.core.run import OPENAI_ITEMS, SESSION_FILE, Run


def saved_input_contradicts(run: Run) -> bool:
    """A run that goes on with answers to open calls has no prompt of its own."""
    if run.source_format not in (SESSION_FILE, OPENAI_ITEMS) or run.input is None or not run.model_calls:
        return False
    prompts = [part.get("content") for seen in first_requests(run) for part in seen.parts_of("user-prompt")]
    return not same_json(prompts, [run.input.value]) and bool(prompts or run.deferred is None)
