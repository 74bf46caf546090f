"""Cassettes in YAML, as vcrpy writes them, as JSON.

Only plain values are made: texts, numbers, truth values, null, lists, objects, and bytes (`!!binary`) as
`{"base64_string": …}`, which is how cassettes in JSON have them. Times stay the texts that they are.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import yaml

from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.json_text import Limits
from sessions_app.core.payload import JsonValue, compact_json

_BEGINS = re.compile(
    rb"\A(?:\s*(?:#[^\n]*\n|---[^\n]*\n))*\s*(?:interactions|http_interactions|version|recorded_with):"
)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAGS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:python/unicode")
_SIMPLE_TAGS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:null")
_BYTES = "tag:yaml.org,2002:binary"
_LIST, _OBJECT = "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"


def is_yaml_cassette(content: bytes) -> bool:
    return _BEGINS.match(content) is not None


def yaml_as_json(content: bytes, limits: Limits = Limits()) -> bytes:
    """Raises `RecordError` with the place in words."""
    if len(content) > limits.max_bytes:
        raise RecordTooLarge(f"The document has {len(content)} bytes; the limit is {limits.max_bytes}.")
    loader = _LOADER(content)
    try:
        root = loader.get_single_node()
        if root is None:
            raise RecordError("The document is empty.")
        return compact_json(_Reader(loader, limits).value(root, 0))
    except (yaml.YAMLError, RecursionError, UnicodeError) as error:
        raise RecordError(f"The document is not YAML that can be read{_place(error)}.") from None
    finally:
        loader.dispose()


def _place(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    return "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"


class _Reader:
    """Counts what it makes: an alias can name a list of aliases, so that a short text would become a long one."""

    def __init__(self, loader: Any, limits: Limits) -> None:
        self._loader = loader
        self._limits = limits
        self._values = self._characters = 0

    def value(self, node: Any, depth: int) -> JsonValue:
        self._count(node, depth)
        if node.tag == _LIST and isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        if node.tag == _OBJECT and isinstance(node, yaml.MappingNode):
            return self._object(node, depth)
        return self._scalar(node)

    def _count(self, node: Any, depth: int) -> None:
        self._values += 1
        self._characters += len(node.value)
        if depth > self._limits.max_depth:
            raise RecordTooLarge(f"The document is nested deeper than {self._limits.max_depth} levels.")
        if self._values > self._limits.max_values or self._characters > self._limits.max_bytes:
            raise RecordTooLarge("The document holds too much when its aliases are written out.")

    def _object(self, node: Any, depth: int) -> JsonValue:
        found: dict[str, JsonValue] = {}
        for key_node, item in node.value:
            key = self.value(key_node, depth + 1)
            if not isinstance(key, str) or key in found:
                raise RecordError(f"A name in line {key_node.start_mark.line + 1} stands twice, or is no text.")
            found[key] = self.value(item, depth + 1)
        return found

    def _scalar(self, node: Any) -> JsonValue:
        if node.tag in _TEXT_TAGS:
            return node.value
        if node.tag == _BYTES:
            return {"base64_string": _base64(node)}
        if node.tag in _SIMPLE_TAGS:
            return self._loader.construct_object(node)
        raise RecordError(f"{node.tag} in line {node.start_mark.line + 1} is no kind of value that is read.")


def _base64(node: Any) -> str:
    """Without the line breaks that YAML has in it."""
    text = "".join(node.value.split())
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise RecordError(f"The bytes in line {node.start_mark.line + 1} are not base64.") from None
    return text
