"""Requests and responses of model providers as they went over the wire, after `importers.provider_payload`.

| attribute | holds |
| --- | --- |
| `provider.kind` | `conversation` (the span around all) or `invocation` (one call of a model) |
| `provider.request` | the request body, in an earlier turn with the messages that went before its answer |
| `provider.response` | the response body, or the list of its chunks |
| `provider.answer` | of an earlier turn: the messages of its answer, as a later request repeats them |
| `provider.model` `.name` `.answered_model` | what a log around the bodies says |
| `provider.input_tokens` `.output_tokens` | likewise |
| `provider.error` `.status` | the error of the response or the log, the status of HTTP; on both kinds |
| `provider.log.<name>` | all other fields of the log, on the conversation; names without case and underscores |

The region is the resource's `cloud.region`.
"""

from __future__ import annotations

from sessions_app.core.conventions.bodies import put_request, put_response
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text
from sessions_app.core.spans.provider_messages import ProviderResponse, request_of, response_of
from sessions_app.core.spans.reading import Reading
from sessions_app.core.spans.span import Span

CONVENTION = "provider-payload"

_SESSION = ("provider.log.sessionid", "provider.log.conversationid", "provider.log.threadid")
_USER = ("provider.log.userid", "provider.log.user")
_TENANT = ("provider.log.tenantid",)


def read(span: Span) -> Reading | None:
    """What the span says, or None when it is no payload of a provider."""
    said = Read(span.attributes)
    match said.text("provider.kind"):
        case "conversation":
            reading = _conversation(said)
        case "invocation":
            reading = _invocation(said)
        case _:
            return None
    reading.used = frozenset(said.used)
    return reading


def _conversation(said: Read) -> Reading:
    return Reading(
        convention=CONVENTION,
        kind="chain",
        session_id=said.text(*_SESSION),
        user_id=said.text(*_USER),
        tenant_id=said.text(*_TENANT),
        error=_error(said),
    )


def _invocation(said: Read) -> Reading:
    body = said.object("provider.request") or {}
    response = _response(said)
    reading = Reading(convention=CONVENTION, kind="model", user_id=_user(body))
    if response is not None:
        put_response(reading, response)
    if (request := request_of(body)) is not None:
        put_request(reading, request)
    named = said.text("provider.model")
    reading.model = reading.model or named
    reading.answered_model = reading.answered_model or said.text("provider.answered_model")
    reading.provider = said.text("provider.name")
    reading.input_tokens = _either(reading.input_tokens, said.count("provider.input_tokens"))
    reading.output_tokens = _either(reading.output_tokens, said.count("provider.output_tokens"))
    reading.error = _error(said)
    return reading


def _response(said: Read) -> ProviderResponse | None:
    answer = said.list("provider.answer")
    body = said.json("provider.response")
    return response_of(body) if answer is None else response_of({"output": answer})


def _either(count: int | None, other: int | None) -> int | None:
    return other if count is None else count


def _user(body: JsonObject) -> str | None:
    """OpenAI has `safety_identifier` or `user`, Anthropic `metadata.user_id`."""
    metadata = body.get("metadata")
    named = metadata.get("user_id") if isinstance(metadata, dict) else None
    return as_text(named) or as_text(body.get("safety_identifier")) or as_text(body.get("user"))


def _error(said: Read) -> ErrorInfo | None:
    """What the response or the log says went wrong, else an HTTP status that means it."""
    error = _error_of(said.json("provider.error"))
    status = said.count("provider.status")
    if error is None and status is not None and status >= 400:
        return ErrorInfo(type=None, message=f"HTTP {status}")
    return error


def _error_of(value: JsonValue) -> ErrorInfo | None:
    if isinstance(value, str) and value:
        return ErrorInfo(type=value, message=None)
    if not isinstance(value, dict) or not value:
        return None
    kind = as_text(value.get("type")) or as_text(value.get("code"))
    extra = {name: item for name, item in value.items() if name not in ("type", "message")}
    return ErrorInfo(type=kind, message=as_text(value.get("message")), extra=extra)
