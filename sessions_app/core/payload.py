"""Exact bytes and their name: the SHA-256 of those bytes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from json.encoder import encode_basestring
from typing import Any, Generic, NoReturn, TypeVar

TEXT = "text/plain; charset=utf-8"
LONG = 4_000
"""Bytes from which a payload is stored apart, once for all runs and traces that have it."""
JSON = "application/json"
BINARY = "application/octet-stream"

JsonValue = Any
"""Anything that JSON can say; typed loosely on purpose, recorded data has no schema of ours."""
JsonObject = dict[str, Any]
_Made = TypeVar("_Made")


class SpelledFloat(float):
    """A float that remembers how the document spelled it: `1e2`, `100.0`."""

    text: str

    def __new__(cls, text: str) -> SpelledFloat:
        number = super().__new__(cls, text)
        if math.isinf(number):
            raise ValueError(f"{text[:40]} is out of range")
        number.text = text
        return number

    def __repr__(self) -> str:
        return self.text


def spelled_int(text: str) -> int | SpelledFloat:
    """Of whole numbers only `-0` has another value than its digits say; Python has it as a float alone."""
    return SpelledFloat(text) if text == "-0" else int(text)


def sha256_hex(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class _once(Generic[_Made]):
    """`functools.cached_property` without the lock of Python 3.11: a run may hold tens of thousands of payloads. Two
    threads make the same value."""

    def __init__(self, make: Callable[[Any], _Made]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, owner: Any, kind: type | None = None) -> _Made:
        made = owner.__dict__[self._name] = self._make(owner)
        return made


@dataclass(frozen=True, kw_only=True)
class Payload:
    """Bytes kept as they were recorded.

    `TEXT` payloads hold the text itself in UTF-8, `JSON` payloads the slice of the document as the
    producer spelled it, anything else is opaque bytes.
    """

    content: bytes
    media_type: str = JSON

    @classmethod
    def of_text(cls, text: str) -> Payload:
        return cls(content=text.encode(), media_type=TEXT)

    @classmethod
    def of_json(cls, value: JsonValue) -> Payload:
        return cls(content=compact_json(value))

    @classmethod
    def of(cls, value: JsonValue) -> Payload:
        """A string as text, any other value as JSON."""
        return cls.of_text(value) if isinstance(value, str) else cls.of_json(value)

    @_once
    def digest(self) -> str:
        """SHA-256 of the bytes, 64 hex digits."""
        return sha256_hex(self.content)

    @property
    def size(self) -> int:
        return len(self.content)

    @property
    def is_text(self) -> bool:
        return self.media_type == TEXT

    @property
    def is_json(self) -> bool:
        return self.media_type == JSON

    @_once
    def value(self) -> JsonValue:
        """The JSON value, or the text; None for opaque bytes."""
        if self.is_json:
            return json_value(self.content)
        return self.content.decode() if self.is_text else None

    @_once
    def parsed(self) -> JsonValue:
        """Like `value`, but a text that is itself a JSON object or list is read as one.

        Providers send tool arguments as a JSON string; pages and comparisons want the fields.
        """
        value = self.value
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
            return value
        try:
            return _load_exactly(value)
        except (ValueError, RecursionError):
            return value

    @_once
    def canonical(self) -> bytes:
        """One spelling for equal values, or the bytes themselves when they are no value, or one that has no UTF-8, as
        half a surrogate pair."""
        if not (self.is_json or self.is_text):
            return self.content
        try:
            made = canonical_json(self.parsed)
        except (ValueError, RecursionError):
            return self.content
        return self.content if made == self.content else made

    @_once
    def spelled(self) -> JsonValue:
        """Like `parsed`, with numbers that remember their spelling: for comparing two documents. A loop that read a
        number remembers none, so what it is held against is `parsed`."""
        if self.parsed is None or isinstance(self.parsed, str | bool):
            return self.parsed
        try:
            return _spelling_decoder.decode(self.content.decode())
        except (ValueError, RecursionError):
            return self.parsed

    def as_text(self) -> str:
        """The bytes as text for display; what is not UTF-8 becomes U+FFFD."""
        return self.content.decode("utf-8", errors="replace")


def json_value(text: bytes) -> JsonValue:
    """As `json.loads`, which would guess at the encoding of each of very many short texts, and look for white space
    around it."""
    letters = text.decode()
    if letters[:1].isspace():
        return _decoder.decode(letters)
    value, end = _decoder.raw_decode(letters)
    return value if end == len(letters) else _decoder.decode(letters)


def _load_exactly(text: str) -> JsonValue:
    """The value, if JSON can say it again. Python would also read NaN, 1e999 and half a surrogate pair."""
    value = load_finite(text)
    compact_json(value)
    return value


def load_finite(text: str) -> JsonValue:
    """The value; raises `ValueError` for NaN and for numbers that are out of range."""
    return _finite_decoder.decode(text)


class KeyTwice(ValueError):
    """An object gives a key, which is its only argument, two values."""


def load_clear(text: str) -> JsonValue:
    """Likewise; raises `KeyTwice` where an object gives a key two values, of which Python would keep the last."""
    return _clear_decoder.decode(text)


def _clear(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    value = dict(pairs)
    if len(value) < len(pairs):
        for key, said in pairs:
            if canonical_json(value[key]) != canonical_json(said):
                raise KeyTwice(key)
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


_decoder = json.JSONDecoder()
_finite_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)
_clear_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_clear)
_spelling_decoder = json.JSONDecoder(parse_float=SpelledFloat, parse_int=spelled_int)


_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_canonical = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode


def compact_json(value: JsonValue) -> bytes:
    # Most values are texts and numbers, for which the encoder takes several times as long to find out that they are;
    # nothing is written shorter than null, of which a list may hold very many.
    if type(value) is str:
        return encode_basestring(value).encode()
    if value is None:
        return b"null"
    is_plain = type(value) is int or (type(value) is float and math.isfinite(value))
    return (repr(value) if is_plain else _compact(value)).encode()


def canonical_json(value: JsonValue) -> bytes:
    """One spelling for equal values: sorted keys, no spaces. For digests and matching only."""
    return _canonical(value).encode() if isinstance(value, dict | list) else compact_json(value)
