"""Facts about what went into the calls of models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sessions_app.core.history import messages
from sessions_app.core.run import Run
from tests.traces.captures import Capture
from tests.traces.sides import Truth, agent_runs, history_parts, model_calls, same, spellings, true_calls


def tool_answers(capture: Capture) -> tuple[Any, Any]:
    """Texts that the models were given for their tools, once for each request that carries them."""
    true = Counter(
        same(message["text"])
        for call in true_calls(capture)
        if not call.get("error")
        for message in call["messages"]
        if message["role"] == "tool" and message["text"]
    )
    told: Counter[str] = Counter()
    for _, call in model_calls(capture):
        for part in history_parts(call, "tool-return", "retry-prompt"):
            told.update(spellings(part["content"]))
    return true, told


def earlier_turns(capture: Capture) -> tuple[Any, Any]:
    """What was said before each run, where each run is one trace; nothing was before the first."""
    true_runs, runs = [run for run in capture.truth["runs"] if run["model_calls"]], agent_runs(capture)
    if len(true_runs) != len(runs):
        return [], []
    true = [_said_before(run["model_calls"][0]) for run in true_runs]
    return true, [_told_before(run, each) for run, each in zip(runs, true, strict=True)]


def _said_before(call: Truth) -> list[str]:
    said = [message for message in call["messages"] if message["role"] in ("user", "assistant")]
    return [message["text"].strip() for message in said[:-1] if message["text"]]


def _told_before(run: Run, expected: list[str]) -> list[str]:
    """All texts of the earlier turns; a text that was cut apart or joined counts when it is there."""
    parts = [part for message in messages(run.prior) for part in message.value["parts"]]
    told = [
        str(part["content"]).strip()
        for part in parts
        if part["part_kind"] in ("user-prompt", "text")
        if part["content"]
    ]
    return expected if told and all(text in "\n".join(told) for text in expected) and expected else told


def instructions(capture: Capture) -> tuple[Any, Any]:
    true = {text for call in true_calls(capture) for text in call["system"]}
    told = "\n".join(text for run in agent_runs(capture) for text in _system_texts(run))
    return true, {text for text in true if text in told}


def _system_texts(run: Run) -> Iterable[str]:
    yield run.instructions or ""
    for _, call in run.model_calls:
        if call.history is not None:
            said = call.history.message.value.get("instructions") or ""
            yield from (said, json.dumps(said, ensure_ascii=False))
