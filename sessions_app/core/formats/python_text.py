"""What Python prints for a value: `{'a': 1}`, `Point(x=1, y=[2])`, and Pydantic's `x=1 y=[2]`.

Records that were saved with `str(value)` or with `print` hold such texts. They are read as data: nothing is evaluated.
An object with named fields becomes the JSON object of these fields; the name of its class is left out.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable
from typing import TypeVar

from sessions_app.core.payload import JsonObject, JsonValue, compact_json

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>[bB]?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    |(?P<number>-?(?:\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\d+)(?![\w.]))
    |(?P<enum><[\w.]+:\s*(?:'(?:[^'\\\n]|\\.)*'|-?\d+)>)
    |(?P<name>[^\W\d][\w.]*)
    |(?P<mark>[\[\](){},:=])
    )""",
    re.VERBOSE,
)
_CONSTANTS: dict[str, JsonValue] = {"None": None, "True": True, "False": False}
_MAX_DEPTH = 100
_MAX_DIGITS = 400
_END = ("end", "")
_Item = TypeVar("_Item")


class _NotRead(Exception):
    """The text is something else."""


def read_python_text(text: str) -> JsonValue:
    """The value as JSON; None where the text is no printed value that can be read whole, and for `None` itself."""
    try:
        reader = _Reader(text)
        value = reader.fields_alone() if reader.begins_with_field() else reader.value(0)
        reader.expect("end")
        compact_json(value).decode()
    except (_NotRead, ValueError, SyntaxError):
        return None
    return value


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def begins_with_field(self) -> bool:
        """Whether the fields stand alone, without the name of their class."""
        return self._tokens[0][0] == "name" and self._tokens[1] == ("mark", "=")

    def fields_alone(self) -> JsonObject:
        found: JsonObject = {}
        while self._tokens[self._at] != _END:
            name, value = self._field(0)
            found[name] = value
        return found

    def value(self, depth: int) -> JsonValue:
        if depth > _MAX_DEPTH:
            raise _NotRead
        kind, text = self._next()
        match kind, text:
            case "text", _:
                said = ast.literal_eval(text)
                if not isinstance(said, str):
                    raise _NotRead
                return said
            case "number", _:
                return _number(text)
            case "enum", _:
                return ast.literal_eval(text[text.index(":") + 1 : -1].strip())
            case "name", _ if text in _CONSTANTS:
                return _CONSTANTS[text]
            case "name", _:
                self.expect("mark", "(")
                return dict(self._until(")", lambda: self._field(depth)))
            case "mark", "[":
                return self._until("]", lambda: self.value(depth + 1))
            case "mark", "(":
                return self._until(")", lambda: self.value(depth + 1))
            case "mark", "{":
                return dict(self._until("}", lambda: self._member(depth)))
        raise _NotRead

    def expect(self, kind: str, text: str = "") -> None:
        if self._next() != (kind, text):
            raise _NotRead

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at += token != _END
        return token

    def _until(self, end: str, item: Callable[[], _Item]) -> list[_Item]:
        """Items with commas between them; a comma may stand behind the last one, as in `(1,)`."""
        items: list[_Item] = []
        while self._tokens[self._at] != ("mark", end):
            items.append(item())
            if self._tokens[self._at] != ("mark", end):
                self.expect("mark", ",")
        self._at += 1
        return items

    def _field(self, depth: int) -> tuple[str, JsonValue]:
        kind, name = self._next()
        if kind != "name":
            raise _NotRead
        self.expect("mark", "=")
        return name, self.value(depth + 1)

    def _member(self, depth: int) -> tuple[str, JsonValue]:
        key = self.value(depth + 1)
        if not isinstance(key, str):
            raise _NotRead
        self.expect("mark", ":")
        return key, self.value(depth + 1)


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens, at, text = [], 0, text.rstrip()
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise _NotRead
        tokens.append((found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return [*tokens, _END, _END]


def _number(text: str) -> float | int:
    if len(text) > _MAX_DIGITS:
        raise _NotRead
    number = float(text) if re.search("[.eE]", text) else int(text)
    if isinstance(number, float) and not math.isfinite(number):
        raise _NotRead
    return number
