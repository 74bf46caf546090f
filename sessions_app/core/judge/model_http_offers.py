"""Whether what went over the wire beside the words is what the step says: model, settings, tools and earlier calls.

Libraries write schemas of tools anew for each provider and keep the names of what they hold, so names are compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from sessions_app.core.history import nodes
from sessions_app.core.judge.reading import as_object, object_of, objects_in, seen_message, value_of
from sessions_app.core.model_names import could_be_same_model
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.matching import Tally, first_mismatch
from sessions_app.core.run import ModelCall
from sessions_app.core.spans.provider_messages.wire import WireCall, WireRequest

_NUMBERS = ("temperature", "top_p", "seed", "max_tokens", "presence_penalty", "frequency_penalty")
_LISTS = ("function_tools", "output_tools")
_ONLY_SOMETIMES = ("defer_loading", "unless_native", "with_native", "unless_tool_kind")
"""Fields of a definition that keep a library from sending it with each request."""


def offered_otherwise(call: ModelCall, wire: WireRequest) -> str | None:
    """How the request went out with other things beside its words than the step has."""
    if not could_be_same_model(call.model, wire.model):
        return f"asks {wire.model}, the step {call.model}"
    said = _other_setting(object_of(call.settings), wire) or _other_format(object_of(call.parameters), wire)
    return said or _other_tools(call, wire) or _other_past(call, wire)


def _other_setting(settings: JsonObject, wire: WireRequest) -> str | None:
    for name in _NUMBERS:
        said, sent = settings.get(name), wire.settings.get(name)
        is_told = isinstance(said, int | float) or (said is None and name in settings)
        if is_told and isinstance(sent, int | float) and said != sent:
            has = "none" if said is None else said
            return f"is sent with the {name} {sent}, the request of the step has {has}"
    return None


def _other_format(parameters: JsonObject, wire: WireRequest) -> str | None:
    """An output as JSON, in a request that the step says has none, or by a schema of other fields."""
    asked = wire.settings.get("response_format") or as_object(wire.settings.get("text")).get("format")
    if not isinstance(asked, dict) or asked.get("type") not in _AS_JSON or "output_object" not in parameters:
        return None
    if parameters["output_object"] is None:
        return "asks for an output by a schema or as JSON, the request of the step does not"
    said, sent = (_fields_of(each) for each in (parameters["output_object"], asked))
    return "asks for an output of other fields than the request of the step" if sent and said != sent else None


_AS_JSON = ("json_schema", "json_object")


def _fields_of(asked: JsonObject) -> set[str]:
    """Of the schema, which protocols put at different depths; none where there is no schema."""
    inner = as_object(asked.get("json_schema"))
    schema = as_object(inner.get("schema")) or inner or as_object(asked.get("schema"))
    return set(as_object(schema.get("properties")))


# --- tools -------------------------------------------------------------------------------------


def _other_tools(call: ModelCall, wire: WireRequest) -> str | None:
    sent = {tool.name: tool.parameters for tool in wire.tools}
    said = _definitions(call)
    if said is None:
        return None
    missing = next((name for name, tool in said.items() if name not in sent and not _is_held_back(tool)), None)
    if missing is not None:
        return f"does not offer the tool {missing}, the request of the step does"
    # What a provider runs itself comes without a schema.
    added = next((name for name, schema in sent.items() if schema is not None and name not in said), None)
    if added is not None and _are_all_known(call):
        return f"offers the tool {added}, the request of the step does not"
    other = next((name for name, schema in sent.items() if _has_other_fields(said.get(name), schema)), None)
    return None if other is None else f"offers the tool {other} with other arguments than the request of the step"


def _definitions(call: ModelCall) -> dict[str, JsonObject] | None:
    """Tools that the step says were offered, by name; None where it does not say."""
    parameters = object_of(call.parameters)
    listed = [each for name in _LISTS for each in objects_in(parameters.get(name))]
    if "function_tools" not in parameters:
        listed += objects_in([value_of(tool) for tool in call.tools or ()])
        if not listed and call.tools is None:
            return None
    return {str(tool.get("name")): tool for tool in listed}


def _are_all_known(call: ModelCall) -> bool:
    """Agents that a run can be handed to stand in a list of their own."""
    return "function_tools" in object_of(call.parameters)


def _is_held_back(tool: JsonObject) -> bool:
    return any(tool.get(name) for name in _ONLY_SOMETIMES)


def _has_other_fields(said: JsonObject | None, sent: JsonObject | None) -> bool:
    schema = None if said is None else said.get("parameters_json_schema", said.get("parameters"))
    if not isinstance(schema, dict) or sent is None:
        return False
    return set(as_object(schema.get("properties"))) != set(as_object(sent.get("properties")))


# --- calls of earlier answers ------------------------------------------------------------------


def _other_past(call: ModelCall, wire: WireRequest) -> str | None:
    """By their ids, which libraries may join with those of a protocol, and which servers may use again: the calls of
    one id are held against each other in their order."""
    asked = _asked(call)
    if not asked:
        return None
    told: Counter[str] = Counter()
    for sent in wire.calls:
        if sent.call_id is not None and not _is_among(sent, asked.get(sent.call_id, []), told[sent.call_id]):
            return f"tells of another call of {sent.name} than the request of the step"
        told[sent.call_id or ""] += 1
    strange = next((each for each in wire.answered if each not in asked), None)
    return None if strange is None else "tells of an answer to a call that the request of the step does not have"


def _asked(call: ModelCall) -> dict[str, list[JsonObject]]:
    """By the id of a call: all that is told of it, oldest first. Answers count where the calls were left out."""
    found: dict[str, list[JsonObject]] = defaultdict(list)
    for node in [*nodes(call.history)][::-1]:
        seen = seen_message(node.message, step=0)
        for part in (each for each in seen.parts if isinstance(each.get("tool_call_id"), str)):
            for name in _ids(part):
                found[name].append(part)
    calls = {name: [part for part in parts if "args" in part] for name, parts in found.items()}
    return {name: calls[name] or parts for name, parts in found.items()}


def _ids(part: JsonObject) -> set[str]:
    whole = str(part.get("tool_call_id"))
    return {whole, *whole.split("|")}


def _is_among(sent: WireCall, parts: list[JsonObject], place: int) -> bool:
    if not parts:
        return False
    part = parts[min(place, len(parts) - 1)]
    return "args" not in part or is_same_call(part, sent)


def is_same_call(part: JsonObject, sent: WireCall) -> bool:
    """The id of a call is made up where the protocol has none."""
    is_named_so = part.get("tool_name") == sent.name and sent.call_id in (None, *_ids(part))
    given, args = _arguments(sent.arguments), _arguments(part.get("args"))
    is_redacted = any(PLACEHOLDER.search(str(each)) for each in (given, args))
    return is_named_so and (is_redacted or first_mismatch(given, args, raw=given, path="args", tally=Tally()) is None)


def _arguments(value: JsonValue) -> JsonValue:
    read = recorded_arguments(None if value is None else Payload.of(value))
    return read[_AS_TEXT] if isinstance(read, dict) and set(read) == {_AS_TEXT} else read


_AS_TEXT = "INVALID_JSON"
"""Under this name Pydantic AI sends back arguments that were no JSON (`ToolCallPart.args_as_dict`)."""
