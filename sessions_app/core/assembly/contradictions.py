"""Whether two spans tell the same of one thing, be it in words of their own.

Frameworks cut values, add arguments of their own and print objects; none of that is another value. What contradicts is
kept as the nearer span tells it, so that the judge finds it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from sessions_app.core.assembly.requests import same_value
from sessions_app.core.compare.strict import is_number, read_json, same_json
from sessions_app.core.embedded_json import arguments_in, parsed
from sessions_app.core.payload import JsonValue

_MARK = re.compile("[\"'=>]")
"""What stands in front of a text that was printed."""
_PRINTED_END = re.compile(r"\s*(?:[\"')\]}<,\\]|\Z)")
"""What may follow on one that was printed whole."""
_SHORTEST_LIMIT = 64
_LIMIT_UNITS = (50, 64)


def is_another_name(asked: str, said: str) -> bool:
    """A server's tool may be named without, or with, what stands before its name and a sign between the two."""
    shorter, longer = sorted((asked, said), key=len)
    return shorter != longer and re.search(rf"[\W_]{re.escape(shorter)}$", longer) is None


def are_other_arguments(asked: JsonValue, said: JsonValue) -> bool:
    """Whether a tool ran with another value of something that the model gave."""
    asked, said = arguments_in(asked), arguments_in(said)
    if isinstance(asked, dict) and (isinstance(said, list) or _goes_on_behind_json(said)):
        return True
    if isinstance(asked, dict) and isinstance(said, str) and said.strip():
        return bool(texts := list(leaves(asked))) and not any(_is_told_in(text, said) for text in texts)
    if isinstance(asked, dict) and isinstance(said, dict):
        return any(_is_other(asked[name], said[name]) for name in asked.keys() & said.keys())
    return False


def _goes_on_behind_json(said: JsonValue) -> bool:
    """Whether a text has more than the JSON object with which it begins."""
    if not isinstance(said, str) or not said.startswith("{"):
        return False
    try:
        _, end = json.JSONDecoder().raw_decode(said)
    except (ValueError, RecursionError):
        return False
    return bool(said[end:].strip())


def _is_other(asked: JsonValue, said: JsonValue) -> bool:
    """A tool's types may have filled what is nested, and read a text as a number; that another text is the same nobody
    knows."""
    if isinstance(asked, dict) and isinstance(said, dict):
        return are_other_arguments(asked, said)
    if isinstance(asked, str) and isinstance(said, str):
        return asked != said
    return not (same_value(asked, said) or _printed(asked) == _printed(said) or asked == said)


def told_otherwise(given: JsonValue, said: JsonValue) -> str | None:
    """How a tool's span tells the answer that a model was given, where both are one value: a model reads other keys
    first, or other digits, as another text."""
    one, other = parsed(given), parsed(said)
    if not (is_number(one) and is_number(other)) and not (
        isinstance(one, dict | list) and isinstance(other, type(one))
    ):
        return None
    if same_json(one, other):
        return "with other digits" if _is_respelled(given, said) else None
    return "with its keys in another order" if same_value(one, other) else None


def _is_respelled(given: JsonValue, said: JsonValue) -> bool:
    """Only a text keeps the digits that were written."""
    return isinstance(said, str) and not same_json(_spelled(given), _spelled(said))


def _spelled(value: JsonValue) -> JsonValue:
    try:
        return read_json(value) if isinstance(value, str) else value
    except ValueError:
        return parsed(value)


def _printed(value: JsonValue) -> str:
    return str(value).strip().casefold()


def is_another_text(text: str, said: JsonValue) -> bool:
    """Whether a text stands nowhere in what another span says that it was. White space and quotes belong to a text."""
    is_value = not isinstance(parsed(said), str) and same_value(text, said)
    return not (is_value or any(_is_told_in(text, leaf) for leaf in leaves(parsed(said))))


def is_reworded(error: str, said: JsonValue, *, is_last: bool) -> bool:
    """Whether a text has most words of an error and is not what somebody made of it, who puts words around it (in front
    of it where it `is_last`) or takes other ones."""
    if not isinstance(said, str) or not error.strip() or "\n" in error.strip():
        return False
    words, known = (set(re.findall(r"\w+", text.casefold())) for text in (error, said))
    spelled = _spellings(_before_cut(error) or error.strip())
    is_made_of = any(said.strip().endswith(each) if is_last else each in said for each in spelled)
    return not (is_made_of or said.strip() in error) and 2 * len(words & known) >= len(words | known)


def _is_told_in(text: str, said: str) -> bool:
    """As it is, cut, or inside of something that was printed."""
    return text == said or _is_cut_of(said, text) or _is_printed_in(text, said)


def _is_printed_in(text: str, said: str) -> bool:
    """Behind a quote or an equals sign, as in `Answer(text='…')`: words around it make it another text."""
    spelled = _spellings(text)
    cut = _before_cut(said.rstrip("\"')]}> \n")) or ""
    places = [mark.end() for mark in _MARK.finditer(said)]
    return any(_is_whole_at(at, each, said) or _is_cut_at(at, each, cut) for at in places for each in spelled)


def _spellings(text: str) -> set[str]:
    """As it is, and inside of quotes."""
    return {text, repr(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}


def _is_whole_at(place: int, text: str, said: str) -> bool:
    """Behind a text that begins with its quote nothing comes any more."""
    end = _PRINTED_END.match(said, place + len(text)) if said.startswith(text, place) else None
    return end is not None and (place > 1 or said[0] not in "\"'" or not said[end.end() :].strip())


def _is_cut_at(place: int, text: str, cut: str) -> bool:
    """With what was left of the text where the print was cut."""
    left = len(cut) - place
    return 0 < left <= len(text) and cut[place] == text[0] and text.startswith(cut[place:])


def _is_cut_of(said: str, text: str) -> bool:
    """Whether it is the beginning of the text. One full stop marks no cut; who cuts without a mark cuts at a limit."""
    begun = _before_cut(said.strip())
    if begun is not None:
        return bool(begun) and text.startswith(begun)
    return _is_limit(len(said)) and text.startswith(said)


def _before_cut(said: str) -> str | None:
    """What stands before the mark of a cut at the end; None where there is no mark."""
    if said.endswith("…"):
        return said[:-1].rstrip()
    begun = said.rstrip(".")
    return begun.rstrip() if len(said) - len(begun) > 1 else None


def _is_limit(length: int) -> bool:
    """Whether somebody may have set it: attributes are cut at lengths such as 128, 250 or 4096."""
    return length >= _SHORTEST_LIMIT and any(length % unit == 0 for unit in _LIMIT_UNITS)


def leaves(value: JsonValue) -> Iterator[str]:
    """All texts in a value."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict | list):
            stack += item.values() if isinstance(item, dict) else item
