"""Whether what went over the wire is what the step says that the model was asked.

Texts are compared by their lines: protocols join texts, or put them into parts of their own, and change none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from sessions_app.core.history import nodes
from sessions_app.core.judge.model_http_offers import offered_otherwise
from sessions_app.core.judge.reading import (
    SeenMessage,
    as_object,
    leaves,
    main_models,
    objects_in,
    seen_message,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.run import HttpExchange, ModelCall, Run
from sessions_app.core.spans.provider_messages.wire import WireImage, WireRequest, wire_request

_NOT_WHOLE = ("request_body_cut", "request_body_left_out")
_OF_ANSWERS = frozenset({"text", "thinking", "tool-call"})
_THOUGHT = re.compile(r"</?think(ing)?>")
_IN_WORDS_OF_THE_LOOP = frozenset({"user-prompt", "system-prompt", "tool-return"})
"""Kinds of parts that a request holds as they are; of others each protocol makes words of its own."""


def asked_otherwise(call: ModelCall, http: HttpExchange) -> str | None:
    """How the request went out otherwise than the step has it."""
    wire = _whole_request(http)
    requests = [seen for seen in _messages(call) if seen.message.get("kind") == "request"]
    if wire is None or not requests or _is_compacted(_messages(call)):
        return None
    sent, prompts = _lines([*wire.prompts, *wire.others]), _lines(wire.prompts)
    missing, added = _lines(_prompts(requests)) - sent, prompts - _lines(_all_texts(requests))
    if missing or (added and _is_plain(requests)):
        return "sends another prompt than the request of the step"
    if any(line not in sent for line in _lines([*_instructions(requests), *_answers(requests[-1])])):
        return "sends other instructions, or another answer of a tool, than the request of the step"
    if _has_other_images(requests, wire):
        return "sends another image, or one in another detail, than the request of the step"
    if _said_otherwise(_messages(call), wire):
        return "tells an earlier answer, or a thought, otherwise than the request of the step"
    return offered_otherwise(call, wire)


def _has_other_images(requests: list[SeenMessage], wire: WireRequest) -> bool:
    """One by one, where both have as many. Libraries load what is behind a link, and some keep no detail."""
    said = [image for part in _parts(requests, "user-prompt") for image in _images(part.get("content"))]
    pairs = zip(said, wire.images, strict=True) if len(said) == len(wire.images) else ()
    return any(_is_another_image(one, other) for one, other in pairs)


def _images(content: JsonValue) -> Iterator[WireImage]:
    for each in objects_in(content):
        kind, detail = each.get("kind"), as_object(each.get("vendor_metadata")).get("detail")
        data = f"data:{each.get('media_type')};base64,{each.get('data')}"
        if kind == "image-url" or (kind == "binary" and data.startswith("data:image/")):
            yield WireImage(url=str(each.get("url")) if kind == "image-url" else data, detail=detail)


def _is_another_image(said: WireImage, sent: WireImage) -> bool:
    is_loaded = sent.url.startswith("data:") and not said.url.startswith("data:")
    return (said.url != sent.url and not is_loaded) or said.detail not in (None, sent.detail)


def details_sent(body: Payload | None) -> list[JsonValue]:
    """How closely a model is to look at each image of its user."""
    wire = None if body is None else wire_request(body)
    return [] if wire is None else [image.detail or "auto" for image in wire.images]


def messages_given_otherwise(run: Run) -> str | None:
    """A function that was given messages, of which its first request holds as many: whether it shows an image of them
    in another detail, or names another user."""
    body = next((step.http.request_body for step, _ in main_models(run) if step.http is not None), None)
    sent = None if body is None else wire_request(body)
    value = value_of(run.input)
    for given in [value, *(value.values() if isinstance(value, dict) else ())]:
        said = wire_request(Payload.of_json({"messages": given})) if isinstance(given, list) else None
        if said is not None and sent is not None and _are_of_others(said, sent):
            return "the messages in the input of the run show an image in another detail, or name another user"
    return None


def _are_of_others(said: WireRequest, sent: WireRequest) -> bool:
    if len(said.names) != len(sent.names) or len(said.images) != len(sent.images):
        return False
    details = [image.detail or "auto" for image in said.images] != [image.detail or "auto" for image in sent.images]
    return details or any(None not in pair and pair[0] != pair[1] for pair in zip(said.names, sent.names, strict=True))


def _said_otherwise(messages: list[SeenMessage], wire: WireRequest) -> bool:
    """Libraries leave thoughts out, or mark them as such; what ran at a provider each protocol tells in its own way."""
    answers = [seen for seen in messages if seen.message.get("kind") == "response"]
    parts = list(_parts_of_all(answers))
    if any(part.get("part_kind") not in _OF_ANSWERS for part in parts):
        return False
    said = _lines(text for part in parts for text in _texts(part.get("content")))
    return any(line not in said for line in _lines(wire.answers) if not _THOUGHT.fullmatch(line))


def is_sent_whole(http: HttpExchange) -> bool:
    return http.request_body is not None and not any(http.extra.get(name) for name in _NOT_WHOLE)


def _whole_request(http: HttpExchange) -> WireRequest | None:
    if http.request_body is None or not is_sent_whole(http):
        return None
    wire = wire_request(http.request_body)
    if wire is None or wire.is_continued or any(map(PLACEHOLDER.search, [*wire.prompts, *wire.others])):
        return None
    return wire


def _messages(call: ModelCall) -> list[SeenMessage]:
    return [seen_message(node.message, step=0) for node in nodes(call.history)][::-1]


def _is_compacted(messages: list[SeenMessage]) -> bool:
    """What came before is left out of the request then."""
    return any(str(part.get("part_kind")) == "compaction" for seen in messages for part in seen.parts)


def _lines(texts: Iterable[str]) -> Counter[str]:
    """How often each is there; of those that were redacted nothing is known."""
    lines = (line.strip() for text in texts for line in text.split("\n"))
    return Counter(line for line in lines if line and not PLACEHOLDER.search(line))


def _prompts(requests: list[SeenMessage]) -> Iterator[str]:
    for part in _parts(requests, "user-prompt"):
        yield from _texts(part.get("content"))


def _instructions(requests: list[SeenMessage]) -> Iterator[str]:
    """The system prompts of all of them, and the instructions of the newest."""
    said = [part.get("content") for part in _parts(requests, "system-prompt")]
    yield from (text for text in [*said, requests[-1].message.get("instructions")] if isinstance(text, str))


def _answers(newest: SeenMessage) -> Iterator[str]:
    """Those that are a text. A protocol has words of its own for a failure."""
    for part in newest.parts_of("tool-return"):
        if part.get("outcome") in (None, "success") and isinstance(part.get("content"), str):
            yield part["content"]


def _all_texts(requests: list[SeenMessage]) -> Iterator[str]:
    yield from _instructions(requests)
    for part in _parts(requests, *_IN_WORDS_OF_THE_LOOP):
        yield from _texts(part.get("content"))


def _parts(requests: list[SeenMessage], *kinds: str) -> Iterator[JsonObject]:
    return (part for seen in requests for part in seen.parts_of(*kinds))


def _texts(content: JsonValue) -> list[str]:
    """A prompt is a text, or a list of texts and files."""
    return [each for each in (content if isinstance(content, list) else [content]) if isinstance(each, str)]


def _is_plain(requests: list[SeenMessage]) -> bool:
    """Whether it holds texts alone: beside a file, a protocol may name it. Files of tools say their kind."""
    has_words_of_its_own = any(part.get("part_kind") not in _IN_WORDS_OF_THE_LOOP for part in _parts_of_all(requests))
    prompts = [part.get("content") for part in _parts(requests, "user-prompt")]
    has_others = any(len(_texts(each)) < (len(each) if isinstance(each, list) else 1) for each in prompts)
    given = (part.get("content") for part in _parts(requests, "tool-return"))
    has_files = any(key == "kind" for content in given for key, _ in leaves(content))
    return not (has_words_of_its_own or has_others or has_files)


def _parts_of_all(messages: list[SeenMessage]) -> Iterator[JsonObject]:
    return (part for seen in messages for part in seen.parts)
