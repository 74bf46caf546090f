"""The inputs of forms that give orders: names, and one input read as a text, a number or JSON.

Whatever cannot be used is refused at the input that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sessions_app.core.errors import RecordError
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.json_text import load_strict
from sessions_app.core.payload import JsonValue
from sessions_app.services.typed_json import holds_nul

Typed = Mapping[str, str]
"""What stands in the inputs, by their names; a tick that is not set is missing."""
TOP = "top"
"""Stands for no input: an error of the whole."""


class Refused(Exception):
    """What stands in an input cannot be used, and why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name
        self.message = message


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """A part of the order, and which input each of its members came from."""

    value: JsonValue
    inputs: Mapping[str, str]
    """Input by the path inside the part; `""` for the part itself."""

    def input_of(self, path: str) -> str:
        """Of the innermost member that the path leads through."""
        found = max((known for known in self.inputs if path.startswith(known)), key=len, default=None)
        return TOP if found is None else self.inputs[found]


def text_of(typed: Typed, name: str) -> str:
    """Browsers send every line end as CRLF."""
    return typed.get(name, "").replace("\r\n", "\n")


def json_of(typed: Typed, name: str) -> JsonValue:
    text = text_of(typed, name)
    if not text.strip():
        raise Refused(name, "Write JSON here.")
    try:
        value = load_strict(text.encode())
    except RecordError as error:
        raise Refused(name, error.message.replace("The document", "This", 1)) from None
    if holds_nul(value):
        raise Refused(name, "This holds a NUL character.")
    return value


def number_of(text: str) -> int | float | str:
    """What is no number stays a text, for the reader of orders to refuse."""
    if re.fullmatch(r"[+-]?[0-9]{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?[0-9]{1,15}\.[0-9]{1,9}", text) else text


def words_of(error: ForkError) -> str:
    """Without the path to the input, which says nothing to those who see it."""
    return _PATH.sub(lambda path: path["inside"] or "This", error.message)


_PATH = re.compile(
    r"^(?:(?:changes|breakpoints)\[\d+\](?:\.value|\.when|\.patch)?\.?|expect[\w.]*|samples)(?P<inside>\S*)"
)
