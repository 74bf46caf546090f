"""Comparing what was recorded with what the loop built, field by field.

Objects that a tool, a model or a person wrote have to agree in the order of their keys as well; the library's own
fields stand in the order of its version.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.compare.strict import same_json
from sessions_app.core.payload import JsonValue

VOLATILE_KEYS = frozenset({"timestamp", "run_id", "conversation_id"})
"""Made anew by every run, where they belong to a message or a part. Nothing else may differ."""
FILLED_BY_LIBRARY = frozenset({"state", "outcome", "usage", "timestamp", "tool_call_id", "scope", "model_id"})
"""Fields of messages and parts that are never null there: null says that they were not captured."""
_MESSAGE = re.compile(r"messages\[\d+\](\.parts\[\d+\])?")
_LIBRARY = re.compile(
    r"messages\[\d+\](\.usage(\.details)?|\.provider_details|\.parts\[\d+\](\.retry)?)?"
    r"|parameters(\.(function_tools|native_tools|output_tools|instruction_parts)\[\d+\]|\.output_object)?"
)
"""Objects whose fields the library defines, so that an older or shorter recording may lack some."""
_FILE = re.compile(r"messages\[\d+\]\.parts\[\d+\]\.content(\[\d+\])?")
_FILE_KINDS = frozenset(
    {"image-url", "audio-url", "video-url", "document-url", "binary", "uploaded-file", "cache-point", "text-content"}
)
_COUNTS = frozenset({"attempt", "max_retries"})
_RANDOM_TOOLSET = re.compile(r"<toolset:[0-9a-f]+>")
_ABSENT = object()
_FILES = "content_file_digests"
_NO_FILES: tuple[object, ...] = (_ABSENT, None, [])


@dataclass(frozen=True, kw_only=True, slots=True)
class Mismatch:
    """The first field that differs; `None` stands for a field that is not there."""

    path: str
    recorded: JsonValue
    rebuilt: JsonValue


@dataclass
class Tally:
    """How much was compared, and what could not be because the recording does not hold it."""

    compared: int = 0
    volatile: int = 0
    not_captured: set[str] | None = None
    counts_anew: bool = False
    """Whether the loop began in the middle, where it counts retries from one again."""

    def add(self, other: Tally) -> None:
        self.compared += other.compared
        self.volatile += other.volatile
        for path in other.not_captured or ():
            self.note_missing(path)

    def note_missing(self, path: str) -> None:
        if self.not_captured is None:
            self.not_captured = set()
        self.not_captured.add(re.sub(r"\[\d+\]", "[]", path))


_OF_OUTPUT = ("function_tools", "output_tools", "output_mode", "allow_text_output")
"""Of the parameters of a request: how the model was asked for its answer. All producers tell it, if anything."""


ONLY_SENT = ("hosted_tools", "prompt")
"""Parameters of a request of the OpenAI Agents SDK that its loop only hands on to the provider."""


def note_untold_parameters(recorded: JsonValue, now: JsonValue, tally: Tally) -> None:
    """All other fields may be newer than the recording."""
    sent = [name for name in ONLY_SENT if isinstance(now, dict) and name in now]
    for name in (*_OF_OUTPUT, *sent):
        if isinstance(recorded, dict) and name not in recorded:
            tally.note_missing(f"parameters.{name}")


def first_mismatch(
    recorded: JsonValue, rebuilt: JsonValue, *, raw: JsonValue, path: str, tally: Tally
) -> Mismatch | None:
    """The first difference, or None.

    `recorded` is the recording in today's shape and `raw` as it was written: a field that `raw`
    does not have was not captured, so nothing can be said of it, and it is tallied as such.
    """
    return next(_mismatches(recorded, rebuilt, raw, path, tally), None)


def _mismatches(recorded: JsonValue, rebuilt: JsonValue, raw: JsonValue, path: str, tally: Tally) -> Iterator[Mismatch]:
    if isinstance(recorded, dict) and isinstance(rebuilt, dict):
        yield from _in_objects(recorded, rebuilt, raw, path, tally)
        if list(recorded) != list(rebuilt) and not may_lack_fields(path, raw):
            yield Mismatch(path=path, recorded=list(recorded), rebuilt=list(rebuilt))
    elif isinstance(recorded, list) and isinstance(rebuilt, list):
        yield from _in_lists(recorded, rebuilt, raw, path, tally)
    else:
        tally.compared += 1
        if not same_json(recorded, rebuilt) and not _are_random_toolsets(path, recorded, rebuilt):
            yield Mismatch(path=path, recorded=recorded, rebuilt=rebuilt)


def _in_objects(
    recorded: dict[str, JsonValue],
    rebuilt: dict[str, JsonValue],
    raw: JsonValue,
    path: str,
    tally: Tally,
) -> Iterator[Mismatch]:
    for key in [*recorded, *(key for key in rebuilt if key not in recorded)]:
        here = f"{path}.{key}" if path else key
        left, right = recorded.get(key, _ABSENT), rebuilt.get(key, _ABSENT)
        if _is_volatile(key, path, tally):
            tally.volatile += 1
        elif isinstance(raw, dict) and _is_untold(key, raw) and may_lack_fields(path, raw):
            if left is _ABSENT or not same_json(left, right):
                tally.note_missing(here)
        elif key == _FILES and ((left in _NO_FILES and right in _NO_FILES) or _is_of_addresses(recorded)):
            continue  # the library spells none at all in several ways
        elif left is not right and all(value in (_ABSENT, None) for value in (left, right)):
            yield Mismatch(path=path, recorded=recorded, rebuilt=rebuilt)  # null and nothing look the same
        elif _ABSENT in (left, right):
            yield Mismatch(path=here, recorded=_or_none(left), rebuilt=_or_none(right))
        else:
            inner = raw.get(key) if isinstance(raw, dict) else left
            yield from _mismatches(left, right, inner, here, tally)


def _is_untold(key: str, raw: dict[str, JsonValue]) -> bool:
    return key not in raw or (raw[key] is None and key in FILLED_BY_LIBRARY)


def _is_of_addresses(part: JsonValue) -> bool:
    """The library makes them of the object that a tool gave, of which an address alone is in the content."""
    content = part.get("content") if isinstance(part, dict) else None
    items = content if isinstance(content, list) else [content]
    return any(isinstance(item, dict) and str(item.get("kind")).endswith("-url") for item in items)


def _is_volatile(key: str, path: str, tally: Tally) -> bool:
    if tally.counts_anew and key in _COUNTS:
        return path.endswith(".retry")
    return key in VOLATILE_KEYS and bool(_MESSAGE.fullmatch(path))


def _in_lists(
    recorded: list[JsonValue], rebuilt: list[JsonValue], raw: JsonValue, path: str, tally: Tally
) -> Iterator[Mismatch]:
    raw_items = raw if isinstance(raw, list) and len(raw) == len(recorded) else recorded
    for index in range(max(len(recorded), len(rebuilt))):
        here = f"{path}[{index}]"
        if index >= len(recorded) or index >= len(rebuilt):
            left = recorded[index] if index < len(recorded) else None
            right = rebuilt[index] if index < len(rebuilt) else None
            is_null = left is None and right is None
            whole = Mismatch(path=path, recorded=recorded, rebuilt=rebuilt)
            yield whole if is_null else Mismatch(path=here, recorded=left, rebuilt=right)
        else:
            yield from _mismatches(recorded[index], rebuilt[index], raw_items[index], here, tally)


def may_lack_fields(path: str, raw: JsonValue) -> bool:
    """Whether the object at this path is the library's. What a tool or a person wrote is compared whole."""
    if _FILE.fullmatch(path):
        return isinstance(raw, dict) and raw.get("kind") in _FILE_KINDS
    return bool(_LIBRARY.fullmatch(path))


def _are_random_toolsets(path: str, left: JsonValue, right: JsonValue) -> bool:
    """Toolsets without an id get a random one for each object."""
    if not path.endswith(".capability_id") or not isinstance(left, str) or not isinstance(right, str):
        return False
    return bool(_RANDOM_TOOLSET.fullmatch(left) and _RANDOM_TOOLSET.fullmatch(right))


def _or_none(value: JsonValue) -> JsonValue:
    return None if value is _ABSENT else value
