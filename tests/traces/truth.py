"""What a capture gave against what truly happened, fact by fact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.traces import truth_calls as calls
from tests.traces import truth_histories as histories
from tests.traces import truth_runs as runs
from tests.traces.captures import Capture

Check = Callable[[Capture], tuple[Any, Any]]
"""What is true, and what was told."""

FACTS: dict[str, tuple[tuple[str, ...], Check]] = {
    "spans": ((), runs.spans),
    "model calls": (("request_model",), calls.count_of_models),
    "order of answers": (("output", "tool_names", "tool_args"), calls.order),
    "models": (("response_model",), calls.models),
    "answers": (("output",), calls.answers),
    "calls asked for": (("tool_names", "tool_args"), calls.requested),
    "calls of tools": (("tool_names", "tool_args"), calls.of_tools),
    "tool answers": (("tool_results",), calls.results),
    "tool answers in requests": (("tool_results", "input"), histories.tool_answers),
    "earlier turns": (("input",), histories.earlier_turns),
    "tool errors": (("tool_errors",), calls.failed_tools),
    "model errors": (("model_error",), calls.failed_models),
    "temperature": (("temperature",), calls.setting("temperature")),
    "seed": (("seed",), calls.setting("seed")),
    "input tokens": (("input_tokens",), calls.tokens("input")),
    "output tokens": (("output_tokens",), calls.tokens("output")),
    "finish reason": (("finish_reason",), calls.finish),
    "tool schemas": (("tool_definitions",), calls.offered),
    "instructions": (("system_instructions",), histories.instructions),
    "input": (("input",), runs.inputs),
    "output": (("output",), runs.outputs),
    "error of the run": (("request_model",), runs.endings),
    "session": (("session_id",), runs.sessions),
    "user": (("user_id",), runs.users),
    "searches": (("retrieved_documents",), runs.searches),
    "documents found": (("retrieved_documents",), runs.documents),
}
"""With the names of what the bodies must hold for it, as in `facts_in_payload` of a capture's meta.json."""


def wrong_facts(capture: Capture) -> dict[str, tuple[Any, Any]]:
    """Facts that the capture's bodies hold and the runs do not tell: what is true, and what was told."""
    return {
        name: (true, told)
        for name, (_, check) in FACTS.items()
        if is_held(capture, name)
        for true, told in [check(capture)]
        if not is_told(true, told)
    }


def is_held(capture: Capture, fact: str) -> bool:
    """Whether the bodies hold all of the fact."""
    held = capture.truth["facts_in_payload"]
    return all(held.get(name) is True for name in FACTS[fact][0])


def is_told(true: Any, told: Any) -> bool:
    """More may be told than is known to be true where things are counted by their contents."""
    return not (true - told) if isinstance(true, Counter) else bool(true == told)
