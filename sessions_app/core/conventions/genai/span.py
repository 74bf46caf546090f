"""The GenAI semantic conventions of OpenTelemetry, and what frameworks add to them.

Source: https://opentelemetry.io/docs/specs/semconv/gen-ai/ in its forms since 1.27. Messages are attributes of the span
(`messages`), attributes of one event or log record (`said`), or events and log records of their own
(`events`). Numbered attributes such as `gen_ai.prompt.0.role` are another family's and not read here.
"""

from __future__ import annotations

from sessions_app.core.conventions.genai import requests
from sessions_app.core.conventions.genai.agents import add_agent_run
from sessions_app.core.conventions.genai.events import Told, told_by, told_in_list
from sessions_app.core.conventions.genai.identity import add_identity
from sessions_app.core.conventions.genai.kinds import is_output_function, kind_of
from sessions_app.core.conventions.genai.messages import (
    answer_of,
    finish_reason_of,
    first_of,
    input_of,
    instructions_of,
    is_streamed_otherwise,
)
from sessions_app.core.conventions.genai.retrieval import RESULT, add_retrieval
from sessions_app.core.conventions.genai.said import Said, details_of, said_by
from sessions_app.core.conventions.genai.tool_runs import add_output_function, add_tool_run
from sessions_app.core.conventions.genai.tools_added import with_tools_added
from sessions_app.core.conventions.steering import is_steering
from sessions_app.core.conventions.told_twice import (
    are_messages_told_otherwise,
    are_settings_told_otherwise,
    are_tools_told_otherwise,
)
from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ErrorInfo
from sessions_app.core.spans.attributes import as_text, error_of, exception_of, without_none
from sessions_app.core.spans.reading import ChatMessage, Reading
from sessions_app.core.spans.span import Span

CONVENTION = "otel-genai"

_NOT_OURS = ("gen_ai.prompt", "gen_ai.completion")
_ADDED = ("pydantic_ai.all_messages", "all_messages_events", "model_request_parameters")
"""Names that mark a span of the family where it has no `gen_ai.*`."""

_SHOWN_ELSEWHERE = ("logfire.msg", "logfire.msg_template", "logfire.span_type", "logfire.json_schema")
"""What says nothing that the span's name and other attributes do not say."""

_PAUSES = frozenset({"CallDeferred", "ApprovalRequired", "SkipModelRequest"})
"""Exceptions by which Pydantic AI waits for somebody, or takes an answer of the team's code; nothing went wrong."""


def read(span: Span) -> Reading | None:
    """What the span says, or None when it holds nothing of this convention."""
    said = said_by(span)
    listed = said.take(told_in_list, "events")
    told = listed or told_by(span)
    if told is None and not _is_ours(said, span):
        return None
    reading = Reading(convention=CONVENTION, kind=kind_of(said, has_events=told is not None))
    add_identity(reading, said, span.scope)
    _add_facts(reading, said)
    _add_operation(reading, said, told, span)
    _add_error(reading, said, span)
    said.raw(*_SHOWN_ELSEWHERE)
    reading.used = frozenset(said.used)
    return reading


def _is_ours(said: Said, span: Span) -> bool:
    has_name = any(name.startswith("gen_ai.") and not name.startswith(_NOT_OURS) for name in said.names())
    return has_name or said.has_any(*_ADDED) or any(event.name == RESULT for event in span.events)


def _add_facts(reading: Reading, said: Said) -> None:
    """What spans of models and of agents say alike."""
    if reading.kind == "tool":
        return
    reading.name = said.take(as_text, "gen_ai.workflow.name", "gen_ai.task.name")
    reading.instructions = said.take(instructions_of, _INSTRUCTIONS)
    reading.tools = requests.tools_offered(said)
    reading.are_tools_told_otherwise = requests.are_tools_told_otherwise(said)
    reading.model = requests.model_of(said)
    reading.settings = requests.settings_of(said)


def _add_operation(reading: Reading, said: Said, told: Told | None, span: Span) -> None:
    match reading.kind:
        case "model":
            _add_model(reading, said)
            _add_answer(reading, said, told or Told(), span)
            _hold_against_records(reading, said, told or Told(), span)
        case "embedding":
            _add_model(reading, said)
            reading.embedding_model = reading.model
        case "tool" | "chain" if is_output_function(said):
            add_output_function(reading, said)
        case "tool":
            add_tool_run(reading, said, told)
        case "retrieval":
            add_retrieval(reading, said, span)
        case "handoff":
            _add_handoff(reading, said)
        case _:
            add_agent_run(reading, said, told, span)


def _add_model(reading: Reading, said: Said) -> None:
    """What only the model's own span says: on spans around it usage is a sum, and the provider may be the framework."""
    reading.provider = said.take(as_text, "gen_ai.provider.name", "gen_ai.system")
    reading.answered_model = said.take(as_text, "gen_ai.response.model")
    reading.response_id = said.take(as_text, "gen_ai.response.id")
    reading.input_tokens, reading.output_tokens = requests.usage_of(said)


def _add_answer(reading: Reading, said: Said, told: Told, span: Span) -> None:
    reading.messages = said.take(input_of, "gen_ai.input.messages") or told.messages or said.take(input_of, _PROMPT)
    if reading.framework == "pydantic-ai" and reading.messages is not None:
        reading.messages = with_tools_added(reading.messages)
    reading.answer = _answer(said) or told.answer or said.take(answer_of, _COMPLETION)
    if reading.messages is None:
        reading.input = said.take(_body, "gcp.vertex.agent.llm_request")
    if reading.answer is None:
        reading.output = said.take(_body, "gcp.vertex.agent.llm_response")
    reading.finish_reason = requests.finish_reason_of(said) or _told_finish_reason(said) or told.finish_reason
    reading.first_token_ns = requests.first_token_ns(said, span)


def _hold_against_records(reading: Reading, said: Said, told: Told, span: Span) -> None:
    """Events and log records may tell once more what the span's attributes tell, and messages how the answer ended."""
    records = [
        Reading(convention=CONVENTION, messages=told.messages, answer=told.answer, finish_reason=told.finish_reason),
        Reading(
            convention=CONVENTION,
            instructions=requests.instructions_of(said),
            finish_reason=_told_finish_reason(said),
        ),
        *(_record(Said(attributes)) for attributes in details_of(span)),
    ]
    if requests.choice_count(said) in (None, 1):
        reading.are_messages_told_otherwise = any(are_messages_told_otherwise(reading, each) for each in records)
        reading.are_messages_told_otherwise |= is_streamed_otherwise(said.peek("gen_ai.output.messages"))
    for record in records:
        reading.are_messages_told_otherwise |= _has_other_instructions(reading, record)
        reading.are_settings_told_otherwise |= are_settings_told_otherwise(reading.settings, record.settings)
        reading.are_tools_told_otherwise |= are_tools_told_otherwise(reading.tools, record.tools)


def _record(said: Said) -> Reading:
    return Reading(
        convention=CONVENTION,
        messages=said.take(input_of, "gen_ai.input.messages"),
        answer=_answer(said),
        instructions=said.take(instructions_of, _INSTRUCTIONS),
        tools=requests.tools_offered(said),
        settings=requests.settings_of(said),
        finish_reason=requests.finish_reason_of(said) or _told_finish_reason(said),
    )


def _told_finish_reason(said: Said) -> str | None:
    return finish_reason_of(said.peek("gen_ai.output.messages"))


def _has_other_instructions(reading: Reading, record: Reading) -> bool:
    return None not in (reading.instructions, record.instructions) and reading.instructions != record.instructions


_INSTRUCTIONS = "gen_ai.system_instructions"
_PROMPT, _COMPLETION = "gen_ai.prompt", "gen_ai.completion"
"""Before there were events: all messages as the JSON of one attribute."""


def _body(value: JsonValue) -> JsonObject | None:
    """A provider's own request or answer, which Google's ADK keeps in attributes of its own; `{}` stands for content
    that was switched off."""
    found = parsed(value)
    return found if isinstance(found, dict) and found else None


def _answer(said: Said) -> ChatMessage | None:
    def first(value: JsonValue) -> ChatMessage | None:
        return answer_of(first_of(value))

    alternatives = requests.choice_count(said) or 1
    return said.take(answer_of if alternatives == 1 else first, "gen_ai.output.messages")


def _add_handoff(reading: Reading, said: Said) -> None:
    from_agent = said.take(as_text, "gen_ai.handoff.from_agent")
    reading.name = said.take(as_text, "gen_ai.handoff.to_agent")
    reading.input = without_none({"from_agent": from_agent, "to_agent": reading.name})


def _add_error(reading: Reading, said: Said, span: Span) -> None:
    error = reading.error = _error(reading, said, span)
    if error is not None:
        said.raw("error.type")
        reading.is_error_harmless = is_steering(error) or (error.type or "").rpartition(".")[2] in _PAUSES


def _error(reading: Reading, said: Said, span: Span) -> ErrorInfo | None:
    """Of the span, of a log record that tells of an exception, or the status that a framework gives itself."""
    has_failed = said.take(as_text, "gen_ai.tool.status", "gen_ai.task.status") in ("error", "failure")
    if span.status == "error":
        return exception_of(span.events) or exception_of(span.logs) or error_of(span)
    failed = ErrorInfo(type=None, message=as_text(reading.result)) if has_failed else None
    return error_of(span) or failed
