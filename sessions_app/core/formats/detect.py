"""Which format a document has, by what it holds."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.errors import RecordError
from sessions_app.core.formats.native import parse_native
from sessions_app.core.formats.openai_items import parse_items
from sessions_app.core.formats.pydantic_messages import parse_messages, parse_wrapped_messages
from sessions_app.core.formats.session_file import parse_session_file
from sessions_app.core.importers import cassette
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import Run

Parser = Callable[[bytes, Limits], Run]


def parse_document(content: bytes, limits: Limits = Limits()) -> Run:
    """Check the text strictly, then read it with the parser of its format."""
    return parser_of(load_strict(content, limits))(content, limits)


def parser_of(value: JsonValue) -> Parser:
    """Raises `RecordError` for what is no recording."""
    parser = find_parser(value)
    if parser is not None:
        return parser
    if not isinstance(value, dict | list):
        raise RecordError("A recording is a JSON object, or a list of messages.")
    if isinstance(value, list):
        return parse_messages
    if "messages" in value:
        return parse_wrapped_messages
    raise RecordError(
        "The format of this recording is not known: expected a native record (with 'format'), "
        "a session file (with 'session_id' and 'messages'), OpenAI Agents items (with 'input' and 'items'), "
        "a list of Pydantic AI messages, spans (OTLP JSON), an export of OpenAI Agents, Langfuse, LangSmith or "
        "Phoenix, a logged request to a model provider, or a cassette of vcrpy."
    )


def find_parser(value: JsonValue) -> Parser | None:
    """The parser for what is a recording beyond doubt; None for everything else."""
    if isinstance(value, list):
        return parse_messages if value and all(map(_is_message, value)) else None
    if not isinstance(value, dict):
        return None
    if "format" in value:
        return parse_native
    if cassette.matches(value):
        return cassette.parse_cassette
    if "items" in value and {"input", "final_output"} & value.keys():
        return parse_items
    if "session_id" in value and {"user_input", "final_output", "messages"} & value.keys():
        return _session_or_dump(value)
    messages = value.get("messages")
    is_dump = isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))
    return parse_wrapped_messages if is_dump else None


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and "kind" in value and "parts" in value


def _session_or_dump(value: dict[str, JsonValue]) -> Parser:
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    is_dump = isinstance(first, dict) and "kind" in first and "type" not in first
    return parse_wrapped_messages if is_dump else parse_session_file
