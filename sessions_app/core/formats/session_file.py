"""The session file: one JSON object with the messages of a run in a short form.

    {"session_id", "timestamp", "user_input", "final_output", "model", "instructions",
     "messages": [{"type": "ModelRequest" | "ModelResponse", "parts": [{"kind": …, …}]}],
     "tool_calls": [{"tool", "args"}], "duration_ms"}

Each part becomes a part of a message as Pydantic AI names them: `kind` is called `part_kind` there,
everything else is the same and is carried over byte for byte. Messages that the library dumped itself, with `kind` and
`part_kind`, are taken as well. A short form has `input` and `output` in place of
`user_input` and `final_output`, and no id: the run is named after its content. Where no message holds a prompt, the
first request is made of the input. Where both do, the messages count, and the judge names the contradiction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.conversation import read_messages, run_from_messages
from sessions_app.core.formats.fields import Fields, as_array, as_object
from sessions_app.core.formats.json_writer import array_text, object_text, scalar
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.formats.python_text import read_python_text
from sessions_app.core.formats.values import message_value, write_value
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonValue, Payload, sha256_hex
from sessions_app.core.run import OUTPUT_PROCESSED, SESSION_FILE, Run, Step, ToolCall

_KINDS = {"ModelRequest": "request", "ModelResponse": "response"}


def matches(value: JsonValue) -> bool:
    """Whether this is parsed JSON of a session file, in its whole or in its short form."""
    if not isinstance(value, dict):
        return False
    if "session_id" in value:
        return bool({"user_input", "final_output", "messages"} & value.keys())
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    is_short = isinstance(first, dict) and "parts" in first and str(first.get("type")) in _KINDS
    return is_short or (messages == [] and value.keys() == {"input", "output", "messages"})


def parse_session_file(content: bytes, limits: Limits = Limits()) -> Run:
    fields = Fields(content)
    has_id = "session_id" in fields.names()
    run_id = fields.required("session_id", fields.identifier) if has_id else f"run-{sha256_hex(content)[:16]}"
    given = _input(fields)
    messages = _with_prompt(_messages(fields, limits), given, _instructions(fields))
    run = run_from_messages(read_messages(messages), run_id=run_id, source_format=SESSION_FILE)
    output = _text_payload(fields, "final_output") or _text_payload(fields, "output")
    steps = run.steps or _calls_alone(fields, limits)
    return replace(
        run,
        session_id=run_id,
        status="ok" if output is not None and run.status == "cut_off" and not messages else run.status,
        input=given or run.input,
        output=output if messages else output or run.output,
        model=fields.name("model") or run.model,
        instructions=_said_instructions(fields) or run.instructions,
        started_at=fields.time("timestamp") or run.started_at,
        duration_ms=fields.number("duration_ms"),
        user_id=fields.name("user_id"),
        tenant_id=fields.name("tenant_id"),
        steps=steps,
        extra=_extra(fields, keeps_calls=bool(run.steps)),
    )


def _input(fields: Fields) -> Payload | None:
    """An empty text is what such a script's class begins with, and says nothing."""
    given = _text_payload(fields, "user_input") or _text_payload(fields, "input")
    return None if given is not None and given.value == "" else given


def _with_prompt(messages: list[Payload], given: Payload | None, instructions: bytes | None) -> list[Payload]:
    """The input as the prompt of the first request, where the messages hold none."""
    said = read_messages(messages)
    if given is None or not said or any(message.parts_of("user-prompt") for message in said):
        return messages
    if not isinstance(given.value, str | list):
        return messages  # no message holds such a prompt
    prompt = object_text([("content", write_value(given)), ("part_kind", scalar("user-prompt"))])
    if said[0].is_response:
        return [_request([prompt], instructions), *messages]
    if said[0].parts_of("system-prompt") != said[0].parts:
        return messages  # it goes on from what somebody answered
    first = as_object(messages[0].content, "message")
    parts = array_text([*as_array(first["parts"], "parts"), prompt])
    return [Payload(content=object_text({**first, "parts": parts}.items())), *messages[1:]]


def _request(parts: list[bytes], instructions: bytes | None) -> Payload:
    fields = [("parts", array_text(parts)), ("instructions", instructions), ("kind", scalar("request"))]
    return Payload(content=object_text(fields))


def _text_payload(fields: Fields, name: str) -> Payload | None:
    """The text, or another JSON value where the agent had structured output."""
    slice_ = fields.slice(name)
    return None if slice_ is None else message_value(slice_)


def _limited(fields: Fields, name: str, limits: Limits) -> list[Fields]:
    children = list(fields.children(name) or [])
    if len(children) > limits.max_steps:
        raise RecordTooLarge(f"{name} has {len(children)} items; the limit is {limits.max_steps}.", field=name)
    return children


def _messages(fields: Fields, limits: Limits) -> list[Payload]:
    instructions = _instructions(fields)
    children = _limited(fields, "messages", limits)
    messages = [read_message(child, instructions) for child in children]
    has_own = bool(children) and children[-1].slice("instructions") is not None
    return messages if has_own else [*messages[:-1], *map(_unsent, messages[-1:])]


def _instructions(fields: Fields) -> bytes | None:
    """As JSON, where the file says them."""
    said = _said_instructions(fields)
    return None if said is None else scalar(said)


def _said_instructions(fields: Fields) -> str | None:
    """An empty text is what the script writes for an agent without any. With newer versions of the library it writes a
    list of what Python prints for each part; a function among them leaves open what the model was told."""
    slice_ = fields.slice("instructions")
    said = None if slice_ is None else Payload(content=slice_).value
    if isinstance(said, str) or said is None:
        return said or None
    if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
        raise fields.error("instructions", "must be a string, a list of strings or null")
    texts = [_instruction(each) for each in said]
    return "\n\n".join(filter(None, texts)) or None if None not in texts else None


def _instruction(printed: str) -> str | None:
    if not printed.startswith(_PRINTED):
        return printed
    read = read_python_text(printed)
    text = read.get("instruction") if isinstance(read, dict) else None
    return text if isinstance(text, str) else None


_PRINTED = "SourcedInstruction("
"""How Python prints a part of the instructions of Pydantic AI 2."""


def _unsent(last: Payload) -> Payload:
    """What the loop adds behind a structured output is sent to no model, and has no instructions."""
    message = as_object(last.content, "message")
    parts = read_messages([last])[0].parts_of("tool-return")
    is_end = any(part.get("content") == OUTPUT_PROCESSED for part in parts)
    return Payload(content=object_text({**message, "instructions": None}.items())) if is_end else last


def read_message(fields: Fields, instructions: bytes | None) -> Payload:
    """One message in the shape of Pydantic AI; requests have the instructions, unless they have their own."""
    is_dumped = not fields.has("type") and fields.has("kind")
    kind = _dumped_kind(fields) if is_dumped else _KINDS[fields.required("type", _class_of(fields))]
    parts = [_part(part, "part_kind" if is_dumped else "kind") for part in fields.required("parts", fields.children)]
    if kind == "request":
        instructions = fields.slice("instructions") or instructions
    known = ("type", "parts", "kind", "instructions")
    text = object_text(
        [
            ("parts", array_text(parts)),
            ("instructions", instructions if kind == "request" else fields.written("instructions")),
            ("kind", scalar(kind)),
            *_others(fields, known),
        ]
    )
    return Payload(content=text)


def _others(fields: Fields, known: tuple[str, ...]) -> list[tuple[str, bytes | None]]:
    return [(name, fields.written(name)) for name in fields.names() if name not in known]


def _class_of(fields: Fields) -> Callable[[str], str | None]:
    return lambda name: fields.choice(name, tuple(_KINDS))


def _dumped_kind(fields: Fields) -> str:
    """Of a message that the library itself has dumped."""
    kind: str = fields.required("kind", lambda name: fields.choice(name, tuple(_KINDS.values())))
    return kind


def _part(fields: Fields, named: str) -> bytes:
    kind = fields.required(named, fields.text)
    return object_text([*_others(fields, (named, "part_kind")), ("part_kind", scalar(kind))])


def _calls_alone(fields: Fields, limits: Limits) -> tuple[Step, ...]:
    """Calls without messages: their names and arguments are all that was saved."""
    calls = _limited(fields, "tool_calls", limits)
    return tuple(
        Step(index=index, name=call.tool_name, call=call)
        for index, call in enumerate((_call(child) for child in calls), start=1)
    )


def _call(fields: Fields) -> ToolCall:
    slice_ = fields.written("args")
    arguments = None if slice_ is None else message_value(slice_)
    return ToolCall(tool_name=fields.required("tool", fields.name), arguments=arguments)


def _extra(fields: Fields, *, keeps_calls: bool) -> dict[str, object]:
    """Unknown fields, and instructions of which nobody can tell what they said; with messages the list of calls repeats
    them, and is kept as it came."""
    calls = fields.value("tool_calls")
    said = fields.value("instructions")
    unread = {"instructions": said} if said and _said_instructions(fields) is None else {}
    extra = foreign_extra({**unread, **fields.rest()}, SESSION_FILE)
    return {"tool_calls": calls, **extra} if keeps_calls and calls is not None else extra
