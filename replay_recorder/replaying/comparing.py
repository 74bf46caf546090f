"""A value that was recorded beside the one that is there now: the first difference, by its JSON path.

What each run makes anew is left aside, and so is what the recording does not hold of the library's own objects. In what
a tool, a model or a person wrote, everything counts, the order of keys too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from replay_recorder.recorded_http.exchanges import PLACEHOLDER

_VOLATILE = frozenset({"timestamp", "run_id", "conversation_id"})
_MESSAGE = re.compile(r"messages\[\d+\](\.parts\[\d+\])?")
_LIBRARY = re.compile(
    r"messages\[\d+\](\.usage(\.details)?|\.provider_details|\.parts\[\d+\](\.retry)?)?"
    r"|parameters(\.(function_tools|output_tools|instruction_parts)\[\d+\]|\.output_object)?"
)
"""Objects whose fields the library defines, so that an older or shorter recording may lack some."""
_FILE = re.compile(r"messages\[\d+\]\.parts\[\d+\]\.content(\[\d+\])?")
_MADE_AT_RANDOM = re.compile(r"<[\w.]+:[0-9a-f]+>")
_ABSENT = object()


class Difference(NamedTuple):
    """The first field that differs; None stands for one that is not there."""

    path: str
    recorded: Any
    now: Any


def first_difference(recorded: Any, now: Any, path: str) -> Difference | None:
    return next(_differences(recorded, now, path), None)


def _differences(recorded: Any, now: Any, path: str) -> Iterator[Difference]:
    if isinstance(recorded, dict) and isinstance(now, dict):
        yield from _in_objects(recorded, now, path)
    elif isinstance(recorded, list) and isinstance(now, list):
        yield from _in_lists(recorded, now, path)
    elif not _is_same(recorded, now) and not _are_random_ids(path, recorded, now):
        yield Difference(path, recorded, now)


def _in_objects(recorded: dict[str, Any], now: dict[str, Any], path: str) -> Iterator[Difference]:
    is_librarys = _is_of_library(path, recorded)
    for key in [*recorded, *(key for key in now if key not in recorded)]:
        left, right = recorded.get(key, _ABSENT), now.get(key, _ABSENT)
        if (key in _VOLATILE and _MESSAGE.fullmatch(path)) or (left is _ABSENT and is_librarys):
            continue
        if left is _ABSENT or right is _ABSENT:
            yield Difference(f"{path}.{key}", *(None if side is _ABSENT else side for side in (left, right)))
        else:
            yield from _differences(left, right, f"{path}.{key}")
    if not is_librarys and list(recorded) != list(now):
        yield Difference(path, list(recorded), list(now))


def _in_lists(recorded: list[Any], now: list[Any], path: str) -> Iterator[Difference]:
    for index in range(max(len(recorded), len(now))):
        left, right = (side[index] if index < len(side) else _ABSENT for side in (recorded, now))
        if left is _ABSENT or right is _ABSENT:
            yield Difference(f"{path}[{index}]", *(None if side is _ABSENT else side for side in (left, right)))
        else:
            yield from _differences(left, right, f"{path}[{index}]")


def _is_of_library(path: str, recorded: dict[str, Any]) -> bool:
    return bool(_LIBRARY.fullmatch(path)) or (bool(_FILE.fullmatch(path)) and isinstance(recorded.get("kind"), str))


def _is_same(recorded: Any, now: Any) -> bool:
    """`1`, `1.0` and `True` are three values."""
    if type(recorded) is not type(now):
        return False
    return bool(recorded == now) or (isinstance(recorded, str) and _is_redacted(recorded, now))


def _is_redacted(recorded: str, now: str) -> bool:
    """Whether these words may be the recorded ones before secrets were taken out of them. Only the server can tell; it
    does, when it gets what was observed."""
    said = PLACEHOLDER.split(recorded)
    return len(said) > 1 and re.fullmatch(".+?".join(map(re.escape, said)), now, re.DOTALL) is not None


def _are_random_ids(path: str, left: Any, right: Any) -> bool:
    """Toolsets and capabilities without an id get a random one for each object."""
    if not path.endswith(".capability_id") or not (isinstance(left, str) and isinstance(right, str)):
        return False
    return _MADE_AT_RANDOM.sub("<>", left) == _MADE_AT_RANDOM.sub("<>", right)


_WRITTEN_WHOLE = frozenset({"temperature", "top_p", "seed"})
"""A recording that holds these, be it as null, holds every setting; others hold those that their producer knows of."""


def settings_difference(recorded: Any, now: dict[str, Any]) -> Difference | None:
    """Of the settings of a request, both without their secrets; null and no word are the same."""
    if not isinstance(recorded, dict):
        return None
    is_whole = recorded.keys() >= _WRITTEN_WHOLE
    names = [*recorded, *(name for name in now if is_whole and name not in recorded)]
    found = (first_difference(recorded.get(name), now.get(name), f"settings.{name}") for name in names)
    return next((each for each in found if each is not None), None)


def same_value(left: Any, right: Any) -> bool:
    """Whether two JSON values are the same, whatever the order of their keys; for arguments, which are matched."""
    return json.dumps(left, sort_keys=True, default=str) == json.dumps(right, sort_keys=True, default=str)
