"""Items of an OpenAI Agents SDK run, as `RunResult.new_items` gives them.

    {"input": text or input items, "final_output": …,
     "items": [{"type": "ToolCallItem", "raw": {…}}, …]}

`raw` is the item's `raw_item.model_dump(exclude_unset=True)`; plain Responses items (`to_input_list()`)
are taken as well. A `raw` that is the text of a Python object, as `str(raw_item)` gives it, is read as far as it can
be; the run then says under `derived` how many items were read in this way. What cannot be read is kept and shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from sessions_app.core.errors import RecordTooLarge
from sessions_app.core.formats.conversation import read_messages, run_from_messages
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native import foreign_extra
from sessions_app.core.formats.python_text import read_python_text
from sessions_app.core.formats.values import message_value
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonObject, JsonValue, Payload, sha256_hex
from sessions_app.core.run import OPENAI_ITEMS, OtherCall, Run, Step

DERIVED = "derived"
"""Among the unknown fields of a run: what of it was read from a text that was not made to be read."""


def matches(value: JsonValue) -> bool:
    return isinstance(value, dict) and "items" in value and bool({"input", "final_output"} & value.keys())


def parse_items(content: bytes, limits: Limits = Limits()) -> Run:
    fields = Fields(content)
    items = [_Item(child) for child in _limited(fields, limits)]
    run_id = fields.identifier("run_id") or fields.identifier("session_id") or f"run-{sha256_hex(content)[:16]}"
    instructions, asked = fields.text("instructions"), fields.value("input")
    given: JsonObject = {"input_items": asked} if isinstance(asked, list) else {}
    messages = _messages(asked, [item.value for item in items], instructions)
    # One item that cannot be read is a gap of which nothing is known, and the loop cannot be told without it.
    is_whole = all(_is_read(item) for item in items if isinstance(item.raw, str))
    has_structure = is_whole and any(message["kind"] == "response" for message in messages)
    run = run_from_messages(
        read_messages([Payload.of_json(message) for message in messages if has_structure]),
        run_id=run_id,
        source_format=OPENAI_ITEMS,
    )
    output = fields.slice("final_output")
    return replace(
        run,
        session_id=fields.identifier("session_id") or run_id,
        input=_input(fields) or run.input,
        output=None if output is None else message_value(output),
        status="ok" if output is not None else run.status,
        model=fields.name("model") or run.model,
        instructions=instructions or run.instructions,
        started_at=fields.time("timestamp") or run.started_at,
        user_id=fields.name("user_id"),
        tenant_id=fields.name("tenant_id"),
        steps=run.steps or _shown(items),
        # Every item with its type as the SDK names it, whatever became of it above.
        extra={
            **given,
            "items": fields.value("items"),
            **_derived(items),
            **foreign_extra(fields.rest(), OPENAI_ITEMS),
        },
    )


class _Item:
    """One item: the SDK's name for it, and the Responses item inside."""

    def __init__(self, fields: Fields) -> None:
        is_wrapped = "raw" in fields.names()
        self.name = fields.required("type", fields.name) if is_wrapped or fields.has("type") else "message"
        self.raw: JsonValue = fields.value("raw") if is_wrapped else _whole(fields)

        said = read_python_text(self.raw) if isinstance(self.raw, str) else self.raw
        self.value: JsonObject = said if isinstance(said, dict) else {}


def _derived(items: list[_Item]) -> JsonObject:
    """Which items came as the text of a Python object, for what was read from it is no more than that text says."""
    texts = [item for item in items if isinstance(item.raw, str)]
    if not texts:
        return {}
    return {DERIVED: {"from": "the text of Python objects", "items": len(texts), "read": sum(map(_is_read, texts))}}


def _is_read(item: _Item) -> bool:
    return bool(item.value)


def _whole(fields: Fields) -> JsonObject:
    return {name: fields.value(name) for name in fields.names()}


def _limited(fields: Fields, limits: Limits) -> list[Fields]:
    children = list(fields.children("items") or [])
    if len(children) > limits.max_steps:
        raise RecordTooLarge(f"items has {len(children)} items; the limit is {limits.max_steps}.", field="items")
    return children


def _input(fields: Fields) -> Payload | None:
    """A text is the prompt itself; a list of input items holds it in its last user message."""
    slice_ = fields.slice("input")
    return message_value(slice_) if slice_ is not None and slice_[:1] == b'"' else None


# --- messages ----------------------------------------------------------------------------------


def _messages(asked: JsonValue, rows: list[JsonObject], instructions: str | None) -> list[JsonObject]:
    """The rows of `to_input_list()` begin with the input, which then is not said twice."""
    given = _input_rows(asked)
    before = [] if _begin_with(rows, given) else _grouped(given, instructions)
    return [*before, *_grouped(rows, instructions)]


def _input_rows(asked: JsonValue) -> list[JsonObject]:
    if isinstance(asked, str):
        return [{"role": "user", "content": asked}]
    return [row for row in asked if isinstance(row, dict)] if isinstance(asked, list) else []


def _begin_with(rows: list[JsonObject], given: list[JsonObject]) -> bool:
    """A prompt in another place than before the first answer would be the next turn's."""
    if len(given) == 1 and rows and given[0].get("role") == "user":
        return rows[0].get("role") == "user"  # whether it is the same one, the judge says
    return _grouped(rows[: len(given)], None) == _grouped(given, None)


def _grouped(rows: list[JsonObject], instructions: str | None) -> list[JsonObject]:
    """Neighbouring items of one side are one message: a model asks for several tools at once."""
    calls = [row for row in rows if row.get("type") == "function_call" and isinstance(row.get("call_id"), str)]
    names = {row["call_id"]: row.get("name") for row in calls}
    parts = [(_is_answer(row), part) for row in rows for part in _parts(row, names)]
    return [
        _response([part for _, part in group]) if is_answer else _request([part for _, part in group], instructions)
        for is_answer, group in groupby(parts, key=lambda pair: pair[0])
    ]


def _is_answer(row: JsonObject) -> bool:
    """Whether the model wrote it."""
    return row.get("type") in ("function_call", "reasoning") or row.get("role") == "assistant"


def _parts(row: JsonObject, names: dict[str, JsonValue]) -> Iterator[JsonObject]:
    """The parts that a Responses item stands for, in the names of Pydantic AI's messages."""
    match row.get("type"):
        case "function_call":
            yield {
                "part_kind": "tool-call",
                "tool_name": row.get("name"),
                "args": row.get("arguments"),
                "tool_call_id": row.get("call_id"),
            }
        case "function_call_output" if row.get("output") is not None:
            yield {
                "part_kind": "tool-return",
                "tool_name": names.get(str(row.get("call_id"))),
                "content": row.get("output"),
                "tool_call_id": row.get("call_id"),
            }
        case "reasoning":
            yield {"part_kind": "thinking", "content": "\n".join(_texts(row.get("summary"))), "id": row.get("id")}
        case _ if row.get("role") == "assistant":
            yield from ({"part_kind": "text", "content": text} for text in _texts(row.get("content")))
        case _ if row.get("role") == "user":
            yield {"part_kind": "user-prompt", "content": "\n".join(_texts(row.get("content")))}
        case _ if row.get("role") in ("system", "developer"):
            yield {"part_kind": "system-prompt", "content": "\n".join(_texts(row.get("content")))}


def unread_items(items: JsonValue, *, name: str = "items") -> Iterator[tuple[str, int]]:
    """What of the items is in no message, with where it stands, and how many requests would have held it."""
    rows = [_row_in(item) for item in items] if isinstance(items, list) else []
    for position, row in enumerate(rows):
        found = _unread(row)
        if found is not None:
            later = [each for each in rows[position + 1 :] if isinstance(each, dict)]
            yield f"{name}[{position}] {found}", _requests_behind(row or {}, later)


def _row_in(item: JsonValue) -> JsonObject | None:
    """None for what holds nothing. Of the text of a Python object the run tells by itself how it was read."""
    raw = item.get("raw", item) if isinstance(item, dict) else None
    row = (read_python_text(raw) or _NOT_READ) if isinstance(raw, str) else raw
    return row if isinstance(row, dict) else None


_NOT_READ: JsonObject = {"type": "reasoning"}


def _requests_behind(row: JsonObject, later: list[JsonObject]) -> int:
    """The next request carries what belongs to an answer. A call that others than the provider ran was answered in a
    request, which may be lost with it."""
    kinds = [message["kind"] for message in _grouped(later, None)]
    is_in_answer = row.get("role") == "assistant" or row.get("type") in _RUN_BY_PROVIDER
    return kinds.count("response") - (is_in_answer and kinds[:1] == ["response"])


_RUN_BY_PROVIDER = (
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
    "mcp_list_tools", "tool_search_call",
)  # fmt: skip


def _unread(row: JsonObject | None) -> str | None:
    if row is None:
        return "holds nothing"
    content = row.get("content")
    if row.get("type") in _ITEMS_READ:
        return None
    if row.get("role") not in _ROLES_READ:
        return f"is of the kind {str(row.get('type'))[:60]}"
    if not isinstance(content, str | list):
        return "is a message without content"
    pieces = content if isinstance(content, list) else []
    piece = next((each for each in pieces if not _texts([each]) and not _is_refusal(each)), None)
    return None if piece is None else f"holds {_kind_of(piece)}"


_ITEMS_READ = ("function_call", "function_call_output", "reasoning")
_ROLES_READ = ("assistant", "user", "system", "developer")


def _is_refusal(piece: JsonValue) -> bool:
    """Which the judge names by itself."""
    return isinstance(piece, dict) and piece.get("type") == "refusal"


def _kind_of(piece: JsonValue) -> str:
    kind = piece.get("type") if isinstance(piece, dict) else None
    is_text = kind in ("output_text", "input_text")
    return "a text that was not saved" if is_text else f"a part of the kind {str(kind)[:60]}"


def _texts(content: JsonValue) -> list[str]:
    if isinstance(content, str):
        return [content]
    rows = content if isinstance(content, list) else []
    return [row["text"] for row in rows if isinstance(row, dict) and isinstance(row.get("text"), str)]


def _request(parts: list[JsonObject], instructions: str | None) -> JsonObject:
    return {"parts": parts, "instructions": instructions, "kind": "request"}


def _response(parts: list[JsonObject]) -> JsonObject:
    return {"parts": parts, "kind": "response"}


def _shown(items: list[_Item]) -> tuple[Step, ...]:
    """Items without structure: their names and texts, so that nothing that arrived is hidden."""
    return tuple(
        Step(index=index, name=item.name, call=OtherCall(result=Payload.of(item.raw)))
        for index, item in enumerate(items, start=1)
    )
