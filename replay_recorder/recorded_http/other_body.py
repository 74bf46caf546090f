"""In what the body of a request is another one than the body that was recorded for its address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from replay_recorder.recorded_http.exchanges import RecordedExchange, SentRequest, fits, same_address, with_boundary_of

_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_BEFORE, _BEHIND, _IN_WORDS = 20, 60, 60
"""How many characters of a text are shown around its first difference, and of a value in a sentence."""


@dataclass(frozen=True)
class OtherBody:
    """The first difference: its path, as `body.items[0].count`, and what stands there; None where nothing does. Of
    bodies that are no JSON it is what stands around the first character that differs."""

    path: str
    recorded: Any
    now: Any

    @property
    def words(self) -> str:
        return f"{self.path} was {_short(self.recorded)} and is now {_short(self.now)}"

    def to_json(self) -> dict[str, Any]:
        return {"path": self.path, "recorded": self.recorded, "now": self.now}


def other_body(exchanges: Iterable[RecordedExchange], request: SentRequest) -> OtherBody | None:
    """Held against the first exchange with the method and the address of the request; None where there is none, or
    where the bodies are the same."""
    nearest = next((each for each in exchanges if same_address(each, request)), None)
    if nearest is None or (nearest.request_body is None and "request_body_left_out" in nearest.facts):
        return None
    then, now = nearest.request_body or b"", with_boundary_of(nearest, request.body)
    left, right = _read(then), _read(now)
    are_json = isinstance(left, dict | list) and isinstance(right, dict | list)
    found = _first_value(left, right, "body") if are_json else None
    return found or _first_text(then.decode(errors="replace"), now.decode(errors="replace"))


def _read(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _first_value(recorded: Any, now: Any, path: str) -> OtherBody | None:
    if isinstance(recorded, dict) and isinstance(now, dict):
        keys = [*recorded, *(key for key in now if key not in recorded)]
        pairs = ((recorded.get(key), now.get(key), path + _segment(key)) for key in keys)
    elif isinstance(recorded, list) and isinstance(now, list):
        places = range(max(len(recorded), len(now)))
        pairs = ((_at(recorded, place), _at(now, place), f"{path}[{place}]") for place in places)
    else:
        return None if _is_same(recorded, now) else OtherBody(path, recorded, now)
    return next((found for pair in pairs if (found := _first_value(*pair)) is not None), None)


def _at(values: list[Any], place: int) -> Any:
    return values[place] if place < len(values) else None


def _segment(key: str) -> str:
    return f".{key}" if _PLAIN_KEY.fullmatch(key) else f"[{json.dumps(key, ensure_ascii=False)}]"


def _is_same(recorded: Any, now: Any) -> bool:
    """1, 1.0 and true are three values."""
    if isinstance(recorded, str) and isinstance(now, str):
        return fits(recorded, now, anything=".*?")
    return type(recorded) is type(now) and bool(recorded == now)


def _first_text(recorded: str, now: str) -> OtherBody | None:
    if recorded == now:
        return None
    shared = next((at for at, (one, other) in enumerate(zip(recorded, now, strict=False)) if one != other), None)
    place = min(len(recorded), len(now)) if shared is None else shared
    return OtherBody("body", _around(recorded, place), _around(now, place))


def _around(text: str, place: int) -> str | None:
    first, last = max(0, place - _BEFORE), place + _BEHIND
    shown = ("…" if first else "") + text[first:last] + ("…" if last < len(text) else "")
    return shown or None


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _IN_WORDS else f"{text[: _IN_WORDS - 1]}…"
