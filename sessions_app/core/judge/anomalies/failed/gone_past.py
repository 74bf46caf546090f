"""Calls that failed, and whether the answer says so."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.absences import tells_of_none
from sessions_app.core.judge.anomalies.failed.failures import has_failed, is_absent, told_failure, unhealed
from sessions_app.core.judge.anomalies.failed.left_aside import is_left_aside
from sessions_app.core.judge.anomalies.failed.told_failures import is_told
from sessions_app.core.judge.anomalies.reading.answer_words import (
    REFUSAL,
    begins_word,
    error_words_in,
    owns_up,
    owns_up_in,
    plain,
    without_apologies,
)
from sessions_app.core.judge.anomalies.reading.languages import answers_in_a_known_language
from sessions_app.core.judge.anomalies.reading.statements import statements
from sessions_app.core.judge.reading import (
    ended_in_error,
    has_answer,
    http_words,
    text_of,
)
from sessions_app.core.run import Run, Step, ToolCall

TOLD = ", as the answer says"


def failed_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A call failed, and nobody made it again with success. A note where the answer tells of it, or is in a language
    that nobody here reads; swallowed where it does not speak of a failure."""
    if not has_answer(run):
        return  # which is said already
    failed: dict[str, list[tuple[Step, ToolCall]]] = {}
    for step, call in (pair for pair in unhealed(run) if has_failed(pair[0])):
        failed.setdefault(call.tool_name, []).append((step, call))
    owned_up = [each for each in statements(run) if _owns_up(each, rules)] if failed else []
    is_silent = not owned_up and not error_words_in(run.output, rules) and not owns_up(run.output)
    for name, pairs in failed.items():
        steps, said = tuple(step.index for step, _ in pairs), f"{name} {_failure_in_words(*pairs[0])}"
        if all(_is_told(run, *pair, owned_up, is_alone=len(failed) == 1) for pair in pairs[:_MOST]):
            yield Anomaly(code="call_failed", message=said + TOLD, steps=steps, level="info")
        elif all(is_left_aside(run, *pair) for pair in pairs[:_MOST]):
            message = f"{said}; neither the question nor the answer is about it"
            yield Anomaly(code="call_failed", message=message, steps=steps, level="info")
        elif not answers_in_a_known_language(run):
            yield Anomaly(code="call_failed", message=said, steps=steps, level="info")
        elif is_silent:
            message = f"Error swallowed: {said} and the answer does not say so"
            yield Anomaly(code="error_swallowed", message=message, steps=steps)
        else:
            yield Anomaly(code="call_failed", message=said, steps=steps)


_MOST = 50
"""Calls of one tool, as each is held against each sentence."""


def _is_told(run: Run, step: Step, call: ToolCall, owned_up: list[str], *, is_alone: bool) -> bool:
    if is_absent(step, call) and tells_of_none(run, step, call):
        return True
    return is_told(run, step, call, _reason(step, call), owned_up=owned_up, is_alone=is_alone)


def _owns_up(sentence: str, rules: Rules) -> bool:
    """To more than a bother."""
    said = without_apologies(sentence)
    is_refused = REFUSAL.search(said) is not None
    return is_refused or owns_up_in(said) or any(begins_word(plain(word), said) for word in rules.error_words)


def _reason(step: Step, call: ToolCall) -> str:
    """What was said of the failure: by the error, or by the answer in its place."""
    said = (step.error.message if step.error else None) or told_failure(step, call)
    return said or (text_of(call.result) or "")[:_REASON]


_REASON = 300


def _failure_in_words(step: Step, call: ToolCall) -> str:
    if ended_in_error(step):
        return f"failed{http_words(step)}"
    words = told_failure(step, call)
    return f"returned an error ({words})" if words else "returned an error"
