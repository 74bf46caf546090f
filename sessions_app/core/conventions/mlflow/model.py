"""Calls of a model in MLflow's spans."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.conventions.bodies import put_messages, put_response
from sessions_app.core.conventions.told_twice import are_offers_told_otherwise, are_settings_told_otherwise
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject
from sessions_app.core.spans.attributes import Read, as_count, as_text
from sessions_app.core.spans.provider_messages import (
    ProviderRequest,
    ProviderResponse,
    request_of,
    response_of,
    tools_of,
)
from sessions_app.core.spans.provider_messages.fields import first, text
from sessions_app.core.spans.provider_messages.requests import settings_of
from sessions_app.core.spans.reading import CallPart, ChatMessage, Reading
from sessions_app.core.spans.span import Span

CONVENTION = "mlflow"
_CHUNK = "mlflow.chunk.item."
_SETTINGS = (
    *("temperature", "top_p", "top_k", "seed", "n", "max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("stop", "stop_sequences", "frequency_penalty", "presence_penalty", "response_format", "tool_choice"),
    *("parallel_tool_calls", "reasoning_effort", "reasoning", "thinking", "stream", "dimensions"),
)


def model_reading(said: Read, span: Span) -> Reading:
    """One request to a model; what the span quotes of it counts before what MLflow says of it."""
    inputs = said.json("mlflow.spanInputs")
    request, response = request_of(inputs), _response(said, span)
    # All fields of the request but its messages stand beside it once more.
    said.raw(*(inputs if isinstance(inputs, dict) else ()))
    invocation = said.object("invocation_params") or {}
    reading = Reading(
        convention=CONVENTION,
        model=_model(said, request, invocation),
        provider=as_text(said.json("mlflow.llm.provider")),
        settings=_settings(said, request, invocation),
    )
    reading.are_settings_told_otherwise = _are_settings_told_otherwise(said, request, invocation)
    if request is not None:
        put_messages(reading, request)
    _add_tools(reading, request, said, invocation)
    _add_answer(reading, response)
    _add_usage(reading, said)
    return reading


def embedding_reading(said: Read, span: Span) -> Reading:
    """Texts turned into vectors; the vectors themselves are of no use to anyone here."""
    inputs = said.json("mlflow.spanInputs")
    model = _model(said, None, inputs if isinstance(inputs, dict) else {})
    reading = Reading(
        convention=CONVENTION,
        query=first(inputs, "input", "texts", "text") if isinstance(inputs, dict) else inputs,
        embedding_model=model,
        model=model,
        settings=_settings(said, None, {}),
    )
    _add_usage(reading, said)
    return reading


def _add_answer(reading: Reading, response: ProviderResponse | None) -> None:
    if response is not None:
        put_response(reading, response)
        reading.answer = response.answer if response.answer.parts else None


def _add_usage(reading: Reading, said: Read) -> None:
    usage = said.object("mlflow.chat.tokenUsage") or {}
    if reading.input_tokens is None:
        reading.input_tokens = as_count(usage.get("input_tokens"))
    if reading.output_tokens is None:
        reading.output_tokens = as_count(usage.get("output_tokens"))


def _add_tools(reading: Reading, request: ProviderRequest | None, said: Read, invocation: JsonObject) -> None:
    """MLflow's own list leaves out fields that it has no name for."""
    listed = (tools_of(each) for each in (said.json("tools"), said.json("mlflow.chat.tools"), invocation.get("tools")))
    offers = [each for each in (request.tools if request else None, *listed) if each]
    reading.tools = offers[0] if offers else None
    reading.are_tools_told_otherwise = any(are_offers_told_otherwise(reading.tools, each) for each in offers[1:])


def _model(said: Read, request: ProviderRequest | None, invocation: JsonObject) -> str | None:
    """`mlflow.llm.model` may be the model that answered, so it is asked last."""
    asked, known = as_text(said.json("model")), as_text(said.json("mlflow.llm.model"))
    return (request.model if request else None) or asked or text(invocation, "model", "model_name") or known


def _settings(said: Read, request: ProviderRequest | None, invocation: JsonObject) -> JsonObject | None:
    own = (request.settings if request else None) or {}
    return settings_of({**invocation, **_named(said), **own})


def _are_settings_told_otherwise(said: Read, request: ProviderRequest | None, invocation: JsonObject) -> bool:
    """All fields of the request stand beside it once more."""
    own, named = request.settings if request else None, _named(said)
    return any(are_settings_told_otherwise(*pair) for pair in ((own, named), (own, invocation), (named, invocation)))


def _named(said: Read) -> JsonObject:
    return {name: said.json(name) for name in _SETTINGS if said.has(name)}


def _response(said: Read, span: Span) -> ProviderResponse | None:
    """What MLflow made of a stream lacks the calls for tools, and says it ended with `stop`; its chunks know better."""
    whole = response_of(said.json("mlflow.spanOutputs"))
    chunks = [parsed(event.attributes.get("mlflow.chunk.value")) for event in span.events if _is_chunk(event.name)]
    streamed = response_of(chunks) if chunks and not span.dropped else None
    if whole is None or streamed is None:
        return whole or streamed
    words = whole.answer.words(), streamed.answer.words()
    if all(isinstance(chunk, dict) for chunk in chunks) and all(words) and words[0] != words[1]:
        whole = replace(whole, is_told_otherwise=True)
    if any(isinstance(part, CallPart) for part in whole.answer.parts):
        return whole
    calls = tuple(part for part in streamed.answer.parts if isinstance(part, CallPart))
    answer = ChatMessage(role="assistant", parts=whole.answer.parts + calls)
    return replace(whole, answer=answer, finish_reason=streamed.finish_reason or whole.finish_reason)


def _is_chunk(name: str) -> bool:
    return name.startswith(_CHUNK)
