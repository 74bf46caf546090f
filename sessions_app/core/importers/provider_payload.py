"""Logged invocations of a model, each as a run.

The request holds the whole conversation. So the run has a span around all, a model span for each assistant turn that
the request repeats, and one for the invocation itself; `conventions.provider_payload` describes their attributes.
Earlier calls are taken to have had the request's model, tools and settings. When they happened is not known: the ids
of the spans are in the order of the calls. Which forms are read: `importers.provider_log`.
"""

from __future__ import annotations

import json
from itertools import accumulate, groupby

from sessions_app.core.embedded_json import is_shallow
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.fields import parse_time
from sessions_app.core.importers.provider_log import Invocation, find_invocation
from sessions_app.core.payload import JsonObject, JsonValue, sha256_hex
from sessions_app.core.spans.attributes import as_count, as_text
from sessions_app.core.spans.provider_messages import failure_of, response_of
from sessions_app.core.spans.reading import CallPart
from sessions_app.core.spans.span import Attributes, Scope, Span, SpanStatus, nanoseconds_of

_SCOPE = Scope(name="provider-payload")
_MAX_DEPTH = 200
_MAX_ITEMS = 50_000
"""Messages in all histories together: each turn repeats what came before it. About 220 turns of two messages."""
_MAX_CHARACTERS = 32 * 1024 * 1024
_ITEMS = ("messages", "input", "contents")
_ANSWERING = frozenset({"assistant", "model", "ai"})


def matches(value: JsonValue) -> bool:
    """Whether a request to a model provider is in here, or in the first item of a list."""
    return any(find_invocation(item) is not None for _, item in _invocations(value)[:1])


def to_spans(value: JsonValue) -> list[Span]:
    """One run for each invocation; raises `RecordError` where there is no request, or it is too deep."""
    if not is_shallow(value, _MAX_DEPTH):
        raise RecordTooLarge(f"The payload is nested deeper than {_MAX_DEPTH} levels.")
    return [span for path, item in _invocations(value) for span in _run(path, item)]


def _invocations(value: JsonValue) -> list[tuple[str, JsonValue]]:
    """Each with the place where it stands: logs are lists, but so is a conversation alone."""
    if isinstance(value, list) and find_invocation(value) is None:
        return [(f"[{position}].", item) for position, item in enumerate(value)]
    return [("", value)]


def _run(path: str, value: JsonValue) -> list[Span]:
    found = find_invocation(value)
    if found is None:
        field = f"{path}request"
        raise RecordError(f"{field} must hold 'messages', 'contents', or 'input' with a 'model'.", field=field)
    trace_id = _trace_id(value, found.log)
    calls = _calls(found)
    root = _root(found, trace_id, calls[-1])
    alone = root.start_ns if len(calls) == 1 else None
    return [root, *(_model_span(call, root, n, alone) for n, call in enumerate(calls, start=1))]


# --- turns -------------------------------------------------------------------------------------


def _calls(found: Invocation) -> list[Attributes]:
    """The attributes of each model call, in order."""
    name = next((name for name in _ITEMS if isinstance(found.request.get(name), list)), "")
    items = found.request.get(name) or []
    turns = _turns(items)
    place = _place(found.log)
    earlier: list[Attributes] = [
        {"provider.request": {**found.request, name: items[:start]}, "provider.answer": items[start:end], **place}
        for start, end in (turns if _is_affordable(items, turns) else [])
    ]
    if earlier and found.response is None and turns[-1][1] == len(items):
        return earlier
    own = {"provider.request": found.request, "provider.response": found.response}
    return [*earlier, _without_none({**own, **place, **_outcome(found)})]


def _turns(items: list[JsonValue]) -> list[tuple[int, int]]:
    """Where each assistant turn begins and ends. What stands before the first question is no answer."""
    turns = []
    position = next((i for i, item in enumerate(items) if _is_question(item)), len(items))
    for is_answer, group in groupby(items[position:], key=_is_answer):
        end = position + sum(1 for _ in group)
        if is_answer:
            turns.append((position, end))
        position = end
    return turns


def _is_answer(item: JsonObject) -> bool:
    role, kind = item.get("role"), str(item.get("type"))
    return role in _ANSWERING if isinstance(role, str) else kind.endswith("_call") or kind == "reasoning"


def _is_question(item: JsonObject) -> bool:
    return not _is_answer(item) and item.get("role") not in ("system", "developer")


def _is_affordable(items: list[JsonValue], turns: list[tuple[int, int]]) -> bool:
    """A longer conversation is kept as one call: its histories together grow with the square of its length."""
    if sum(end for _, end in turns) > _MAX_ITEMS:
        return False
    sizes = list(accumulate(len(json.dumps(item)) for item in items))
    return sum(sizes[end - 1] for _, end in turns) <= _MAX_CHARACTERS


# --- spans -------------------------------------------------------------------------------------


def _place(log: JsonObject) -> Attributes:
    """Which model of whom, where the body does not say it."""
    return _without_none(
        {
            "provider.model": _first_text(log, "modelid", "modelname", "model", "deploymentname"),
            "provider.name": _NAMES.get(str(log.get("schematype"))) or _first_text(log, "provider"),
        }
    )


_NAMES = {"ModelInvocationLog": "aws.bedrock"}
"""Schemas of logs that belong to one provider, with the provider's name in OpenTelemetry."""


def _outcome(found: Invocation) -> Attributes:
    return {
        "provider.answered_model": _first_text(found.log, "modelversion"),
        "provider.input_tokens": as_count(_first(found.log, "inputtokencount", "prompttokens")),
        "provider.output_tokens": as_count(_first(found.log, "outputtokencount", "completiontokens")),
        **_failure(found),
    }


def _failure(found: Invocation) -> Attributes:
    error = failure_of(found.response) or _first(found.log, "error", "errorcode")
    return {
        "provider.error": error or None,
        "provider.status": as_count(_first(found.log, "statuscode", "responsecode")),
    }


def _root(found: Invocation, trace_id: str, last: Attributes) -> Span:
    others = {f"provider.log.{name}": value for name, value in found.rest.items()}
    return Span(
        trace_id=trace_id,
        span_id=f"{trace_id[:8]}{0:08x}",
        name="conversation",
        start_ns=_time(found.log),
        status=_status(found, last),
        attributes={"provider.kind": "conversation", **_without_none(_failure(found)), **others},
        scope=_SCOPE,
        resource=_without_none({"cloud.region": _first_text(found.log, "inferenceregion", "region", "location")}),
    )


def _status(found: Invocation, last: Attributes) -> SpanStatus:
    """`ok` when the last answer asks for nothing more: there are no times that could say that the run has ended."""
    failure = _failure(found)
    if failure["provider.error"] is not None or (failure["provider.status"] or 0) >= 400:
        return "error"
    answer = last.get("provider.answer")
    response = response_of(last.get("provider.response") if answer is None else {"output": answer})
    has_ended = response is not None and not any(isinstance(part, CallPart) for part in response.answer.parts)
    return "ok" if has_ended else "unset"


def _model_span(call: Attributes, root: Span, number: int, start_ns: int | None) -> Span:
    return Span(
        trace_id=root.trace_id,
        span_id=f"{root.trace_id[:8]}{number:08x}",
        parent_id=root.span_id,
        name="model",
        start_ns=start_ns,
        attributes={"provider.kind": "invocation", **call},
        scope=_SCOPE,
        resource=root.resource,
    )


def _without_none(values: Attributes) -> Attributes:
    return {name: value for name, value in values.items() if value is not None}


def _trace_id(value: JsonValue, log: JsonObject) -> str:
    """32 hex digits, from the provider's id of the request or else from all that is there."""
    own = _first(log, "requestid", "correlationid")
    text = json.dumps(value, sort_keys=True) if own in (None, "") else f"request {json.dumps(own)}"
    return sha256_hex(text.encode())[:32]


def _time(log: JsonObject) -> int | None:
    """Nanoseconds since 1970."""
    try:
        return nanoseconds_of(parse_time(_first(log, "timestamp", "loggingtime", "starttime", "time")))
    except (TypeError, ValueError, OverflowError):
        return None


def _first(log: JsonObject, *names: str) -> JsonValue:
    return next((value for name in names if (value := log.get(name)) is not None), None)


def _first_text(log: JsonObject, *names: str) -> str | None:
    return next((text for name in names if (text := as_text(log.get(name)))), None)
