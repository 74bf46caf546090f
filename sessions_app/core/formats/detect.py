"""Which format a document has, by what it holds."""

from __future__ import annotations

from collections.abc import Callable

from sessions_app.core.errors import RecordError
from sessions_app.core.formats import openai_items, session_file, snapshots, step_events, tool_list
from sessions_app.core.formats.native import parse_native
from sessions_app.core.formats.not_recordings import refusal_of
from sessions_app.core.formats.pydantic_messages import parse_messages, parse_wrapped_messages
from sessions_app.core.importers import cassette, checkpoint_files
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
    refusal = refusal_of(value)
    if refusal is not None:
        raise RecordError(refusal)
    if not isinstance(value, dict | list):
        raise RecordError("A recording is a JSON object, or a list of messages.")
    if isinstance(value, list):
        return parse_messages
    if "messages" in value:
        return parse_wrapped_messages
    raise RecordError(
        "The format of this recording is not known: expected a native record (with 'format'), "
        "a session file (with 'session_id' and 'messages'), OpenAI Agents items (with 'input' and 'items'), "
        "a list of Pydantic AI messages, events of steps, checkpoints, snapshots or recordings of tools, "
        "spans (OTLP JSON), an export of OpenAI Agents, Langfuse, LangSmith or "
        "Phoenix, a logged request to a model provider, or recorded HTTP of vcrpy, nock or WireMock."
    )


def find_parser(value: JsonValue) -> Parser | None:
    """The parser for what is a recording beyond doubt; None for everything else."""
    if isinstance(value, dict) and "format" in value:
        return parse_native
    parser = next((parse for matches, parse in _FORMATS if matches(value)), None)
    if parser is not None:
        return parser
    messages = value.get("messages") if isinstance(value, dict) else value
    is_dump = isinstance(messages, list) and bool(messages) and all(map(_is_message, messages))
    if not is_dump:
        return None
    return parse_messages if isinstance(value, list) else parse_wrapped_messages


def _is_message(value: JsonValue) -> bool:
    return isinstance(value, dict) and "kind" in value and "parts" in value


def _is_dump_of_session(value: JsonValue) -> bool:
    """A dump of Pydantic AI with the id of its session beside it, and nothing that a session file says of its run."""
    is_dump = isinstance(value, dict) and "session_id" in value and value.keys().isdisjoint(_OF_SESSION_FILE)
    messages = value["messages"] if is_dump and "messages" in value else None
    first = messages[0] if isinstance(messages, list) and messages else None
    return isinstance(first, dict) and "kind" in first and "type" not in first


_OF_SESSION_FILE = ("user_input", "final_output", "instructions", "tool_calls")


_FORMATS: tuple[tuple[Callable[[JsonValue], bool], Parser], ...] = (
    (cassette.matches, cassette.parse_cassette),
    (openai_items.matches, openai_items.parse_items),
    (checkpoint_files.matches, checkpoint_files.parse_checkpoints),
    (_is_dump_of_session, parse_wrapped_messages),
    (session_file.matches, session_file.parse_session_file),
    (step_events.matches, step_events.parse_step_events),
    (snapshots.matches, snapshots.parse_snapshots),
    (tool_list.matches, tool_list.parse_tool_list),
)
