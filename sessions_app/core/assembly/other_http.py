"""Conversations that were read from HTTP, held against the HTTP that stands beside them.

The same bodies say the same once more. Where they say anything else, one of the two was changed since, and nobody knows
which of them the model was given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import messages
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.run import EXCHANGES, ModelCall, Run, Step

REDACTED = "redacted"
"""What is otherwise may be so because of the redaction."""


def told_otherwise(run: Run) -> dict[int, str | None]:
    """By the step of a model whose exchange was read again: what of the call is otherwise there, None for nothing."""
    alone = tuple(map(_exchange_alone, run.steps)) if run.source_format == EXCHANGES else run.steps
    if alone == run.steps:
        return {}
    again = with_conversation(replace(run, steps=alone)).model_calls
    pairs = zip(run.model_calls, again, strict=False)
    found = {step.index: (step, _told_otherwise(step, *other)) for (step, _), other in pairs}
    return {index: REDACTED if told and _is_redacted(step) else told for index, (step, told) in found.items()}


def _exchange_alone(step: Step) -> Step:
    body = step.http.request_body if step.http is not None else None
    if not isinstance(step.call, ModelCall) or body is None:
        return step
    return replace(step, call=ModelCall(history=None, response=None))


def _is_redacted(step: Step) -> bool:
    """Bodies are redacted by rules of their own, so what a call has of them may differ."""
    body = step.http.request_body if step.http is not None else None
    return body is not None and PLACEHOLDER.search(body.as_text()) is not None


def _told_otherwise(step: Step, again: Step, other: ModelCall) -> str | None:
    assert isinstance(step.call, ModelCall)
    found = next((word for word, read in _READ.items() if not same_json(read(step.call), read(other))), None)
    return found or ("request" if not same_json(step.extra, again.extra) else None)


def _value(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.value


_READ: dict[str, Callable[[ModelCall], JsonValue]] = {
    "request": lambda call: [message.value for message in messages(call.history)],
    "tools": lambda call: [_value(call.parameters), [tool.value for tool in call.tools or ()]],
    "settings": lambda call: _value(call.settings),
    "model": lambda call: call.model,
    "answer": lambda call: [_value(call.response), call.answered_model, call.finish_reason],
}
