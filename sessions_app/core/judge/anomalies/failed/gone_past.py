"""Calls that failed, and whether the answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Level, Rules
from sessions_app.core.judge.anomalies.failed.failures import failed_count, has_failed, told_failure, unhealed
from sessions_app.core.judge.anomalies.failed.told_failures import is_told_of_batch
from sessions_app.core.judge.anomalies.reading.answer_words import REFUSAL, error_words_in, owns_up, plain, words_of
from sessions_app.core.judge.anomalies.reading.languages import answers_in_a_known_language
from sessions_app.core.judge.reading import (
    ended_in_error,
    has_answer,
    http_words,
    status_code,
    text_of,
)
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, ToolCall


def failed_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A call failed, and nobody made it again with success; swallowed where the answer does not speak of a failure. A
    note where the language of the answer is not known, or where it tells which one of a batch failed or how many."""
    if not has_answer(run):
        return  # which is said already
    is_said = (
        bool(error_words_in(run.output, rules))
        or owns_up(run.output)
        or REFUSAL.search(plain(words_of(run.output))) is not None
    )
    failed: dict[str, list[tuple[Step, ToolCall]]] = {}
    for step, call in (pair for pair in unhealed(run) if has_failed(pair[0])):
        failed.setdefault(call.tool_name, []).append((step, call))
    for name, pairs in failed.items():
        steps, said = tuple(step.index for step, _ in pairs), f"{name} {_failure_in_words(*pairs[0])}"
        if not answers_in_a_known_language(run):
            yield Anomaly(code="call_failed", message=said, steps=steps, level="info")
        elif all(is_told_of_batch(run, step, call, _reason(step, call)) for step, call in pairs[:_MOST]):
            message = f"{said}, as the answer says"
            yield Anomaly(code="call_failed", message=message, steps=steps, level="info")
        elif is_said or any(_is_named(step, call, run.output) for step, call in pairs):
            level: Level = "info" if all(_failed_in_part(step, call) for step, call in pairs) else "warning"
            yield Anomaly(code="call_failed", message=said, steps=steps, level=level)
        else:
            message = f"Error swallowed: {said} and the answer does not say so"
            yield Anomaly(code="error_swallowed", message=message, steps=steps)


_MOST = 50
"""Calls of one tool, as each is held against each sentence."""


def _reason(step: Step, call: ToolCall) -> str:
    """What was said of the failure: by the error, or by the answer in its place."""
    said = (step.error.message if step.error else None) or told_failure(step, call)
    return said or (text_of(call.result) or "")[:_REASON]


_REASON = 300


def _failed_in_part(step: Step, call: ToolCall) -> bool:
    words = None if ended_in_error(step) else told_failure(step, call)
    return words is not None and words == failed_count(step, call)


def _failure_in_words(step: Step, call: ToolCall) -> str:
    if ended_in_error(step):
        return f"failed{http_words(step)}"
    words = told_failure(step, call)
    return f"returned an error ({words})" if words else "returned an error"


def _is_named(step: Step, call: ToolCall, output: Payload | None) -> bool:
    """Whether the answer gives the status, or says what the error says, or how many failed."""
    words = plain(words_of(output))
    status, message = status_code(step), (step.error.message if step.error else told_failure(step, call)) or ""
    number = re.match(r"\d+ ", message)
    if number and re.search(rf"(?<![\d.,]){number[0].strip()}(?![\d.,]*\d)", words):
        return True
    return (status is not None and str(status) in words) or bool(message.strip() and plain(message).strip() in words)
