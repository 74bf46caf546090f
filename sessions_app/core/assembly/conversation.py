"""Messages of any framework in the shape of the record format (Pydantic AI's), each call's history on the one before.

Conventions write the same message in several ways: an answer as one message or as several, arguments as text or as an
object, an empty text or none. A history that goes on from an earlier call is told apart from a new one by what the
messages say; the earlier call's own messages are then taken, so that spelling is no difference.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import is_
from typing import NamedTuple

from sessions_app.core.assembly.contradictions import is_another_name
from sessions_app.core.assembly.requests import comparable
from sessions_app.core.embedded_json import arguments_in
from sessions_app.core.history import History
from sessions_app.core.payload import JsonObject, JsonValue, Payload, canonical_json, compact_json
from sessions_app.core.spans.provider_messages.messages import ROLES
from sessions_app.core.spans.reading import (
    BuiltinResultPart,
    CallPart,
    ChatMessage,
    OtherPart,
    Part,
    ResultPart,
    TextPart,
    ThinkingPart,
)

_LOOK_BACK = 32
"""Earlier calls that a history may go on from; sub-agents take turns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Neighbouring messages of one side: what went to the model, or what came from it."""

    is_answer: bool
    messages: tuple[ChatMessage, ...]

    @property
    def parts(self) -> list[Part]:
        return [part for message in self.messages for part in message.parts]

    def calls(self) -> list[CallPart]:
        """Those that wait for somebody's result."""
        return [part for part in self.parts if isinstance(part, CallPart) and not part.is_builtin]


@dataclass(frozen=True, kw_only=True, slots=True)
class Converted:
    """One model call in the record's words."""

    history: History | None
    response: Payload | None
    instructions: str | None
    calls: tuple[tuple[CallPart, str], ...]
    """What the answer asks for, each with its call id."""
    results: dict[str, ResultPart]
    """Answers of tools that this request brought, by call id."""
    prompt: ChatMessage | None
    """The newest message of a user."""
    start: History | None
    """What stands before the newest request, where the conversation has no earlier call here."""
    other_results: str | None
    """How the request told of the results of tools, where not as a replay gives them."""
    unknown_role: str | None
    """The first role of a message that nobody here knows."""
    other_speaker: str | None
    """The role of the answer, where it is not that of a model."""
    past_told: str | None = None
    """What an earlier request or answer spelled otherwise in the same messages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Known:
    """A conversation up to and with an answer."""

    keys: tuple[int, ...]
    texts: tuple[int, ...]
    """What was said beside calls of tools, 0 for nothing."""
    spelled: tuple[_Spelled, ...]
    history: History
    ids: tuple[tuple[CallPart, str], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """The messages of one call in turns, with the numbers of each."""

    messages: list[ChatMessage]
    turns: tuple[Turn, ...]
    keys: tuple[int, ...]
    texts: tuple[int, ...]
    spelled: tuple[_Spelled, ...]
    calls: Mapping[str, str]
    """The tool of each call, by its id."""
    other_results: str | None
    """How the results stand otherwise than the calls before them."""


class _Spelled(NamedTuple):
    """How a turn spells what its key leaves out, each as a number; 0 for what it does not tell."""

    roles: int = 0
    space: int = 0
    """The texts with the white space around them."""
    order: int = 0
    """The arguments of calls with their keys in order."""
    ids: int = 0
    """Of calls, where all of them have one."""
    thoughts: int = 0
    users: int = 0
    """The names of those who say it."""


_NOTHING_TOLD = _Told(messages=[], turns=(), keys=(), texts=(), spelled=(), calls={}, other_results=None)
_Numbers = tuple[int, int, _Spelled]
"""Of a turn: its key, its text, and how it is spelled."""


class Conversations:
    """The conversations of one trace, as its model calls come in order of time.

    `is_exact`: the messages are those that were sent, so one goes on from another where it repeats all of it as it was.
    Conventions of spans leave out and trim. `answered` are calls that an earlier run answered beside those that it left
    open: a loop that goes on from there tells of them in a message of their own, and spans of all in one.
    """

    def __init__(self, *, is_exact: bool = False, answered: Collection[str] = ()) -> None:
        self._is_exact = is_exact
        self._answered = answered
        self._known: list[_Known] = []
        self._numbers: dict[bytes, int] = {}
        self._known_turns: dict[tuple[int, ...], tuple[Turn, _Numbers]] = {}
        """By the identity of their messages, which calls of one conversation share; the turn keeps these alive."""
        self._told: dict[int, _Told] = {}
        """The newest list of messages of each conversation, by the identity of the first one."""
        self._spellings: dict[tuple[str | None, int], JsonValue] = {}
        """The arguments of each call as its answer gave them, by its id and what it says."""
        self._names: dict[str, str] = {}
        """The tool of each call that an answer asked for, by its id."""

    def take(
        self,
        messages: Sequence[ChatMessage] | None,
        answer: ChatMessage | None,
        *,
        apart: str | None,
        model: str | None,
    ) -> Converted:
        """`apart` is the system prompt that the convention keeps apart, `model` the one that answered."""
        if messages is None:
            return self._answer_alone(answer, apart, model)
        instructions, said = without_system(messages, apart)
        told = self._all_told(said)
        before = (self._number(["instructions", instructions]),) if self._is_exact else ()
        keys, texts = (*before, *told.keys), (*before, *told.texts)
        spelled = (_Spelled(roles=self._roles(messages[: len(messages) - len(said)])), *told.spelled)
        known = self._newest_start_of(keys, texts)
        first = len(known.keys) - len(before) if known else 0
        history, results, start, other_results = self._extended(known, told.turns, first, instructions)
        response, calls = _response(answer, len(told.turns), model)
        self._spellings |= {self._call_key(call): call.arguments for call, _ in calls}
        self._names |= {call_id: call.tool_name for call, call_id in calls}
        if history is not None and response is not None and answer is not None:
            key, text, as_given = self._numbers_of(Turn(is_answer=True, messages=(answer,)))
            ended = _Known(
                keys=(*keys, key),
                texts=(*texts, text),
                spelled=(*spelled, as_given._replace(roles=0)),
                history=History(history, response),
                ids=calls,
            )
            self._known.append(ended)
        return Converted(
            history=history,
            response=response,
            instructions=instructions,
            calls=calls,
            results=results,
            prompt=_newest_prompt(said),
            start=start,
            other_results=told.other_results or other_results,
            unknown_role=_unknown_role(messages, answer),
            other_speaker=_other_speaker(answer),
            past_told=None if known is None else _past_told(known, spelled, texts, is_exact=self._is_exact),
        )

    def _answer_alone(self, answer: ChatMessage | None, apart: str | None, model: str | None) -> Converted:
        response, calls = _response(answer, 0, model)
        return Converted(
            history=None,
            response=response,
            instructions=apart,
            calls=calls,
            results={},
            prompt=None,
            start=None,
            other_results=None,
            unknown_role=_unknown_role((), answer),
            other_speaker=_other_speaker(answer),
        )

    def _all_told(self, messages: list[ChatMessage]) -> _Told:
        """The messages in turns. What a call before this one told as well is taken from there, up to its last turn,
        which may have gone on."""
        key = id(messages[0]) if messages else 0
        before = self._told.get(key, _NOTHING_TOLD)
        if len(before.messages) > len(messages) or not all(map(is_, before.messages, messages)):
            before = _NOTHING_TOLD
        settled = before.turns[:-1]
        first = len(before.messages) - len(before.turns[-1].messages) if before.turns else 0
        turns = turns_of(messages[first:])
        numbers = list(map(self._numbers_of, turns))
        calls, other_results = _results_in(turns, before.calls, self._names)
        told = self._told[key] = _Told(
            messages=messages,
            turns=(*settled, *turns),
            keys=(*before.keys[: len(settled)], *(key for key, _, _ in numbers)),
            texts=(*before.texts[: len(settled)], *(text for _, text, _ in numbers)),
            spelled=(*before.spelled[: len(settled)], *(spelled for _, _, spelled in numbers)),
            calls=calls,
            other_results=before.other_results or other_results,
        )
        return told

    def _newest_start_of(self, keys: tuple[int, ...], texts: tuple[int, ...]) -> _Known | None:
        for known in reversed(self._known[-_LOOK_BACK:]):
            if keys[: len(known.keys)] == known.keys and _agree(known.texts, texts):
                return known
        return None

    def _extended(
        self, known: _Known | None, turns: Sequence[Turn], first: int, instructions: str | None
    ) -> tuple[History | None, dict[str, ResultPart], History | None, str | None]:
        history = known.history if known else None
        ids = list(known.ids) if known else []
        start = history
        results: dict[str, ResultPart] = {}
        others: str | None = None
        for position, turn in enumerate(self._in_messages(known, turns)[first:], start=first):
            if turn.is_answer:
                response, calls = _response_of_turn(self._as_given(turn), position, None)
                history, ids = History(history, response), list(calls)
            else:
                start = history
                request, given, odd = _request(self._named(turn, ids), instructions, ids, is_exact=self._is_exact)
                others = others or odd
                # Also those of earlier turns: nobody else may have told of them.
                results |= given
                history = History(history, request)
        return history, results, start, others

    def _in_messages(self, known: _Known | None, turns: Sequence[Turn]) -> Sequence[Turn]:
        if known is not None or not turns or not self._answered:
            return turns
        return [*turns[:-1], *_answered_apart(turns[-1], self._answered)]

    def _as_given(self, turn: Turn) -> Turn:
        """An answer that a request sends back changed: calls that say what they did keep their spelling."""
        if self._is_exact:
            return turn
        said = (replace(each, parts=tuple(map(self._call_as_given, each.parts))) for each in turn.messages)
        return replace(turn, messages=tuple(said))

    def _call_as_given(self, part: Part) -> Part:
        if not isinstance(part, CallPart):
            return part
        return replace(part, arguments=self._spellings.get(self._call_key(part), part.arguments))

    def _named(self, turn: Turn, waiting: Sequence[tuple[CallPart, str]]) -> Turn:
        """Results that were sent by their id alone, to a provider that keeps what was said; also where an exact request
        tells of their call otherwise."""
        said = (replace(each, parts=tuple(map(self._result_named, each.parts))) for each in turn.messages)
        return replace(turn, messages=tuple(said)) if self._is_exact or not waiting else turn

    def _result_named(self, part: Part) -> Part:
        if not isinstance(part, ResultPart) or part.tool_name is not None or part.call_id is None:
            return part
        return replace(part, tool_name=self._names.get(part.call_id))

    def _call_key(self, call: CallPart) -> tuple[str | None, int]:
        return call.call_id, self._number(_part_key(call))

    def _numbers_of(self, turn: Turn) -> _Numbers:
        identity = tuple(map(id, turn.messages))
        known = self._known_turns.get(identity)
        if known is None:
            roles, ids = self._roles(turn.messages), self._ids(turn)
            names = self._users(turn.messages)
            spelled = _Spelled(roles, self._space(turn), self._order(turn), ids, self._thoughts(turn), names)
            numbers = self._key(turn), self._text(turn), spelled
            known = self._known_turns[identity] = (turn, numbers)
        return known[1]

    def _key(self, turn: Turn) -> int:
        """Equal for turns that say the same. Words beside calls of tools are left out by some conventions."""
        calls = [part for part in turn.parts if isinstance(part, CallPart)] if turn.is_answer else []
        if self._is_exact:
            return self._number([turn.is_answer, [key for part in turn.parts if (key := _exact_key(part))]])
        return self._number([turn.is_answer, [key for part in calls or turn.parts if (key := _part_key(part))]])

    def _text(self, turn: Turn) -> int:
        if not turn.is_answer or not turn.calls():
            return 0
        words = "".join(message.words("\n") for message in turn.messages).strip()
        return self._number(words) if words else 0

    def _space(self, turn: Turn) -> int:
        texts = [part.text for part in turn.parts if isinstance(part, TextPart) and part.text.strip()]
        return self._number(["words", *texts]) if texts else 0

    def _order(self, turn: Turn) -> int:
        """A text, as a number is made of values whatever the order of their keys."""
        given = [compact_json(comparable(arguments_in(call.arguments))).decode() for call in turn.calls()]
        return self._number(["arguments", *given]) if given else 0

    def _ids(self, turn: Turn) -> int:
        ids = [call.call_id for call in turn.calls()]
        return self._number(["ids", *ids]) if ids and all(map(_is_of_call, ids)) else 0

    def _thoughts(self, turn: Turn) -> int:
        """Conventions of spans leave out some of what a provider says of a thought."""
        thoughts = [part for part in turn.parts if isinstance(part, ThinkingPart)]
        said = [[each.text, each.id, each.signature] if self._is_exact else each.text.strip() for each in thoughts]
        return self._number(["thoughts", *said]) if said else 0

    def _roles(self, messages: Sequence[ChatMessage]) -> int:
        """As they are spelled, each once for messages that follow on each other; 0 where none is."""
        spelled = [role for role, _ in groupby(message.spelled_role for message in messages)]
        return self._number(["roles", *spelled]) if any(spelled) else 0

    def _users(self, messages: Sequence[ChatMessage]) -> int:
        names = [message.name for message in messages]
        return self._number(["users", *names]) if any(names) else 0

    def _number(self, value: JsonValue) -> int:
        return self._numbers.setdefault(canonical_json(value), len(self._numbers) + 1)


def _unknown_role(messages: Sequence[ChatMessage], answer: ChatMessage | None) -> str | None:
    said = (message.spelled_role or "" for message in [*messages, *([] if answer is None else [answer])])
    return next((role for role in said if role and role.lower() not in ROLES), None)


def _other_speaker(answer: ChatMessage | None) -> str | None:
    role = (answer.spelled_role if answer is not None else None) or "assistant"
    return role if ROLES.get(role.lower(), "assistant") != "assistant" else None


def _agree(known: tuple[int, ...], texts: tuple[int, ...]) -> bool:
    """Whether nothing was said otherwise; `texts` may be longer."""
    if texts[: len(known)] == known:
        return True
    return all(left == right or 0 in (left, right) for left, right in zip(known, texts, strict=False))


def _past_told(known: _Known, told: tuple[_Spelled, ...], texts: tuple[int, ...], *, is_exact: bool) -> str | None:
    """What a request tells otherwise of the turns that were told before. An exact one tells all thoughts."""
    if known.texts != texts[: len(known.texts)]:
        return "the words beside a call"
    pairs = [(left, right) for left, right in zip(known.spelled, told, strict=False) if left != right]
    if is_exact and any(left.thoughts != right.thoughts for left, right in pairs):
        return _THOUGHTS
    for place, words in enumerate(_WORDS):
        if any(left[place] != right[place] and 0 not in (left[place], right[place]) for left, right in pairs):
            return words
    return None


_THOUGHTS = "the thinking of an answer"
_WORDS = (
    "the role of a message",
    "white space around a message",
    "the order of keys in the arguments of a call",
    "the id of a call",
    _THOUGHTS,
    "the name of a user",
)
"""By the fields of `_Spelled`."""


def _exact_key(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return ["text", part.text] if part.text else None
        case CallPart():
            return ["call", part.call_id, part.tool_name, comparable(part.arguments)]
        case ResultPart():
            return ["result", part.call_id, part.content, part.is_error]
        case BuiltinResultPart():
            return ["result", part.call_id, part.content]
    return _part_key(part)


def _part_key(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return ["text", part.text.strip()] if part.text.strip() else None
        case ThinkingPart():
            return None  # many leave it out when they send an answer back
        case CallPart():
            return ["call", part.tool_name, comparable(arguments_in(part.arguments))]
        case ResultPart() | BuiltinResultPart():
            return ["result", comparable(part.content)]
        case OtherPart():
            return ["other", part.kind, comparable(part.value)]


# --- turns -------------------------------------------------------------------------------------


def without_system(messages: Sequence[ChatMessage], apart: str | None) -> tuple[str | None, list[ChatMessage]]:
    """The system prompt that stands before everything else, and the messages after it."""
    count = 0
    while count < len(messages) and messages[count].role == "system":
        count += 1
    texts = [message.words("\n") for message in messages[:count]]
    if apart is not None and apart not in texts:
        texts.insert(0, apart)
    return "\n\n".join(texts) if texts else None, list(messages[count:])


def _answered_apart(turn: Turn, answered: Collection[str]) -> list[Turn]:
    """The answers to these calls, and what stands beside them."""
    messages = [_divided(message, answered) for message in turn.messages]
    halves = (tuple(message for message in half if message.parts) for half in zip(*messages, strict=True))
    return [Turn(is_answer=turn.is_answer, messages=half) for half in halves if half] or [turn]


def _divided(message: ChatMessage, answered: Collection[str]) -> tuple[ChatMessage, ChatMessage]:
    are_answered = [isinstance(part, ResultPart) and part.call_id in answered for part in message.parts]
    before = tuple(part for part, is_answered in zip(message.parts, are_answered, strict=True) if is_answered)
    rest = tuple(part for part, is_answered in zip(message.parts, are_answered, strict=True) if not is_answered)
    return replace(message, parts=before), replace(message, parts=rest)


def turns_of(messages: Sequence[ChatMessage]) -> list[Turn]:
    groups = groupby(messages, key=lambda message: message.role == "assistant")
    return [Turn(is_answer=is_answer, messages=tuple(group)) for is_answer, group in groups]


def _newest_prompt(messages: Sequence[ChatMessage]) -> ChatMessage | None:
    return next((message for message in reversed(messages) if message.role == "user"), None)


# --- messages of the record --------------------------------------------------------------------


def _request(
    turn: Turn, instructions: str | None, ids: list[tuple[CallPart, str]], *, is_exact: bool
) -> tuple[Payload, dict[str, ResultPart], str | None]:
    """The message, the results in it by call id, and how these stood otherwise than they do in the message.

    `ids` are the calls that wait; each is answered once.
    """
    order = [call_id for _, call_id in ids]
    parts: list[JsonObject] = []
    results: dict[str, ResultPart] = {}
    has_other_ids = False
    for message in turn.messages:
        if message.role == "system":
            parts.append(_system_part(message))
        else:
            for part in message.parts:
                if isinstance(part, ResultPart):
                    has_other_ids |= _has_other_id(part, ids)
                    call_id, tool_name = _answered_call(part, ids, is_exact=is_exact)
                    # Of spans it is their own status that tells of a failure.
                    results[call_id] = part if is_exact else replace(part, is_error=False)
                    parts.append(_tool_return(results[call_id], call_id, tool_name))
            parts += _user_prompt(message)
    in_order = _in_order_of_calls(parts, order)
    said: JsonObject = {"parts": in_order, "kind": "request"}
    whole = said if instructions is None and not is_exact else {**said, "instructions": instructions}
    order_told = "stood in another order than the calls" if in_order != parts else None
    return Payload.of_json(whole), results, _OTHER_IDS if has_other_ids else order_told


_OTHER_IDS = "had ids of no open call"


def _system_part(message: ChatMessage) -> JsonObject:
    match message.parts:
        case (OtherPart(kind="tool-availability-delta", value=dict(said)),):
            return {"part_kind": "tool-availability-delta", **said}
    return {"part_kind": "system-prompt", "content": message.words("\n")}


def _has_other_id(part: ResultPart, waiting: list[tuple[CallPart, str]]) -> bool:
    """Whether its id speaks for none of the calls that wait, though these have ids of their own."""
    ids = {call.call_id for call, _ in waiting if _is_of_call(call.call_id)}
    return part.call_id is not None and bool(ids) and part.call_id not in ids


def _is_of_call(call_id: str | None) -> bool:
    """OpenAI's Responses API has ids of items too, which some requests tell in place of the call's."""
    return call_id is not None and not call_id.startswith("fc_")


def _results_in(
    turns: Sequence[Turn], before: Mapping[str, str], asked: Mapping[str, str]
) -> tuple[Mapping[str, str], str | None]:
    """The tools of the calls by their ids, and how a result stands otherwise than they and all that was asked. Some
    frameworks send back all calls under ids of their own, and a history that was cut may lack them."""
    calls = {**before}
    others: str | None = None
    for part in (part for turn in turns for part in turn.parts):
        if isinstance(part, CallPart) and part.call_id is not None:
            calls[part.call_id] = part.tool_name
        if isinstance(part, ResultPart) and part.call_id is not None:
            others = others or _told_otherwise(part, part.call_id, calls, asked)
    return calls, others


def _told_otherwise(part: ResultPart, call_id: str, calls: Mapping[str, str], asked: Mapping[str, str]) -> str | None:
    called = calls.get(call_id, asked.get(call_id))
    if called is None:
        return None if asked.keys().isdisjoint(calls) else _OTHER_IDS
    is_other = part.tool_name is not None and is_another_name(called, part.tool_name)
    return _OTHER_NAMES if is_other else None


_OTHER_NAMES = "had names of other tools than their calls"


def _in_order_of_calls(parts: list[JsonObject], order: list[str]) -> list[JsonObject]:
    """Answers of tools that ran at once may stand in the order in which they ended; a loop gives them as asked."""
    places = [place for place, part in enumerate(parts) if part.get("tool_call_id") in order]
    answers = sorted((parts[place] for place in places), key=lambda part: order.index(part["tool_call_id"]))
    sorted_parts = list(parts)
    for place, answer in zip(places, answers, strict=True):
        sorted_parts[place] = answer
    return sorted_parts


def _tool_return(part: ResultPart, call_id: str, tool_name: str) -> JsonObject:
    told = {"part_kind": "tool-return", "tool_name": tool_name, "content": part.content, "tool_call_id": call_id}
    return {**told, "outcome": "failed"} if part.is_error else told


def _answered_call(part: ResultPart, waiting: list[tuple[CallPart, str]], *, is_exact: bool) -> tuple[str, str]:
    """The call that this result answers: by id, else by name in order, else the first that waits. What was sent with an
    id of no call answers none."""
    has_own_id = is_exact and any(call.call_id is not None for call, _ in waiting)
    for fits in (
        lambda call, call_id: part.call_id is not None and part.call_id == call_id,
        lambda call, call_id: not has_own_id and part.tool_name is not None and part.tool_name == call.tool_name,
        lambda call, call_id: not has_own_id and part.tool_name is None,
    ):
        for pair in waiting:
            if fits(*pair):
                waiting.remove(pair)
                return pair[1], pair[0].tool_name
    return part.call_id or "unknown", part.tool_name or "unknown"


def _user_prompt(message: ChatMessage) -> list[JsonObject]:
    content = [_content(part) for part in message.parts if not isinstance(part, ResultPart)]
    if not content:
        return [] if message.parts else [{"part_kind": "user-prompt", "content": ""}]
    is_text = len(content) == 1 and isinstance(content[0], str)
    return [{"part_kind": "user-prompt", "content": content[0] if is_text else content}]


def _content(part: Part) -> JsonValue:
    match part:
        case TextPart() | ThinkingPart():
            return part.text
        case OtherPart():
            return _file(part) or part.spelled
        case CallPart() | ResultPart() | BuiltinResultPart():
            return f"[{part.tool_name}]"


def _file(part: OtherPart) -> JsonObject | None:
    """A file, or an image by its address, as Pydantic AI writes it; of other kinds their JSON is kept."""
    if part.kind in ("blob", "binary"):
        return _binary(part)
    value = part.value if isinstance(part.value, dict) else {}
    image = value.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if part.kind == "image-url":  # Pydantic AI's formats before the fifth
        url = value.get("url")
    if part.kind == "uri" and value.get("modality") == "image":
        url = value.get("uri")
    return {"kind": "image-url", "url": url} if isinstance(url, str) else None


def _binary(part: OtherPart) -> JsonObject | None:
    """None for what is no file, and where its bytes were left out."""
    value: JsonObject = part.value if part.kind in _BYTES and isinstance(part.value, dict) else {}
    inside = value.get("content")
    file: JsonObject = inside if isinstance(inside, dict) else {}  # as our own export spells one
    said = value.get("mime_type", value.get("media_type"))
    data, media_type = file.get("data", inside), file.get("media_type", said)
    if not (isinstance(data, str) and isinstance(media_type, str) and _is_base64(data)):
        return None
    return {"kind": "binary", "data": data, "media_type": media_type}


_BYTES = ("blob", "binary", "file")
"""Kinds of parts that carry bytes; `binary` is that of Pydantic AI's formats before the fifth."""


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except ValueError:
        return False


def _response(
    answer: ChatMessage | None, position: int, model: str | None
) -> tuple[Payload | None, tuple[tuple[CallPart, str], ...]]:
    if answer is None:
        return None, ()
    return _response_of_turn(Turn(is_answer=True, messages=(answer,)), position, model)


def _response_of_turn(turn: Turn, position: int, model: str | None) -> tuple[Payload, tuple[tuple[CallPart, str], ...]]:
    calls = tuple((call, call.call_id or f"call_{position}_{n}") for n, call in enumerate(turn.calls(), start=1))
    ids = iter(call_id for _, call_id in calls)
    parts = [part for said in turn.parts for part in _answer_part(said, ids)]
    message: JsonObject = {"parts": parts, "kind": "response"}
    return Payload.of_json(message if model is None else {**message, "model_name": model}), calls


_RUN_BY_PROVIDER = frozenset(
    {"web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call"}
)
"""Items of OpenAI Responses for tools that the provider runs: beside the words of an answer, and none of them."""


def _answer_part(part: Part, ids: Iterator[str]) -> Iterator[JsonObject]:
    match part:
        case TextPart():
            if part.text:
                yield {"part_kind": "text", "content": part.text}
        case ThinkingPart():
            yield {"part_kind": "thinking", "content": part.text, "id": part.id, "signature": part.signature}
        case CallPart():
            yield {
                "part_kind": "builtin-tool-call" if part.is_builtin else "tool-call",
                "tool_name": part.tool_name,
                "args": part.arguments if isinstance(part.arguments, str | dict) else None,
                "tool_call_id": (part.call_id or "unknown") if part.is_builtin else next(ids),
            }
        case ResultPart() | BuiltinResultPart():
            yield {
                "part_kind": "builtin-tool-return",
                "tool_name": part.tool_name or "unknown",
                "content": part.content,
                "tool_call_id": part.call_id or "unknown",
            }
        case OtherPart(kind=kind, value=dict(value)) if kind in _RUN_BY_PROVIDER:
            call_id = value.get("id")
            called = {"part_kind": "builtin-tool-call", "tool_name": kind, "args": value}
            yield {**called, "tool_call_id": call_id if isinstance(call_id, str) else "unknown"}
        case OtherPart():
            # The replaying library knows no other kinds of parts.
            file = _binary(part)
            yield {"part_kind": "file", "content": file} if file else {"part_kind": "text", "content": part.spelled}
