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
from sessions_app.core.run import EXCHANGES, HTTP_TOLD, ModelCall, Run, Step


def with_other_http(run: Run) -> Run:
    """Each step of a model whose exchange says something else, with a word for what."""
    run = replace(run, steps=tuple(map(_unmarked, run.steps)))
    if run.source_format != EXCHANGES:
        return run
    alone = tuple(map(_exchange_alone, run.steps))
    if alone == run.steps:
        return run
    again = with_conversation(replace(run, steps=alone)).model_calls
    told = {step.index: _told_otherwise(step, *other) for (step, _), other in zip(run.model_calls, again, strict=False)}
    return replace(run, steps=tuple(_marked(step, told.get(step.index)) for step in run.steps))


def _unmarked(step: Step) -> Step:
    if HTTP_TOLD not in step.extra:
        return step
    return replace(step, extra={name: each for name, each in step.extra.items() if name != HTTP_TOLD})


def _exchange_alone(step: Step) -> Step:
    body = step.http.request_body if step.http is not None else None
    if not isinstance(step.call, ModelCall) or body is None or PLACEHOLDER.search(body.as_text()):
        return step
    return replace(step, call=ModelCall(history=None, response=None))


def _told_otherwise(step: Step, again: Step, other: ModelCall) -> str | None:
    assert isinstance(step.call, ModelCall)
    found = next((word for word, read in _READ.items() if not same_json(read(step.call), read(other))), None)
    return found or ("request" if not same_json(step.extra, again.extra) else None)


def _marked(step: Step, told: str | None) -> Step:
    return step if told is None else replace(step, extra={**step.extra, HTTP_TOLD: told})


def _value(payload: Payload | None) -> JsonValue:
    return None if payload is None else payload.value


_READ: dict[str, Callable[[ModelCall], JsonValue]] = {
    "request": lambda call: [message.value for message in messages(call.history)],
    "tools": lambda call: [_value(call.parameters), [tool.value for tool in call.tools or ()]],
    "settings": lambda call: _value(call.settings),
    "model": lambda call: call.model,
    "answer": lambda call: [_value(call.response), call.answered_model, call.finish_reason],
}
