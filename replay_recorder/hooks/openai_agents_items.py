"""Items of the Responses API as messages in the shape of Pydantic AI, and which of them are new."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from replay_recorder.writing.json_text import dumps, jsonable

Json = dict[str, Any]

FAKE_ID = "__fake_id__"
"""The SDK's id for what it puts together itself, where the provider gives none."""
_LOCAL_CALLS = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})
"""Calls that the team's process answers; other calls were answered where the model runs."""
_DATA_URL = re.compile(r"data:(?P<media_type>[\w.+-]+/[\w.+-]+)[^,]*;base64,(?P<data>.*)", re.DOTALL)


def rows_of(items: Any) -> list[Json]:
    """Input or output items as JSON objects; a text is one user message."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    return [row_of(item) for item in items or []]


def row_of(item: Any) -> Json:
    if isinstance(item, dict):
        return item
    dump = getattr(item, "model_dump", None)
    row = dump(mode="json", exclude_unset=True, warnings=False) if callable(dump) else jsonable(item)
    return row if isinstance(row, dict) else {"type": type(item).__name__, "value": row}


# --- one item ----------------------------------------------------------------------------------


@dataclass
class KnownCalls:
    """What is known of the calls so far, by call id: answers name neither the tool nor how it went."""

    names: dict[str, str] = field(default_factory=dict)
    arguments: dict[str, Any] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)


def is_answer(row: Json) -> bool:
    """Whether the model's side wrote it."""
    kind = _kind(row)
    if kind == "message":
        return row.get("role") == "assistant"
    return not kind.endswith(("_output", "_response")) and kind != "item_reference"


def call_id_of(row: Json) -> str | None:
    """The id that ties a call and its answer together."""
    found = row.get("call_id") or row.get("approval_request_id") or row.get("id")
    return found if isinstance(found, str) else None


def parts_of(row: Json, calls: KnownCalls) -> list[Json]:
    """The parts of a message that an item stands for."""
    kind = _kind(row)
    if kind in _PARTS:
        return list(_PARTS[kind](row, calls))
    if not is_answer(row):
        return [_tool_return(row, calls)]
    return [_local_call(row, calls) if kind in _LOCAL_CALLS else _hosted_call(row)]


def _kind(row: Json) -> str:
    return str(row.get("type") or "message")


def _message(row: Json, calls: KnownCalls) -> Iterator[Json]:
    role, content = row.get("role"), row.get("content")
    if role == "assistant":
        yield from _texts(row, content)
    elif role in ("system", "developer"):
        yield {"part_kind": "system-prompt", "content": "\n".join(_plain_texts(content))}
    else:
        yield {"part_kind": "user-prompt", "content": user_content(content)}


def _texts(row: Json, content: Any) -> Iterator[Json]:
    known = _id_of(row)
    for piece in [content] if isinstance(content, str) else content or []:
        if isinstance(piece, str) or piece.get("text") is not None:
            yield {"part_kind": "text", "content": piece if isinstance(piece, str) else piece["text"], **known}
        elif piece.get("refusal") is not None:
            yield {"part_kind": "text", "content": piece["refusal"], **known, "provider_details": {"refusal": True}}


def _id_of(row: Json) -> Json:
    return {"id": row["id"]} if row.get("id") not in (None, FAKE_ID) else {}


def _plain_texts(content: Any) -> list[str]:
    pieces = [content] if isinstance(content, str) else content or []
    return [piece if isinstance(piece, str) else str(piece.get("text") or "") for piece in pieces]


def _reasoning(row: Json, calls: KnownCalls) -> Iterator[Json]:
    said = [*(row.get("summary") or []), *(row.get("content") or [])]
    signature = row.get("encrypted_content")
    yield {
        "part_kind": "thinking",
        "content": "\n".join(_plain_texts(said)),
        **_id_of(row),
        **({"signature": signature, "provider_name": "openai"} if signature else {}),
    }


def _function_call(row: Json, calls: KnownCalls) -> Iterator[Json]:
    yield _call(row, calls, str(row.get("name")), row.get("arguments"))


def _custom_call(row: Json, calls: KnownCalls) -> Iterator[Json]:
    """Its input is free text, and arguments are an object."""
    yield _call(row, calls, str(row.get("name")), {"input": row.get("input")})


def _local_call(row: Json, calls: KnownCalls) -> Json:
    return _call(row, calls, _kind(row).removesuffix("_call"), _rest(row))


def _call(row: Json, calls: KnownCalls, tool_name: str, arguments: Any) -> Json:
    call_id = call_id_of(row)
    if call_id is not None:
        calls.names[call_id] = tool_name
        calls.arguments[call_id] = arguments
    return {"part_kind": "tool-call", "tool_name": tool_name, "args": arguments, "tool_call_id": call_id}


def _tool_return(row: Json, calls: KnownCalls) -> Json:
    call_id = call_id_of(row) or ""
    outcome = calls.outcomes.get(call_id)
    return {
        "part_kind": "tool-return",
        "tool_name": calls.names.get(call_id) or _kind(row).removesuffix("_output"),
        **_told(row),
        "tool_call_id": call_id,
        **({"outcome": outcome} if outcome else {}),
    }


def _told(row: Json) -> Json:
    """An output item that lost its output tells nothing; items such as an approval are told by their other fields."""
    if "output" in row:
        return {"content": row["output"]}
    return {} if _kind(row).endswith("_output") else {"content": _rest(row)}


def _hosted_call(row: Json) -> Json:
    """A call and its answer in one item, as the provider made them; shown as it came."""
    return {
        "part_kind": "builtin-tool-call",
        "tool_name": _kind(row).removesuffix("_call"),
        "args": _rest(row),
        "tool_call_id": call_id_of(row) or "",
    }


def _rest(row: Json) -> Json:
    return {key: value for key, value in row.items() if key not in ("type", "id", "call_id")}


_PARTS: dict[str, Callable[[Json, KnownCalls], Iterator[Json]]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
}


# --- what a person sent ------------------------------------------------------------------------


def user_content(content: Any) -> Any:
    """A text, or a list of texts, links and files as a user prompt holds them."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else dumps(content)
    pieces = [_piece(piece) for piece in content]
    return pieces[0] if len(pieces) == 1 and isinstance(pieces[0], str) else pieces


def _piece(piece: Any) -> Any:
    if isinstance(piece, str) or not isinstance(piece, dict):
        return piece if isinstance(piece, str) else dumps(piece)
    if isinstance(piece.get("text"), str):
        return piece["text"]
    link = piece.get("image_url") or piece.get("file_url") or piece.get("file_data")
    if isinstance(link, str):
        return _linked(link, "image-url" if "image_url" in piece else "document-url")
    audio = piece.get("input_audio")
    if isinstance(audio, dict):
        return {"kind": "binary", "media_type": f"audio/{audio.get('format')}", "data": audio.get("data")}
    if isinstance(piece.get("file_id"), str):
        return {"kind": "uploaded-file", "file_id": piece["file_id"], "provider_name": "openai"}
    return dumps(piece)


def _linked(link: str, kind: str) -> Json:
    inside = _DATA_URL.fullmatch(link)
    return {"kind": "binary", **inside.groupdict()} if inside else {"kind": kind, "url": link}


# --- messages ----------------------------------------------------------------------------------


def messages_of(rows: Sequence[Json], calls: KnownCalls) -> list[Json]:
    """Neighbouring items of one side are one message: a model asks for several tools at once."""
    parts = [(is_answer(row), part) for row in rows for part in parts_of(row, calls)]
    return [
        {"kind": "response" if is_from_model else "request", "parts": [part for _, part in group]}
        for is_from_model, group in groupby(parts, key=lambda pair: pair[0])
    ]


def answer_parts(rows: Sequence[Json], calls: KnownCalls) -> list[Json]:
    """The parts of one answer. Calls that it holds together with their answers were made by the provider."""
    answered = {call_id_of(row) for row in rows if not is_answer(row)}
    parts: list[Json] = []
    for row in rows:
        if not is_answer(row):
            parts.append({**_tool_return(row, calls), "part_kind": "builtin-tool-return"})
        elif "call_id" in row and row["call_id"] in answered:
            parts.append(_hosted_call(row))
        else:
            parts += parts_of(row, calls)
    return parts


def prompt_of(items: Any) -> Any:
    """What a run that is given these items is asked: the one user message that came last; else None."""
    rows = rows_of(items)
    parts = [part for row in rows[_newest(rows) :] for part in parts_of(row, KnownCalls())]
    prompts = [part["content"] for part in parts if part["part_kind"] == "user-prompt"]
    others = {part["part_kind"] for part in parts} - {"user-prompt", "system-prompt"}
    return prompts[0] if len(prompts) == 1 and not others else None


def _newest(rows: Sequence[Json], carried: frozenset[str] = frozenset()) -> int:
    """Where the items begin that came after the last answer of the model."""
    begin = len(rows)
    while begin and not is_answer(rows[begin - 1]) and (not carried or call_id_of(rows[begin - 1]) in carried):
        begin -= 1
    return begin


@dataclass(frozen=True)
class Asked:
    """One request: the messages it adds to what a model step, or step 0 for earlier turns, left behind."""

    messages: list[Json]
    after: int | None
    """None when the history begins anew."""
    rows: list[Json]
    """The items behind these messages."""
    prior: list[Json] | None = None
    """Earlier turns; only at the first request."""

    @property
    def history(self) -> Json:
        return {"messages": self.messages} if self.after is None else {"after": self.after, "messages": self.messages}


class Conversation:
    """What the model was given so far, so that each request says only what is new."""

    def __init__(self, *, is_kept_by_provider: bool) -> None:
        self.calls = KnownCalls()
        self.is_kept_by_provider = is_kept_by_provider
        """With a stored conversation each request holds nothing but what is new."""
        self._has_begun = False
        self._seen: list[Json] = []
        """Copies of the items of the last request: the team may change what it was given."""
        self._step: int | None = None
        self._answer: list[Json] = []
        self._answer_length = 0
        self._before: tuple[bool, list[Json], int | None, frozenset[str]] = (False, [], None, frozenset())
        """What was known before the newest request."""
        self._prior: list[Json] | None = None

    def ask(self, items: Any, instructions: str | None, carried: frozenset[str] = frozenset()) -> Asked:
        """The next request. `items` are all items that are sent.

        `carried` are calls that an earlier run left open: in the first request only their answers are new.
        """
        rows = rows_of(items)
        self._before = self._has_begun, list(self._seen), self._step, carried
        known = len(self._seen) if rows[: len(self._seen)] == self._seen else 0
        asked = self._added(rows, known) if self._has_begun else self._first(rows, carried)
        if asked.messages and asked.messages[-1]["kind"] == "request":
            asked.messages[-1]["instructions"] = instructions
        self._seen[known:] = copy.deepcopy(rows[known:])
        self._prior = asked.prior
        self._has_begun, self._step = True, None
        return asked

    def sent(self, items: Any, instructions: str | None) -> Asked | None:
        """The newest request anew, where hooks of the team changed its items after it had been asked; else None."""
        if rows_of(items) == self._seen:
            return None
        self._has_begun, self._seen, self._step, carried = self._before
        prior = self._prior
        asked = self.ask(items, instructions, carried)
        if asked.prior == prior:
            return asked
        return replace(asked, messages=[*(asked.prior or []), *asked.messages], after=None)

    def answered(self, step: int, rows: Sequence[Json]) -> list[Json]:
        """The parts of the answer of this model step; the next request goes on from here."""
        self._step, self._answer_length = step, len(rows)
        self._answer = answer_parts(rows, self.calls)
        return self._answer

    def _first(self, rows: list[Json], carried: frozenset[str]) -> Asked:
        begin = _newest(rows, carried)
        prior, messages = messages_of(rows[:begin], self.calls), messages_of(rows[begin:], self.calls)
        return Asked(messages=messages, after=0 if prior else None, rows=rows, prior=prior or None)

    def _added(self, rows: list[Json], known: int) -> Asked:
        new = self._new_rows(rows, known)
        if new is None:
            return Asked(messages=messages_of(rows, self.calls), after=None, rows=rows)
        return Asked(messages=messages_of(new, self.calls), after=self._step, rows=new)

    def _new_rows(self, rows: list[Json], known: int) -> list[Json] | None:
        """The rows behind the last answer; None when what went before was rewritten."""
        if self._step is None:
            return None
        if self.is_kept_by_provider:
            return rows
        end = known + self._answer_length
        said = answer_parts(rows[known:end], self.calls)
        is_next = known == len(self._seen) and list(map(_essence, said)) == list(map(_essence, self._answer))
        return rows[end:] if is_next else None


def _essence(part: Json) -> tuple[Any, ...]:
    """What the model reads of a part; ids and the like may be left out when it is sent back."""
    return tuple(part.get(key) for key in ("part_kind", "content", "tool_name", "args", "tool_call_id"))
