"""Whether a model's step says what its recorded HTTP says.

A replay holds the loop's request against that of the step, and gives the answer of the step. Where the bytes that went
over the wire hold another request or answer, nobody knows which of the two was the agent's.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sessions_app.core.judge.last_calls import calls_in
from sessions_app.core.judge.model_http_requests import asked_otherwise
from sessions_app.core.judge.reading import main_models, seen_message, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.matching import Tally, first_mismatch
from sessions_app.core.run import HttpExchange, ModelCall, Run, Step
from sessions_app.core.spans.provider_messages.wire import WireAnswer, WireCall, wire_answer

_FAILED = 400
_NOT_WHOLE = ("body_cut", "incomplete", "body_left_out")
"""What a recorder says of a body that it does not hold from beginning to end."""


def model_http_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format == "native":
        yield from islice(_contradicted_by_http(run), 1)


def _contradicted_by_http(run: Run) -> Iterator[Reason]:
    for step, call in main_models(run):
        said = _said_otherwise(step, call)
        if said is not None:
            message = f"The recorded HTTP of {step_name(step)} {said}."
            yield reason_at(run, "http_contradicted", message, step)


def _said_otherwise(step: Step, call: ModelCall) -> str | None:
    http = step.http
    if http is None or call.response is None:
        return None
    if step.error is None and (http.status or 0) >= _FAILED:
        return f"has the status {http.status}, and the step an answer"
    wire = _whole_answer(http)
    answered = None if wire is None else _other_words(call, wire) or _other_calls(call, wire)
    return asked_otherwise(call, http) or answered


def _whole_answer(http: HttpExchange) -> WireAnswer | None:
    if http.response_body is None or any(http.extra.get(name) for name in _NOT_WHOLE):
        return None
    return wire_answer(http.response_body)


def _other_words(call: ModelCall, wire: WireAnswer) -> str | None:
    """Of thoughts that a model writes into its answer, the loop makes parts of their own. White space at the ends it
    may leave out."""
    assert call.response is not None
    answer = seen_message(call.response, step=0)
    words = "".join(str(part.get("content")) for part in answer.parts_of("text"))
    is_parted = bool(answer.parts_of("thinking")) and not wire.has_thoughts
    is_redacted = PLACEHOLDER.search(words) or PLACEHOLDER.search(wire.words)
    if is_parted or is_redacted or words.strip() == wire.words.strip():
        return None
    return "holds another text than the answer of the step"


def _other_calls(call: ModelCall, wire: WireAnswer) -> str | None:
    asked = calls_in(call)
    if len(asked) != len(wire.calls):
        return f"asks for {len(wire.calls)} calls, the answer of the step for {len(asked)}"
    for part, sent in zip(asked, wire.calls, strict=True):
        if not _is_same_call(part, sent):
            return f"asks for another call than that of {part.get('tool_name')} in the answer of the step"
    return None


def _is_same_call(part: JsonObject, sent: WireCall) -> bool:
    """The id of a call is made up where the protocol has none."""
    is_named_so = part.get("tool_name") == sent.name and sent.call_id in (None, part.get("tool_call_id"))
    given, args = _arguments(sent.arguments), _arguments(part.get("args"))
    is_redacted = any(PLACEHOLDER.search(str(each)) for each in (given, args))
    return is_named_so and (is_redacted or first_mismatch(given, args, raw=given, path="args", tally=Tally()) is None)


def _arguments(value: JsonValue) -> JsonValue:
    return recorded_arguments(None if value is None else Payload.of(value))
