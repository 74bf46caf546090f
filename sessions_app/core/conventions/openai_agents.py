"""What the OpenAI Agents SDK's own tracing says, after `importers.openai_agents` made spans of it.

| attribute | holds |
| --- | --- |
| `openai_agents.type` | `trace`, or the type of the span's data: `agent`, `generation`, `response`, `function` ... |
| `openai_agents.id` | the SDK's id |
| `openai_agents.data.<name>` | a field of `span_data`, unless it was null |
| `openai_agents.error` | `{"message", "data"}` |
| `openai_agents.group_id` | the conversation (on the trace) |
| `openai_agents.metadata.<name>` | what the application said about the trace |

A `response` span tells of a call of the Responses API and has its id and usage alone: the content stays with the
provider. The usage of `custom` spans (`turn`, `task`) sums up that of the model calls inside and is not read. A
tool's error may be redacted by the SDK; it is an error nonetheless.
"""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.guardrails import GUARDED
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import Read, as_text, without_none
from sessions_app.core.spans.provider_messages import ProviderResponse, request_of, response_of
from sessions_app.core.spans.provider_messages.usage import usage_of
from sessions_app.core.spans.reading import ChatMessage, Reading, ToolDefinition
from sessions_app.core.spans.span import Span

CONVENTION = "openai-agents"

_USER = ("openai_agents.metadata.user_id", "openai_agents.metadata.userId", "openai_agents.metadata.user")
_TENANT = ("openai_agents.metadata.tenant_id", "openai_agents.metadata.tenantId")


def read(span: Span) -> Reading | None:
    """What the span says, or None when it is none of this SDK's."""
    said = Read(span.attributes)
    kind = said.text("openai_agents.type")
    if kind is None:
        return None
    said.raw("openai_agents.id")
    reading = _READERS.get(kind, _unknown)(said)
    reading.session_id = said.text("openai_agents.group_id")
    reading.user_id = said.text(*_USER)
    reading.tenant_id = said.text(*_TENANT)
    reading.error = _error(said)
    reading.framework = CONVENTION
    reading.used = frozenset(said.used)
    return reading


def _unknown(said: Read) -> Reading:
    """A kind that a later version brought, or speech: its fields stay as they came."""
    return Reading(convention=CONVENTION, name=said.text("openai_agents.data.name"))


def _trace(said: Read) -> Reading:
    return Reading(convention=CONVENTION, kind="chain", name=said.text("openai_agents.workflow_name"))


def _chain(said: Read) -> Reading:
    name = said.text("openai_agents.data.name")
    return Reading(convention=CONVENTION, kind="chain", name=name)


def _guardrail(said: Read) -> Reading:
    triggered = said.raw("openai_agents.data.triggered")
    reading = _chain(said)
    reading.output = GUARDED.get(triggered) if isinstance(triggered, bool) else None
    return reading


def _agent(said: Read) -> Reading:
    name = said.text("openai_agents.data.name")
    names = said.list("openai_agents.data.tools")
    tools = None if names is None else tuple(ToolDefinition(name=tool) for tool in names if as_text(tool))
    return Reading(convention=CONVENTION, kind="agent", name=name, agent_name=name, tools=tools)


def _handoff(said: Read) -> Reading:
    source = said.text("openai_agents.data.from_agent")
    target = said.text("openai_agents.data.to_agent")
    name = None if target is None else f"handoff to {target}"
    return Reading(convention=CONVENTION, kind="handoff", name=name, agent_name=source, input=source, output=target)


def _function(said: Read) -> Reading:
    name = said.text("openai_agents.data.name")
    arguments = said.raw("openai_agents.data.input")
    result = said.raw("openai_agents.data.output")
    return Reading(
        convention=CONVENTION,
        kind="tool",
        name=name,
        tool_name=name,
        arguments=arguments,
        has_arguments=arguments is not None,
        result=result,
        has_result=result is not None,
    )


def _model(said: Read) -> Reading:
    response = _response(said.json("openai_agents.data.output"))
    input_tokens, output_tokens = usage_of(said.object("openai_agents.data.usage") or {})
    return Reading(
        convention=CONVENTION,
        kind="model",
        messages=_messages(said.json("openai_agents.data.input")),
        answer=response.answer if response else None,
        finish_reason=response.finish_reason if response else None,
        model=said.text("openai_agents.data.model"),
        settings=without_none(said.object("openai_agents.data.model_config") or {}),
        response_id=said.text("openai_agents.data.response_id"),
        input_tokens=input_tokens,
        output_tokens=output_tokens,
    )


_READERS: dict[str, Callable[[Read], Reading]] = {
    "trace": _trace,
    "agent": _agent,
    "generation": _model,
    "response": _model,
    "function": _function,
    "handoff": _handoff,
    "guardrail": _guardrail,
    "custom": _chain,
    "mcp_tools": _chain,
}


def _messages(value: JsonValue) -> tuple[ChatMessage, ...] | None:
    request = None if value is None else request_of({"input": value})
    return None if request is None else request.messages


def _response(value: JsonValue) -> ProviderResponse | None:
    """One answer may be several items; of a streamed one the SDK keeps the whole response, alone in the list."""
    only = value[0] if isinstance(value, list) and len(value) == 1 else value
    is_whole = isinstance(only, dict) and ("output" in only or "choices" in only)
    return response_of(only) if is_whole else response_of({"output": value})


def _error(said: Read) -> ErrorInfo | None:
    """The cause where it is told, else the SDK's sentence, which is kept beside the cause."""
    error = said.object("openai_agents.error")
    if not error:
        return None
    message = as_text(error.get("message"))
    data = error.get("data")
    others = dict(data) if isinstance(data, dict) else {} if data is None else {"data": data}
    cause = as_text(others.pop("error", None))
    if cause is None:
        return ErrorInfo(type=None, message=message, extra=others)
    return ErrorInfo(type=None, message=cause, extra={"summary": message, **others} if message else others)
