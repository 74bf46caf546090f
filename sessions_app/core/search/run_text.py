"""What is searched of a run."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.clipping import unescaped
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.payload import Payload
from sessions_app.core.run import ErrorInfo, Run, Step, ToolCall
from sessions_app.core.search.words import spaced, with_parts

_LONGEST = 100_000
"""Characters; the full-text index holds 1 MB of a run at most."""
_OF_ERRORS = 30_000
"""Of these: a long input does not push the errors out, nor the other way round."""
_OF_AN_ERROR = 2_000


def searched_text(run: Run) -> str:
    """Ids, errors, input and output: what a person types into the query bar."""
    ids = [run.run_id, run.session_id, run.user_id, run.tenant_id, run.code.commit]
    errors = "\n".join(dict.fromkeys(with_parts(text[:_OF_AN_ERROR]) for text in _errors(run)))
    texts = [_text(payload) for payload in (run.input, run.output) if payload is not None]
    found = [*(text for text in ids if text), errors[:_OF_ERRORS], *texts]
    return spaced("\n".join(found)[:_LONGEST])


def _errors(run: Run) -> Iterator[str]:
    """Of the run and of its steps, and what tools answered that failed."""
    if run.error is not None:
        yield _words(run.error)
    for step in run.steps:
        if step.error is not None:
            yield _words(step.error)
        if (answer := _failed_answer(step)) is not None:
            yield _text(answer)


def _words(error: ErrorInfo) -> str:
    return f"{error.type or ''} {error.message or ''}"


def _failed_answer(step: Step) -> Payload | None:
    return step.call.result if isinstance(step.call, ToolCall) and has_failed(step) else None


def _text(payload: Payload) -> str:
    return unescaped(payload.as_text()) if payload.is_json else payload.as_text()
