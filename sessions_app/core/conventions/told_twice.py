"""Whether two readings of one model call tell its messages and tools alike: the parts of a span, or two spans.

Conventions leave out and cut; what both tell, in as many parts, they must tell alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sessions_app.core.compare.strict import is_number, same_json
from sessions_app.core.conventions.roles import role_of, speaker_of
from sessions_app.core.embedded_json import arguments_in, parsed
from sessions_app.core.finish_reasons import ended_otherwise
from sessions_app.core.payload import JsonObject, JsonValue, canonical_json
from sessions_app.core.spans.provider_messages.parts import is_known_type
from sessions_app.core.spans.reading import (
    CallPart,
    ChatMessage,
    OtherPart,
    Part,
    Reading,
    ResultPart,
    TextPart,
    ToolDefinition,
)

Messages = Sequence[ChatMessage] | None
Tools = Sequence[ToolDefinition] | None


def is_conversation_told_otherwise(reading: Reading, other: Reading) -> bool:
    """Whether the two of a whole run began with other messages or ended with others."""
    pairs = (reading.initial, other.initial), (reading.conversation, other.conversation)
    return any(is_another_conversation(one, another) for one, another in pairs)


def is_another_conversation(left: Messages, right: Messages) -> bool:
    """Whether both say something beside the words of the system, and not the same."""
    one, other = spoken_in(left), spoken_in(right)
    is_otherwise = one != other or are_calls_named_otherwise(left, right) or are_roles_spelled_otherwise(left, right)
    return bool(one and other) and is_otherwise


def are_messages_told_otherwise(reading: Reading, other: Reading) -> bool:
    """Whether the two have another request or another answer, or one that ended otherwise."""
    return (
        _is_another_answer(reading.answer, other.answer)
        or _are_answers_of_others(reading.answer, other.answer)
        or _are_types_spelled_otherwise([reading.answer], [other.answer])
        or ended_otherwise(reading.finish_reason, other.finish_reason)
        or _are_requests_told_otherwise(reading.messages, other.messages)
    )


def _are_requests_told_otherwise(left: Messages, right: Messages) -> bool:
    if not left or not right:
        return False
    said = spoken_in(left), spoken_in(right)
    one, other = ([part for _, part in each] for each in said)
    return (
        _have_other_parts(one, other)
        or _is_cut_short(one, other)
        or (one == other and (said[0] != said[1] or are_calls_named_otherwise(left, right)))
        or are_roles_spelled_otherwise(left, right)
        or _are_of_other_users(left, right)
        or _are_types_spelled_otherwise(left, right)
        or is_system_told_otherwise(left, right)
    )


def _have_other_parts(one: list[bytes], other: list[bytes]) -> bool:
    return len(one) == len(other) and one != other


def _are_of_other_users(left: Messages, right: Messages) -> bool:
    """Whether a message that both name the user of is of another one."""
    one, other = ([each.name for each in messages or () if each.role == "user"] for messages in (left, right))
    return len(one) == len(other) and any(
        None not in pair and len({*pair}) == 2 for pair in zip(one, other, strict=True)
    )


def _is_another_answer(left: ChatMessage | None, right: ChatMessage | None) -> bool:
    if left is None or right is None:
        return False
    one, other = said_in((left,)), said_in((right,))
    return _have_other_parts(one, other) or _have_other_calls(left, right)


def _have_other_calls(left: ChatMessage, right: ChatMessage) -> bool:
    """Also where one of the two leaves out the words beside them."""
    one, other = (replace(each, parts=tuple(_calls_in((each,)))) for each in (left, right))
    said = said_in((one,)), said_in((other,))
    return _have_other_parts(*said) or (said[0] == said[1] and are_calls_named_otherwise((one,), (other,)))


def _are_answers_of_others(left: ChatMessage | None, right: ChatMessage | None) -> bool:
    """Whether both say whose the answer is, and one of them that it is not a model's."""
    both = [each for each in (left, right) if each is not None and each.spelled_role is not None]
    if len(both) < 2:
        return False
    return (
        are_roles_spelled_otherwise(both[:1], both[1:])
        or len({role_of(each.spelled_role, "user") for each in both}) == 2
    )


def are_calls_named_otherwise(left: Messages, right: Messages) -> bool:
    """Of two that tell the same calls and results: whether a name of a tool or an id that both tell differs."""
    pairs = zip(_names_in(left), _names_in(right), strict=False)
    return any(one != other and None not in (one, other) for one, other in pairs)


def _names_in(messages: Messages) -> list[str | None]:
    return [name for part in _calls_in(messages) for name in (part.tool_name, part.call_id)]


def ids_in(messages: Messages) -> list[str | None]:
    """Of the calls and results, in their order."""
    return [part.call_id for part in _calls_in(messages)]


def _calls_in(messages: Messages) -> Iterator[CallPart | ResultPart]:
    parts = (part for message in messages or () for part in message.parts)
    return (part for part in parts if isinstance(part, CallPart | ResultPart))


def is_system_told_otherwise(left: Messages, right: Messages) -> bool:
    """Of two that both have words of the system among their messages; or one of them has them as somebody else's."""
    one, other = _system_of(left), _system_of(right)
    if one and other:
        return one != other
    others = (message for message in (*(left or ()), *(right or ())) if message.role != "system")
    return not {*one, *other}.isdisjoint(message.words("\n").strip() for message in others)


def are_instructions_told_otherwise(reading: Reading, other: Reading) -> bool:
    """Whether both have words of the system, apart or among their messages, and not the same."""
    left, right = map(_system_prompt, (reading, other))
    return bool(left and right) and left != right


def _system_prompt(reading: Reading) -> list[str]:
    """In words: protocols put line breaks between its texts, or none."""
    texts = dict.fromkeys(((reading.instructions or "").strip(), *_system_of(reading.messages or reading.initial)))
    return " ".join(texts).split()


def is_repeated_otherwise(repeated: str | None, messages: Messages, instructions: str | None) -> bool:
    """Whether the instructions that a response repeats are none of the words of the system, where a request tells
    such."""
    said = [*_system_of(messages), *([instructions.strip()] if instructions else [])]
    return bool(repeated and said) and (repeated or "").strip() not in said


def _system_of(messages: Messages) -> list[str]:
    words = (message.words("\n").strip() for message in messages or () if message.role == "system")
    return [each for each in words if each]


def _is_cut_short(one: list[bytes], other: list[bytes]) -> bool:
    """Whether one of the two ends before the other, which is the newest of what the model was sent."""
    shorter, longer = sorted((one, other), key=len)
    return len(shorter) < len(longer) and longer[: len(shorter)] == shorter


def are_roles_spelled_otherwise(left: Messages, right: Messages) -> bool:
    """Whether one of the two has a role in other letters (`USER`), which a provider may not take for that role."""
    one, other = _spellings(left), _spellings(right)
    return any(one[role] != other[role] for role in one.keys() & other.keys())


def _spellings(messages: Messages) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for role in (message.spelled_role for message in messages or ()):
        if role is not None:
            found.setdefault(role.lower(), set()).add(role)
    return found


def _are_types_spelled_otherwise(left: Sequence[ChatMessage | None], right: Sequence[ChatMessage | None]) -> bool:
    """Whether one of the two has a part of a type in other letters or with white space (`text `), which nobody reads:
    there the two need not hold as many parts."""
    one, other = ({part.kind for part in _others_in(each) if _is_misspelled(part.kind)} for each in (left, right))
    return one != other


def _others_in(messages: Sequence[ChatMessage | None]) -> Iterator[OtherPart]:
    parts = (part for message in messages if message is not None for part in message.parts)
    return (part for part in parts if isinstance(part, OtherPart))


def _is_misspelled(kind: str) -> bool:
    return is_known_type(kind.strip().lower()) and not is_known_type(kind)


def lacks_tools(whole: Tools, other: Tools) -> bool:
    """Whether a list that leaves out nothing names fewer tools than another one."""
    return not {tool.name for tool in other or ()} <= {tool.name for tool in whole or ()}


def are_tools_told_otherwise(left: Tools, right: Tools) -> bool:
    """Whether each names a tool that the other does not, or one of the definitions that both hold differs. One of two
    lists may leave out the tools of the provider."""
    one, other = ({tool.name for tool in each or ()} for each in (left, right))
    if one and other and not (one <= other or other <= one):
        return True
    known = {tool.name: tool for tool in right or ()}
    return any(_is_defined_otherwise(known.get(tool.name, tool), tool) for tool in left or ())


def _is_defined_otherwise(one: ToolDefinition, other: ToolDefinition) -> bool:
    """One without a schema tells less."""
    is_whole = one.parameters is not None and other.parameters is not None
    return one != other if is_whole else is_another_definition(one, other)


def are_settings_told_otherwise(left: JsonObject | None, right: JsonObject | None) -> bool:
    """Whether a number that both tell differs. Of other settings conventions keep different fields."""
    both = (left or {}).keys() & (right or {}).keys()
    pairs = [(parsed((left or {})[name]), parsed((right or {})[name])) for name in both]
    return any(is_number(one) and is_number(other) and one != other for one, other in pairs)


def are_offers_told_otherwise(left: Tools, right: Tools) -> bool:
    """Whether two lists of what was offered name other tools, or tell otherwise what both tell of one; a list that
    leaves out fields tells less."""
    known = {tool.name: tool for tool in right or ()}
    if not left or not right or known.keys() != {tool.name for tool in left}:
        return bool(left and right)
    words = ((tool.description, known[tool.name].description) for tool in left)
    has_other_words = any(one != other for one, other in words if one and other)
    return has_other_words or any(is_another_definition(known[tool.name], tool) for tool in left)


def is_another_definition(offered: ToolDefinition, said: ToolDefinition) -> bool:
    """Whether a tool's own span tells otherwise what a request offered. Frameworks leave out words and add titles."""
    words = _are_other_words(offered.description or "", said.description or "")
    return words or _is_another_schema(offered.parameters, said.parameters)


def _are_other_words(one: str, other: str) -> bool:
    """Behind what a function does its docstring may tell of its arguments, in paragraphs that a request leaves out."""
    shorter, longer = sorted((one.strip(), other.strip()), key=len)
    return bool(shorter) and not f"{longer}\n\n".startswith(f"{shorter}\n\n")


def _is_another_schema(offered: JsonValue, said: JsonValue) -> bool:
    if not (isinstance(offered, dict) and isinstance(said, dict)):
        return not same_json(offered, said) and None not in (offered, said)
    one, other = (value.get("properties") for value in (offered, said))
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() != other.keys():
        return True
    both = (offered.keys() & said.keys()) - ({"title", "description"} if isinstance(one, dict) else set())
    return any(_is_another_schema(offered[name], said[name]) for name in both)


def is_value_told_otherwise(left: JsonValue, right: JsonValue) -> bool:
    """Of a tool: whether both tell an object or a list, or both a text, and not the same. Conventions also wrap."""
    one, other = parsed(left), parsed(right)
    if isinstance(one, dict | list) and isinstance(other, type(one)):
        return canonical_json(one) != canonical_json(other)
    if isinstance(one, str) != isinstance(other, str):
        return _is_damaged_json(left, other) or _is_damaged_json(right, one)
    return isinstance(one, str) and isinstance(other, str) and one.strip() != other.strip()


def _is_damaged_json(text: JsonValue, value: JsonValue) -> bool:
    """Whether it begins as the JSON of an object or a list and is none, other than by being cut."""
    if not isinstance(text, str) or not isinstance(value, dict | list) or not isinstance(parsed(text), str):
        return False
    spelled, whole = "".join(text.split()), "".join(json.dumps(value, ensure_ascii=False).split())
    return spelled[:1] == whole[:1] and not whole.startswith(spelled.rstrip(".…"))


def spoken_in(messages: Messages) -> list[tuple[str, bytes]]:
    """Likewise, each with who says it."""
    return [(speaker_of(message), said) for message in messages or () for said in said_in((message,))]


def said_in(messages: Messages) -> list[bytes]:
    """What the messages say, without the words of the system, which some keep apart."""
    parts = [part for message in messages or () if message.role != "system" for part in message.parts]
    return [canonical_json(said) for part in parts if (said := _part(part)) is not None]


def _part(part: Part) -> JsonValue:
    match part:
        case TextPart():
            return part.text.strip() or None
        case CallPart():
            return [part.tool_name, arguments_in(part.arguments) or {}]
        case ResultPart():
            return [parsed(part.content)]
    return None
