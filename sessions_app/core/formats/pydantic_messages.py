"""A Pydantic AI message dump: the JSON list that `ModelMessagesTypeAdapter.dump_json` writes.

It may also come wrapped as `{"messages": [...], "run_id": …, "session_id": …}` and then carry what a
dump cannot: user and tenant. Other fields are kept as unknown ones.
"""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.conversation import Message, read_messages, run_from_messages
from sessions_app.core.formats.fields import Fields, as_array
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import Payload, sha256_hex
from sessions_app.core.run import MESSAGES, Run

SOURCE = MESSAGES


def parse_messages(content: bytes, limits: Limits = Limits()) -> Run:
    """A bare list of messages. The run id is the library's own, else named after the content."""
    messages = check_messages(as_array(content, "the document"), "", limits)
    run_id = messages[-1].run_id or f"run-{sha256_hex(content)[:16]}"
    return run_from_messages(messages, run_id=run_id, source_format=SOURCE)


def parse_wrapped_messages(content: bytes, limits: Limits = Limits()) -> Run:
    """A dump with facts around it."""
    fields = Fields(content)
    messages = check_messages(fields.items("messages") or [], "messages", limits)
    run_id = fields.identifier("run_id") or messages[-1].run_id or f"run-{sha256_hex(content)[:16]}"
    run = run_from_messages(messages, run_id=run_id, source_format=SOURCE)
    return replace(
        run,
        session_id=fields.identifier("session_id") or run.session_id,
        user_id=fields.name("user_id"),
        tenant_id=fields.name("tenant_id"),
        extra=foreign_extra(fields.rest(), SOURCE),
    )


def check_messages(raw: list[bytes], path: str, limits: Limits) -> list[Message]:
    """Each message has a known kind and a list of parts; unknown part kinds are kept."""
    if not raw:
        raise RecordError("The list of messages is empty.", field=path or None)
    if len(raw) > limits.max_steps:
        raise RecordTooLarge(f"There are {len(raw)} messages; the limit is {limits.max_steps}.")
    for index, slice_ in enumerate(raw):
        _check_message(Fields(slice_, f"{path}[{index}]"))
    return read_messages([Payload(content=slice_) for slice_ in raw])


def _check_message(fields: Fields) -> None:
    fields.required("kind", lambda name: fields.choice(name, ("request", "response")))
    for part in fields.required("parts", fields.children):
        part.required("part_kind", part.text)
        if part.has("tool_name"):
            part.name("tool_name")
        if part.has("tool_call_id"):
            part.name("tool_call_id")
