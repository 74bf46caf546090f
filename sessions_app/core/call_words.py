"""The arguments or the answer of a call in one line, without the frame of their JSON."""

from __future__ import annotations

import json
import re

_KEY = re.compile(r'\s*,?\s*"((?:[^"\\]|\\.)*)"\s*:\s*')
_DECODER = json.JSONDecoder()


def unframed(text: str) -> list[tuple[str, str]]:
    """The keys and values of an object, whose JSON may be cut at its end; values that are texts without their quotes.

    Empty for anything else: a list, a text, an empty object.
    """
    if not text.startswith("{"):
        return []
    found, at = [], 1
    while key := _KEY.match(text, at):
        value, at = _value(text, key.end())
        found.append((key[1], value))
    return found


def _value(text: str, start: int) -> tuple[str, int]:
    """As it is spelled, and where it ends: at the end of the text where that was cut."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except ValueError:
        return text[start:].removeprefix('"'), len(text)
    is_text = isinstance(value, str) and value != ""
    return (text[start + 1 : end - 1] if is_text else text[start:end]), end


def call_words(text: str) -> str:
    """`ORD-5512` of a call with one argument, `order_id ORD-5512, reason mistake` of one with several."""
    found = unframed(text)
    if len(found) == 1:
        return found[0][1]
    return ", ".join(f"{key} {value}" for key, value in found) if found else text
