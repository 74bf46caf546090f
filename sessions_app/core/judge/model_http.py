"""Whether a model's step says what its recorded HTTP says.

A replay holds the loop's request against that of the step, and gives the answer of the step. Where the bytes that went
over the wire hold another request or answer, nobody knows which of the two was the agent's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from sessions_app.core.assembly.other_http import REDACTED, told_otherwise
from sessions_app.core.embedded_json import key_given_twice
from sessions_app.core.finish_reasons import ended_otherwise
from sessions_app.core.judge.last_calls import calls_in
from sessions_app.core.judge.model_http_attempts import ANSWERED, attempted_otherwise, earlier_exchanges, told_twice
from sessions_app.core.judge.model_http_offers import is_same_call
from sessions_app.core.judge.model_http_requests import asked_otherwise
from sessions_app.core.judge.reading import main_models, seen_message, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.model_names import could_be_same_model
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.replay.raw_answers import raw_response
from sessions_app.core.run import EXCHANGES, HttpExchange, ModelCall, Run, Step
from sessions_app.core.spans.provider_messages.wire import (
    WireAnswer,
    failure_in,
    is_whole,
    wire_answer,
    wire_request,
)


def model_http_gaps(run: Run) -> Iterator[Reason]:
    if run.source_format in ("native", EXCHANGES):
        yield from islice(_contradicted_by_http(run), 1)


def redacted_otherwise(run: Run) -> str | None:
    """The first call that nobody can hold against its exchange."""
    read_again = told_otherwise(run)
    step = next((step for step, _ in main_models(run) if read_again.get(step.index) == REDACTED), None)
    return None if step is None else f"the HTTP of {step_name(step)} was redacted and cannot be compared with it"


def _contradicted_by_http(run: Run) -> Iterator[Reason]:
    read_again, earlier = told_otherwise(run), earlier_exchanges(run)
    for step, call in main_models(run):
        is_same = step.index in read_again and read_again[step.index] is None
        said = _said_otherwise(step, call, _TOLD.get(read_again.get(step.index) or ""), is_same=is_same)
        if said is None and step.http is not None:
            said = attempted_otherwise(call, earlier.get(step.index, ()), step.http)
        if said is not None:
            message = f"The recorded HTTP of {step_name(step)} {said}."
            yield reason_at(run, "http_contradicted", message, step)


def _said_otherwise(step: Step, call: ModelCall, told: str | None, *, is_same: bool) -> str | None:
    """`told` is what was found by reading the exchange again, where that could be done."""
    http = step.http
    if http is None:
        return told
    # What was read from the body and is the same needs no comparison by lines.
    asked = told_twice(http) or (None if is_same else asked_otherwise(call, http))
    if call.response is None:
        return asked or _failed_otherwise(step, http) or told
    if step.error is None and http.status is not None and http.status not in ANSWERED:
        return f"has the status {http.status}, and the step an answer"
    if step.error is None and is_whole(http) and failure_in(http):
        return "says that the request failed, and the step has an answer"
    wire, given = _whole_answer(http), _as_given(step, call)
    answered = wire and (_other_words(given, wire) or _other_calls(given, wire) or _other_end(given, wire))
    return asked or answered or told


def _failed_otherwise(step: Step, http: HttpExchange) -> str | None:
    """Of a step whose error names the status that the provider answered with. Others may have failed over an answer."""
    named = _STATUS.match((step.error and step.error.message) or "")
    if named is None or http.request_body is None or wire_request(http.request_body) is None:
        return None
    if http.status is not None and http.status != int(named[1]):
        return f"has the status {http.status}, the error of the step {named[1]}"
    return "holds an answer, and the step failed" if _whole_answer(http) and not failure_in(http) else None


_STATUS = re.compile(r"(?:status_code: |Error code: )(\d{3})\b")
"""As Pydantic AI, and the clients of OpenAI and Anthropic, begin the message of such an error."""


_TOLD = {
    "request": "holds another request than the step",
    "tools": "offers other tools than the step",
    "settings": "holds other settings than the step",
    "model": "asks another model than the step",
    "answer": "holds another answer than the step",
}
"""By what was found in the exchange (`assembly/other_http.py`)."""


def _whole_answer(http: HttpExchange) -> WireAnswer | None:
    return wire_answer(http.response_body) if http.response_body is not None and is_whole(http) else None


def _as_given(step: Step, call: ModelCall) -> ModelCall:
    """With the answer of which hooks of the agent made another; that one went over the wire."""
    raw = raw_response(step)
    return call if raw is None else replace(call, response=Payload.of_json(raw))


def _other_words(call: ModelCall, wire: WireAnswer) -> str | None:
    """Of thoughts that a model writes into its answer, the loop makes parts of their own; of what ran at the provider
    too, or a text. White space at the ends it may leave out."""
    assert call.response is not None
    answer = seen_message(call.response, step=0)
    words = "".join(str(part.get("content")) for part in answer.parts_of("text"))
    is_parted = bool(answer.parts_of("thinking")) and not wire.has_thoughts
    is_redacted = PLACEHOLDER.search(words) or PLACEHOLDER.search(wire.words)
    if is_parted or is_redacted or words.strip() in (wire.words.strip(), wire.spelled.strip()):
        return None
    return "holds another text than the answer of the step"


def _other_calls(call: ModelCall, wire: WireAnswer) -> str | None:
    asked = calls_in(call)
    if len(asked) != len(wire.calls):
        return f"asks for {len(wire.calls)} calls, the answer of the step for {len(asked)}"
    for part, sent in zip(asked, wire.calls, strict=True):
        if not is_same_call(part, sent) or _has_more(sent.arguments, part.get("args")):
            return f"asks for another call than that of {part.get('tool_name')} in the answer of the step"
    return None


def _has_more(sent: JsonValue, said: JsonValue) -> bool:
    """Whether one of two texts gives a key two values; where a library keeps an object, it keeps one of them."""
    is_doubled = key_given_twice(sent) is not None or key_given_twice(said) is not None
    return isinstance(sent, str) and isinstance(said, str) and sent != said and is_doubled


def _other_end(call: ModelCall, wire: WireAnswer) -> str | None:
    if ended_otherwise(call.finish_reason, wire.finish_reason):
        return f"ends with {wire.finish_reason}, the answer of the step with {call.finish_reason}"
    if not could_be_same_model(call.answered_model, wire.model):
        return f"is the answer of {wire.model}, that of the step of {call.answered_model}"
    return _other_count("answer", call.output_tokens, wire.output_tokens) or _other_count(
        "request", call.input_tokens, wire.input_tokens
    )


def _other_count(whose: str, said: int | None, counted: frozenset[int]) -> str | None:
    if said is None or not counted or said in counted:
        return None
    return f"counts {' or '.join(map(str, sorted(counted)))} tokens of the {whose}, the step {said}"
