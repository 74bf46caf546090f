"""One step as a span: its name, its kind, and its attributes in the words of GenAI."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sessions_app.core.formats.json_writer import array_text
from sessions_app.core.formats.values import write_value
from sessions_app.core.otlp_export import names
from sessions_app.core.otlp_export.attributes import Value, json_attribute, payload_text
from sessions_app.core.otlp_export.facts import facts_of_step, written_step
from sessions_app.core.otlp_export.messages import MessageWriter, instructions_in, written_message
from sessions_app.core.otlp_export.tools import definitions_of
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import AgentCall, ModelCall, OtherCall, Retrieval, Step, ToolCall

INTERNAL, CLIENT = 1, 3
_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "frequency_penalty", "presence_penalty", "seed")


@dataclass(frozen=True, kw_only=True, slots=True)
class Described:
    """What is said of a step in a span."""

    name: str
    attributes: Mapping[str, Value]
    payloads: Mapping[str, Payload | None]
    """Values that stand as text in an attribute, by their field in the record."""
    kind: int = INTERNAL


def described(step: Step, writer: MessageWriter) -> Described:
    match step.call:
        case ModelCall():
            return _model(step.call, writer)
        case ToolCall():
            return _tool(step.call)
        case Retrieval():
            return _retrieval(step, step.call)
        case AgentCall():
            return _agent(step, step.call)
        case OtherCall():
            return _other(step, step.call)


def attributes_of_step(step: Step, said: Described) -> dict[str, Value]:
    """All attributes of the step's span."""
    types = {field: payload.media_type for field, payload in said.payloads.items() if payload is not None}
    return {
        **said.attributes,
        "user.id": step.user_id,
        "error.type": step.error.type if step.error else None,
        names.INDEX: step.index,
        names.MEDIA_TYPES: json_attribute(types or None),
        names.STEP: facts_of_step(step),
    }


# --- kinds -------------------------------------------------------------------------------------


def _model(call: ModelCall, writer: MessageWriter) -> Described:
    instructions = instructions_in(call.history)
    return Described(
        name=_named("chat", call.model),
        kind=CLIENT,
        payloads={"response": call.response},
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": call.provider,
            "gen_ai.request.model": call.model,
            "gen_ai.response.model": call.answered_model,
            "gen_ai.response.finish_reasons": None if call.finish_reason is None else [call.finish_reason],
            "gen_ai.usage.input_tokens": call.input_tokens,
            "gen_ai.usage.output_tokens": call.output_tokens,
            **_settings(call),
            "gen_ai.system_instructions": text_parts(instructions),
            "gen_ai.input.messages": _input(call, writer),
            "gen_ai.output.messages": _output(call),
            "gen_ai.tool.definitions": json_attribute(definitions_of(call)),
            names.TOOLS_REGISTERED: True if call.tools is not None else None,
        },
    )


def _input(call: ModelCall, writer: MessageWriter) -> str | None:
    return None if call.history is None else array_text(writer.texts(call.history)).decode()


def _output(call: ModelCall) -> str | None:
    if call.response is None:
        return None
    response = call.response if call.response.is_json else Payload(content=write_value(call.response))
    value = response.value
    return json_attribute(written_message(value, finish_reason=call.finish_reason or _reason_in(value) or "unknown"))


def _reason_in(message: JsonValue) -> str | None:
    reason = message.get("finish_reason") if isinstance(message, dict) else None
    return reason if isinstance(reason, str) else None


def _settings(call: ModelCall) -> dict[str, Value]:
    """Those that GenAI has a name for; all of them stand among the facts as they were recorded."""
    value = call.settings.value if call.settings else None
    settings = value if isinstance(value, dict) else {}
    said: dict[str, Value] = {
        f"gen_ai.request.{name}": settings[name] for name in _SETTINGS if _is_number(settings.get(name))
    }
    stop = settings.get("stop_sequences")
    if isinstance(stop, list) and all(isinstance(text, str) for text in stop):
        said["gen_ai.request.stop_sequences"] = stop
    return said


def _is_number(value: JsonValue) -> bool:
    """One that OTLP can carry."""
    return isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63)


def _tool(call: ToolCall) -> Described:
    return Described(
        name=_named("execute_tool", call.tool_name),
        payloads={"arguments": call.arguments, "result": call.result},
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.tool_name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.call.arguments": payload_text(call.arguments),
            "gen_ai.tool.call.result": payload_text(call.result),
        },
    )


def _retrieval(step: Step, call: Retrieval) -> Described:
    chunks = written_step(step).get("chunks")
    return Described(
        name=_named("retrieval", step.name),
        kind=CLIENT,
        payloads={"query": call.query},
        attributes={
            "gen_ai.operation.name": "retrieval",
            "gen_ai.data_source.id": step.name,
            "gen_ai.retrieval.query.text": payload_text(call.query),
            "gen_ai.retrieval.documents": None if chunks is None else chunks.decode(),
        },
    )


def _agent(step: Step, call: AgentCall) -> Described:
    return Described(
        name=_named("invoke_agent", step.name),
        payloads={"arguments": call.arguments, "result": call.result},
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": step.name,
            "gen_ai.input.messages": one_message("user", call.arguments),
            "gen_ai.output.messages": one_message("assistant", call.result),
        },
    )


def _other(step: Step, call: OtherCall) -> Described:
    return Described(
        name=step.name,
        payloads={"arguments": call.arguments, "result": call.result},
        attributes={names.ARGUMENTS: payload_text(call.arguments), names.RESULT: payload_text(call.result)},
    )


# --- said alike --------------------------------------------------------------------------------


def _named(operation: str, target: str | None) -> str:
    return operation if not target else f"{operation} {target}"


def text_parts(text: str | None) -> str | None:
    return None if text is None else json_attribute([{"type": "text", "content": text}])


def one_message(role: str, payload: Payload | None) -> str | None:
    """A conversation of one text."""
    text = payload_text(payload)
    if text is None:
        return None
    reason = {"finish_reason": "stop"} if role == "assistant" else {}
    return json_attribute([{"role": role, "parts": [{"type": "text", "content": text}], **reason}])
