"""Answers that came in pieces, put together again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from sessions_app.core.embedded_json import parsed
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.spans.provider_messages.fields import entries, entry, first, text
from sessions_app.core.spans.provider_messages.messages import langchain_fields


def merged(chunks: list[JsonValue]) -> JsonObject | None:
    """The whole response that came as chunks of OpenAI (both interfaces), Anthropic, Google or LangChain.

    None if these are no chunks. They may be JSON inside text. Of several choices it is the first.
    """
    objects = [chunk for each in chunks if isinstance(chunk := parsed(each), dict)]
    readers = (_completed, _of_deltas, _of_events, _of_candidates, _of_messages)
    return next((whole for read in readers if (whole := read(objects))), None)


def events_in(body: str) -> list[str] | None:
    """What the events of a stream hold; None for a body that is no stream of events."""
    if not body.lstrip().startswith(("data:", "event:")):
        return None
    lines = body.replace("\r", "\n").split("\n")  # JSON may hold other signs that end lines
    return [line[5:].strip() for line in lines if line.startswith("data:")]


ENDS = frozenset({"message_stop", "response.completed", "response.incomplete", "response.failed"})


def is_ended(events: list[JsonValue]) -> bool:
    """Whether the stream says itself that nothing follows; its reader need not read to the end of the body then."""
    last = parsed(events[-1]) if events else None
    return events[-1:] == ["[DONE]"] or (isinstance(last, dict) and text(last, "type") in ENDS)


def _completed(chunks: list[JsonObject]) -> JsonObject | None:
    """OpenAI Responses sends the whole response at the end."""
    return next(reversed(_wholes(chunks)), None)


def _wholes(chunks: list[JsonObject]) -> list[JsonObject]:
    told = [entry(chunk, "response") for chunk in chunks if str(chunk.get("type")).startswith("response.")]
    return [response for response in told if entries(response, "output")]


def is_told_otherwise(chunks: list[JsonValue]) -> bool:
    """Whether a stream tells a part of the answer twice, and not alike."""
    objects = [chunk for each in chunks if isinstance(chunk := parsed(each), dict)]
    outputs = [entries(whole, "output") for whole in _wholes(objects)]
    if outputs:
        is_another = any(_is_another_item(event, outputs[-1]) for event in objects)
        return is_another or _are_other_words(objects, outputs[-1]) or any(each != outputs[-1] for each in outputs)
    return _begins_twice(objects) or any(_is_named_twice(pieces) for pieces in _pieces_of_calls(_deltas(objects)))


def _is_another_item(event: JsonObject, output: list[JsonValue]) -> bool:
    """An event of Responses against the item that stands in its place at the end."""
    said, whole = entry(event, "item"), _at(output, event.get("output_index"))
    if text(event, "type") == "response.output_item.done" and _words_of(said) != _words_of(whole):
        return True
    names = {**{name: said.get(name) for name in _NAMES_OF_ITEMS}, "id": first(said, "id") or event.get("item_id")}
    is_of_item = bool(said) or event.get("item_id") is not None
    return is_of_item and any(name is not None and name != whole.get(field) for field, name in names.items())


_NAMES_OF_ITEMS = ("type", "name", "call_id")


def _words_of(item: JsonObject) -> list[JsonValue]:
    texts = [part.get("text") for part in entries(item, "content") if isinstance(part, dict)]
    return [item.get("arguments"), *texts]


def _are_other_words(events: list[JsonObject], output: list[JsonValue]) -> bool:
    """Whether the pieces of a text, or of what a tool is called with, make another one; what has none is told once."""
    pieces: dict[str, list[JsonObject]] = {}
    for event in events:
        if text(event, "type") in _PIECES:
            pieces.setdefault(f"{event.get('output_index')} {event.get('content_index')}", []).append(event)
    ended = [(event, _ENDS_OF_PIECES[kind]) for event in events if (kind := text(event, "type")) in _ENDS_OF_PIECES]
    return any(_joined(told, "delta") != _words_at(output, told[0]) for told in pieces.values()) or any(
        (entry(event, "part") or event).get(name) != _words_at(output, event) for event, name in ended
    )


_PIECES = ("response.output_text.delta", "response.function_call_arguments.delta")
_ENDS_OF_PIECES: dict[str | None, str] = {
    "response.output_text.done": "text",
    "response.content_part.done": "text",
    "response.function_call_arguments.done": "arguments",
}


def _words_at(output: list[JsonValue], event: JsonObject) -> JsonValue:
    item = _at(output, event.get("output_index"))
    content = _at(entries(item, "content"), event.get("content_index", 0))
    return content.get("text") if content else item.get("arguments")


def _at(items: list[JsonValue], place: JsonValue) -> JsonObject:
    found = items[place] if isinstance(place, int) and 0 <= place < len(items) else None
    return found if isinstance(found, dict) else {}


def _begins_twice(events: list[JsonObject]) -> bool:
    """Anthropic: a message begins once, and so does each of its blocks before there is anything of it."""
    begun: set[str] = set()
    for event in events:
        kind, place = text(event, "type"), str(event.get("index"))
        if kind == "content_block_delta" and place not in begun:
            return True
        beginning = {"message_start": "message", "content_block_start": place}.get(kind or "")
        if beginning in begun:
            return True
        begun.update([beginning] if beginning is not None else [])
    return False


def _is_named_twice(pieces: list[JsonObject]) -> bool:
    """Chat completions: a call has one id, and one name."""
    ids = {said for piece in pieces if (said := text(piece, "id"))}
    names = {said for piece in pieces if (said := text(entry(piece, "function"), "name"))}
    return len(ids) > 1 or len(names) > 1


def _of_deltas(chunks: list[JsonObject]) -> JsonObject | None:
    choices, deltas = _choices(chunks), _deltas(chunks)
    if not deltas:
        return None
    return {**_facts(chunks), "choices": [{"message": _message(deltas), "finish_reason": _last(choices, _REASON)}]}


_REASON = "finish_reason"


def _choices(chunks: list[JsonObject]) -> list[JsonObject]:
    return [choice for chunk in chunks for choice in entries(chunk, "choices")[:1] if isinstance(choice, dict)]


def _deltas(chunks: list[JsonObject]) -> list[JsonObject]:
    return [entry(choice, "delta") for choice in _choices(chunks) if isinstance(choice.get("delta"), dict)]


def _message(deltas: list[JsonObject]) -> JsonObject:
    words = {name: _joined(deltas, name) for name in ("content", "refusal", "reasoning_content")}
    return {"role": "assistant", **words, "tool_calls": _calls(deltas)}


def _facts(chunks: list[JsonObject]) -> JsonObject:
    return {
        "id": _last(chunks, "id"),
        "model": _last(chunks, "model"),
        "usage": next((usage for chunk in reversed(chunks) if (usage := entry(chunk, "usage"))), None),
    }


def _joined(pieces: Iterable[JsonObject], name: str) -> str | None:
    said = [piece[name] for piece in pieces if isinstance(piece.get(name), str)]
    return "".join(said) if said else None


def _last(items: list[JsonObject], name: str) -> str | None:
    return next((said for item in reversed(items) if (said := text(item, name))), None)


def _calls(deltas: list[JsonObject]) -> list[JsonObject]:
    return [_call(each) for each in _pieces_of_calls(deltas)]


def _pieces_of_calls(deltas: list[JsonObject]) -> list[list[JsonObject]]:
    """By the index of the call: the first piece names the tool, all hold a piece of its arguments."""
    pieces: dict[str, list[JsonObject]] = {}
    for delta in deltas:
        for position, piece in enumerate(entries(delta, "tool_calls")):
            if isinstance(piece, dict):
                pieces.setdefault(str(piece.get("index", position)), []).append(piece)
    return [*pieces.values()]


def _call(pieces: list[JsonObject]) -> JsonObject:
    functions = [entry(piece, "function") for piece in pieces]
    function = {"name": _last(functions, "name"), "arguments": _joined(functions, "arguments")}
    return {"id": _last(pieces, "id"), "type": "function", "function": function}


def _of_events(events: list[JsonObject]) -> JsonObject | None:
    """Anthropic: `message_start`, then deltas of content blocks by index, then `message_delta`."""
    started = next((entry(event, "message") for event in events if event.get("type") == "message_start"), None)
    if started is None:
        return None
    ended = [event for event in events if event.get("type") == "message_delta"]
    usage = {key: value for event in ended for key, value in entry(event, "usage").items() if value is not None}
    return {
        **started,
        "role": "assistant",
        "content": _blocks(events),
        "stop_reason": _last([entry(event, "delta") for event in ended], "stop_reason"),
        "usage": {**entry(started, "usage"), **usage},
    }


def _blocks(events: list[JsonObject]) -> list[JsonObject]:
    blocks: dict[str, list[JsonObject]] = {}
    for event in events:
        if event.get("type") in ("content_block_start", "content_block_delta"):
            blocks.setdefault(str(event.get("index")), []).append(entry(event, "content_block", "delta"))
    return [_block(pieces) for pieces in blocks.values()]


def _block(pieces: list[JsonObject]) -> JsonObject:
    block = pieces[0]
    words: JsonObject = {name: _joined(pieces, name) for name in ("text", "thinking", "signature") if name in block}
    arguments = _joined(pieces[1:], "partial_json")
    return {**block, **words, **({"input": arguments} if arguments else {})}


def _of_candidates(chunks: list[JsonObject]) -> JsonObject | None:
    """Google: each chunk is a response with some more parts."""
    candidates = [each for chunk in chunks for each in entries(chunk, "candidates")[:1] if isinstance(each, dict)]
    if not candidates:
        return None
    parts = [part for each in candidates for part in entries(entry(each, "content"), "parts")]
    ends = {name: _last(candidates, name) for name in ("finishReason", _REASON)}
    content = {"role": "model", "parts": _with_joined_texts(parts)}
    facts = {key: value for chunk in chunks for key, value in chunk.items() if value is not None}
    return {**facts, "candidates": [{"content": content, **ends}]}


def _with_joined_texts(parts: list[JsonValue]) -> list[JsonValue]:
    joined: list[JsonValue] = []
    for is_words, group in groupby(parts, key=_is_words):
        found = list(group)
        joined += [{"text": "".join(part["text"] for part in found)}] if is_words else found
    return joined


def _is_words(part: JsonValue) -> bool:
    return isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("thought")


def _of_messages(chunks: list[JsonObject]) -> JsonObject | None:
    """LangChain: a list of `AIMessageChunk`."""
    messages = [langchain_fields(entry(chunk, "message") or chunk) for chunk in chunks]
    if not messages or any(message.get("type") != "AIMessageChunk" for message in messages):
        return None
    calls = [{**call, "function": {**call, "arguments": call.get("args")}} for call in _pieces(messages)]
    deltas = [{"content": message.get("content")} for message in messages]
    whole = _message([*deltas, {"tool_calls": calls}])
    metadata = {key: value for message in messages for key, value in entry(message, "response_metadata").items()}
    usage = next((found for message in reversed(messages) if (found := entry(message, "usage_metadata"))), None)
    return {"content": whole["content"], "tool_calls": whole["tool_calls"], "type": "ai"} | {
        "response_metadata": metadata,
        "usage_metadata": usage,
    }


def _pieces(messages: list[JsonObject]) -> list[JsonObject]:
    return [call for message in messages for call in entries(message, "tool_call_chunks") if isinstance(call, dict)]
