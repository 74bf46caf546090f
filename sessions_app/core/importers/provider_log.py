"""Finding the request and the response in what was logged of one invocation of a model.

A request is an object with `messages` (OpenAI chat, Anthropic, Bedrock), `input` and `model` (OpenAI Responses) or
`contents` (Google), or a bare list of messages with roles. It may stand alone, or beside its response in a log:

| log | request | response |
| --- | --- | --- |
| any | `request`, `request_body`, `body`, `input` | `response`, `response_body`, `output` |
| Amazon Bedrock, `ModelInvocationLog` | `input.inputBodyJson` | `output.outputBodyJson` |
| Azure, under `properties` | `requestBody`, `requestMessages` | `responseBody`, `responseMessages` |
| Google Vertex AI | `full_request` | `full_response` |

Bodies may be JSON inside text, or wrapped with what HTTP says of them: `{"method", "url", "body"}`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.attributes import as_text

_REQUESTS = (
    *("request", "requestbody", "fullrequest", "requestpayload", "backendrequestbody", "requestmessages"),
    *("body", "input"),
)
_RESPONSES = (
    *("response", "responsebody", "fullresponse", "responsepayload", "backendresponsebody", "responsemessages"),
    "output",
)
_BODIES = ("body", "inputBodyJson", "outputBodyJson")
_NOT_REQUESTS = frozenset({"format", "items", "steps", "final_output", "user_input"})
"""Fields of records that also have an `input` and a `model`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Invocation:
    """One call of a model as it was logged."""

    request: JsonObject
    response: JsonValue = None
    log: JsonObject = field(default_factory=dict)
    """All fields around the bodies, by their names in lower case without underscores."""
    rest: JsonObject = field(default_factory=dict)
    """Those that are in neither body, wrappings included."""


def find_invocation(value: JsonValue) -> Invocation | None:
    """None when no request to a model provider is in here."""
    if isinstance(value, list):
        return Invocation(request={"messages": value}) if _are_messages(value) else None
    if not isinstance(value, dict):
        return None
    log = _flat(value)
    answered = next((name for name in _RESPONSES if _body(log.get(name)) is not None), "")
    response = _body(log.get(answered))
    if is_request(value):
        request = {name: item for name, item in value.items() if _folded(name) not in _RESPONSES}
        return Invocation(request=request, response=response, log=log)
    for asked in _REQUESTS:
        body = _body(log.get(asked))
        request = {"messages": body} if _are_messages(body) else body
        if is_request(request):
            facts = {**_wrapping(log.get(asked)), **_wrapping(log.get(answered))}
            rest = _rest(log, asked, answered)
            return Invocation(request=request, response=response, log={**_flat(facts), **log}, rest=rest)
    return None


def _flat(value: JsonObject) -> JsonObject:
    """The fields by their folded names, those under `properties` among them."""
    properties = parsed(value.get("properties"))
    inner = properties if isinstance(properties, dict) else {}
    return {_folded(name): item for name, item in {**value, **inner}.items()}


def _folded(name: str) -> str:
    return name.replace("_", "").lower()


def _body(value: JsonValue) -> JsonValue:
    """Without what may be wrapped around it."""
    value = parsed(value)
    if not isinstance(value, dict) or is_request(value):
        return value
    return next((parsed(value[name]) for name in _BODIES if value.get(name) is not None), value)


def _wrapping(value: JsonValue) -> JsonObject:
    """What is wrapped around a body."""
    value = parsed(value)
    if not isinstance(value, dict) or is_request(value) or not any(name in value for name in _BODIES):
        return {}
    return {name: item for name, item in value.items() if name not in _BODIES}


def _rest(log: JsonObject, *held: str) -> JsonObject:
    kept = {name: _wrapping(item) or None if name in held else item for name, item in log.items()}
    return {name: item for name, item in kept.items() if item is not None and name != "properties"}


def is_request(value: JsonValue) -> bool:
    """Whether this is the body of a request to a model."""
    if not isinstance(value, dict):
        return False
    if _are_messages(value.get("messages")) or _are_contents(value.get("contents")):
        return True
    said = value.get("input")
    is_input = (isinstance(said, str) and bool(said)) or _are_items(said)
    return is_input and as_text(value.get("model")) is not None and _NOT_REQUESTS.isdisjoint(value)


def _are_messages(value: JsonValue) -> bool:
    """Messages with roles; those of Pydantic AI have a `kind` in its place."""
    return _are_all(value, lambda item: isinstance(item.get("role"), str))


def _are_contents(value: JsonValue) -> bool:
    return _are_all(value, lambda item: isinstance(item.get("parts"), list))


def _are_items(value: JsonValue) -> bool:
    return _are_all(value, lambda item: isinstance(item.get("role") or item.get("type"), str))


def _are_all(value: JsonValue, is_one: Callable[[JsonObject], bool]) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) and is_one(item) for item in value)
