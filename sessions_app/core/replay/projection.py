"""Rebuilt messages with the fields that the recording has.

Older libraries and shorter formats write less of a message than the loop builds. What was not
captured cannot be compared, so it is left out of the produced run too; what is left are the values
that the loop built, never the recorded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, extend
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.matching import FILLED_BY_LIBRARY, VOLATILE_KEYS, may_lack_fields


class Projection:
    """Maps rebuilt histories to their shape in the recording, sharing chains as they were shared."""

    def __init__(self, shape: Callable[[Payload, Payload], Payload] | None = None) -> None:
        """`shape` makes of a recorded and a rebuilt message the latter in its shape; else `in_shape_of` does."""
        self._shape = shape or in_shape_of
        self._done: dict[str, History] = {}

    def pair(self, recorded: History | None, rebuilt: History | None) -> History | None:
        """The rebuilt history in the recorded shape, as far as the recorded one reaches."""
        if recorded is None or rebuilt is None:
            return rebuilt
        added: list[History] = []
        while rebuilt is not None and rebuilt.length > recorded.length:
            added.append(rebuilt)
            rebuilt = rebuilt.parent
        while recorded is not None and rebuilt is not None and recorded.length > rebuilt.length:
            recorded = recorded.parent
        return extend(self._equally_long(recorded, rebuilt), (node.message for node in reversed(added)))

    def _equally_long(self, recorded: History | None, rebuilt: History | None) -> History | None:
        pending: list[tuple[History, History]] = []
        while recorded is not None and rebuilt is not None and rebuilt.digest not in self._done:
            pending.append((recorded, rebuilt))
            recorded, rebuilt = recorded.parent, rebuilt.parent
        shaped = self._done[rebuilt.digest] if rebuilt else None
        for left, right in reversed(pending):
            shaped = History(shaped, self._shape(left.message, right.message))
            self._done[right.digest] = shaped
        return shaped


def in_shape_of(recorded: Payload, rebuilt: Payload, *, path: str = "messages[0]") -> Payload:
    """`path` says what it is: a message, or `parameters` of a request."""
    shaped = _shape(recorded.value, rebuilt.value, path)
    return recorded if shaped == recorded.value and _spelled_alike(recorded, shaped) else Payload.of_json(shaped)


def _spelled_alike(recorded: Payload, shaped: JsonValue) -> bool:
    """Python takes 1, 1.0 and true for equal; only equal text is the same message."""
    return Payload.of_json(recorded.value).content == Payload.of_json(shaped).content


def _shape(recorded: JsonValue, rebuilt: JsonValue, path: str) -> JsonValue:
    if isinstance(recorded, dict) and isinstance(rebuilt, dict):
        rebuilt = _legacy_retry(recorded, rebuilt)
        if any(name in recorded and recorded[name] != rebuilt.get(name) for name in ("kind", "part_kind")):
            return rebuilt  # a message or a part of another kind has other fields
        shaped = {
            key: _shape(recorded[key], rebuilt[key], f"{path}.{key}") if key in recorded else rebuilt[key]
            for key in _kept(recorded, rebuilt, path)
        }
        shaped |= dict.fromkeys(_uncaptured(recorded, shaped, path)) | _same_time(recorded, shaped, path)
        return _with_data(recorded, _with_digests(recorded, shaped))
    if isinstance(recorded, list) and isinstance(rebuilt, list) and len(recorded) == len(rebuilt):
        pairs = enumerate(zip(recorded, rebuilt, strict=True))
        return [_shape(left, right, f"{path}[{index}]") for index, (left, right) in pairs]
    return rebuilt


def _with_data(recorded: JsonObject, shaped: JsonObject) -> JsonObject:
    """Bytes in base64, of which there are two alphabets: the same bytes keep their spelling."""
    one, other = recorded.get("data"), shaped.get("data")
    if recorded.get("kind") != "binary" or not isinstance(one, str) or not isinstance(other, str):
        return shaped
    is_same = one.translate(_URL_SAFE).rstrip("=") == other.translate(_URL_SAFE).rstrip("=")
    return {**shaped, "data": one} if is_same else shaped


_URL_SAFE = str.maketrans("+/", "-_")


def _same_time(recorded: JsonObject, shaped: JsonObject, path: str) -> JsonObject:
    """The time of a message as it was recorded, where it is the same: `Z` and `+00:00` are one offset."""
    one, other = recorded.get("timestamp"), shaped.get("timestamp")
    is_same = may_lack_fields(path, recorded) and _instant(one) == _instant(other) is not None
    return {"timestamp": one} if is_same else {}


def _instant(text: JsonValue) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None


def _with_digests(recorded: JsonObject, shaped: JsonObject) -> JsonObject:
    """The library works these out of the content, and spells none at all in several ways."""
    if _DIGESTS not in recorded or not same_json(recorded.get("content"), shaped.get("content")):
        return shaped
    return {key: recorded[key] if key == _DIGESTS else shaped[key] for key in recorded if key in {*shaped, _DIGESTS}}


_DIGESTS = "content_file_digests"


def _kept(recorded: JsonObject, rebuilt: JsonObject, path: str) -> list[str]:
    """Of the library's own objects the fields that were recorded, in their order; of any other all that was built."""
    return [key for key in recorded if key in rebuilt] if may_lack_fields(path, recorded) else list(rebuilt)


def _uncaptured(recorded: JsonObject, shaped: JsonObject, path: str) -> list[str]:
    """What the recording says was not captured, where null is no value that it could have had in this place."""
    if not may_lack_fields(path, recorded):
        return []
    is_usage = path.endswith(".usage")
    names = (key for key in shaped if is_usage or key in VOLATILE_KEYS or key in FILLED_BY_LIBRARY)
    return [key for key in names if recorded.get(key) is None]


def _legacy_retry(recorded: JsonObject, rebuilt: JsonObject) -> JsonObject:
    """1.x called both an answer that asks for another try, which is a `tool-return` today, and feedback that answers
    no call `retry-prompt`; it made up an id for the latter."""
    if recorded.get("part_kind") != "retry-prompt":
        return rebuilt
    if rebuilt.get("part_kind") == "tool-return" and rebuilt.get("outcome") == "retried":
        return {**rebuilt, "part_kind": "retry-prompt"}
    if rebuilt.get("part_kind") == "retry-feedback" and recorded.get("tool_name") is None:
        of_nobody: JsonObject = {name: recorded[name] for name in ("tool_name", "tool_call_id") if name in recorded}
        return {**rebuilt, **of_nobody, "part_kind": "retry-prompt"}
    return rebuilt
