"""Other answers of a tool that a fork can try at a click: what goes wrong with tools again and again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.redaction.placeholders import PLACEHOLDER
from sessions_app.core.run import ToolCall

MAX_BYTES = 100_000
"""Of a recorded answer; what is larger is offered emptied and cut, and not edited."""
_MAX_CUT = 2000
_STALE_BY = timedelta(days=30)


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """One thing to try. `change` lacks its step."""

    key: str
    title: str
    change: JsonObject


def presets(call: ToolCall, *, decided: JsonValue = None) -> list[Preset]:
    """Those that make sense for what the tool answered, always in the same order.

    An answer that an edit leaves as it was is not offered; of a call whose answer was not captured only the timeout is.
    `decided` says what came of a call that waited for an approval; the other decision is offered.
    """
    decisions = [] if decided is None else [_other_decision(decided)]
    made: dict[str, JsonObject] = dict(_answers(call.result)) if call.result else {}
    made["timeout"] = {"error": _timeout(call)}
    return decisions + [
        Preset(key=key, title=title, change={"kind": "tool_result", **made[key]})
        for key, title in _TITLES.items()
        if key in made
    ]


def unfit_presets(call: ToolCall) -> list[str]:
    """The others, each with why this answer has none."""
    if call.result is None:
        return []
    offered = {preset.key for preset in presets(call)}
    return [words for key, words in _UNFIT.items() if key not in offered and call.result.size <= MAX_BYTES]


def _other_decision(decided: JsonValue) -> Preset:
    if decided == "denied":
        return Preset(key="approved", title="Approved", change={"kind": "approval", "value": "approved"})
    return Preset(key="denied", title="Denied", change={"kind": "approval", "value": "denied"})


_TITLES = {
    "empty": "Empty answer",
    "rate_limit": "Error 429 with cut body",
    "timeout": "Timeout",
    "stale": "Stale by 30 days",
    "other_tenant": "Of another tenant",
    "doubled": "Doubled",
}


_UNFIT = {
    "empty": "empty (it is empty already)",
    "stale": "stale (it holds no date)",
    "other_tenant": "of another tenant (it names none)",
    "doubled": "doubled (it holds no list with items)",
}


def _timeout(call: ToolCall) -> JsonObject:
    return {"type": "TimeoutError", "message": f"{call.tool_name} did not answer in time.", "crashes": False}


def _answers(result: Payload) -> Iterator[tuple[str, JsonObject]]:
    if not (result.is_json or result.is_text):
        return
    if result.size > MAX_BYTES:
        yield "empty", {"value": _empty_of_large(result)}
        yield "rate_limit", {"value": result.content[:_MAX_CUT].decode(errors="ignore")}
        return
    cut = _cut(result)
    if cut != result.value:
        yield "rate_limit", {"value": cut}
    for key, edit in _EDITS.items():
        yield from _edited(result, key, edit)


def _empty_of_large(result: Payload) -> JsonValue:
    first = result.content.lstrip()[:1]
    if result.is_text or first == b'"':
        return ""
    return [] if first == b"[" else {}


def _cut(result: Payload) -> str:
    """The first half of the body, as a connection that broke off leaves it."""
    text = result.value if isinstance(result.value, str) else result.as_text()
    return text[: min(len(text) // 2, _MAX_CUT)]


def _edited(result: Payload, key: str, edit: Callable[[JsonValue], JsonValue]) -> Iterator[tuple[str, JsonObject]]:
    """A text that spells JSON is edited as JSON and stays a text."""
    before = result.parsed
    try:
        after = edit(before)
    except RecursionError:
        return
    if after == before:
        return
    is_spelled = isinstance(result.value, str) and not isinstance(before, str)
    yield key, {"value": json.dumps(after, ensure_ascii=False) if is_spelled else after}


# --- lists and their counts --------------------------------------------------------------------

_COUNT = re.compile(
    r"n|total|length|(.+_)?(count|hits|matches|found)"
    r"|(total|num|number_of)_(results|items|hits|matches|docs|documents|records|rows|entries|orders)"
)
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _empty(value: JsonValue) -> JsonValue:
    """The same shape with nothing in it; an object without lists is emptied itself."""
    if isinstance(value, str):
        return ""
    if not isinstance(value, dict | list):
        return None
    return _with_lists(value, lambda items: [], lambda count: 0) if _has_list(value) else {}


def _doubled(value: JsonValue) -> JsonValue:
    if not _has_list(value):
        return value
    return _with_lists(value, lambda items: [each for item in items for each in (item, item)], lambda count: 2 * count)


def _with_lists(
    value: JsonValue, edit: Callable[[list[Any]], list[Any]], recount: Callable[[int], int], key: str = ""
) -> JsonValue:
    """Edits the outermost lists, not those inside their items, and the numbers that count them."""
    if isinstance(value, list):
        return edit(value)
    if isinstance(value, dict):
        return {name: _with_lists(each, edit, recount, name) for name, each in value.items()}
    return recount(value) if type(value) is int and _is_count(key) else value


def _has_list(value: JsonValue) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and any(map(_has_list, value.values())))


def _is_count(key: str) -> bool:
    return _COUNT.fullmatch(_words_of(key)) is not None


def _words_of(key: str) -> str:
    """`totalCount`, `total-count` and `total_count` are one name."""
    return _HUMP.sub("_", key[:100]).replace("-", "_").lower()


# --- dates -------------------------------------------------------------------------------------

_DATE = re.compile(r"(?<![\w.-])[0-9]{4}-[0-9]{2}-[0-9]{2}(?![0-9-])")


def _stale(value: JsonValue) -> JsonValue:
    """Each ISO date in a text moved back; the time of day stays."""
    if isinstance(value, str):
        return _DATE.sub(_earlier, value)
    if isinstance(value, list):
        return [_stale(item) for item in value]
    if isinstance(value, dict):
        return {key: _stale(each) for key, each in value.items()}
    return value


def _earlier(found: re.Match[str]) -> str:
    try:
        return (date.fromisoformat(found[0]) - _STALE_BY).isoformat()
    except (ValueError, OverflowError):  # no day of the calendar, or before the year 1
        return found[0]


# --- owners ------------------------------------------------------------------------------------

_OWNER = r"user|tenant|customer|account|client|owner|org|organi[sz]ation|company|workspace"
_OWNERS = re.compile(_OWNER)
_OWNER_IDS = re.compile(rf"(.+_)?({_OWNER})_(id|no|number|key)|tenant|customer|account|owner|org")
_NEXT = str.maketrans("0123456789", "1234567890")
_NEXT_LETTER = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", "bcdefghijklmnopqrstuvwxyzaBCDEFGHIJKLMNOPQRSTUVWXYZA"
)


def _other_tenant(value: JsonValue, name: str = "") -> JsonValue:
    """Ids of whom the answer belongs to replaced; `name` is the key that the value stands under."""
    if isinstance(value, list):
        return [_other_tenant(item, name) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _other_id(each) if _names_owner(_words_of(key), name) else _other_tenant(each, _words_of(key))
        for key, each in value.items()
    }


def _names_owner(key: str, above: str) -> bool:
    """`user_id`, `account`, or the `id` inside a `user`."""
    return _OWNER_IDS.fullmatch(key) is not None or (key == "id" and _OWNERS.fullmatch(above) is not None)


def _other_id(value: JsonValue) -> JsonValue:
    """Of the same shape: `u_7710` becomes `u_8821`. A redacted id stays redacted."""
    if isinstance(value, dict | list):
        return _other_tenant(value, "account")
    if type(value) is int:
        return _other_number(value)
    if not isinstance(value, str) or PLACEHOLDER.search(value):
        return value
    digits = value.translate(_NEXT)
    return digits if digits != value else value.translate(_NEXT_LETTER)


def _other_number(number: int) -> int:
    """With as many digits."""
    digits = str(abs(number)).translate(_NEXT)
    whole = int("1" + digits[1:] if digits.startswith("0") else digits)
    return -whole if number < 0 else whole


_EDITS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "empty": _empty,
    "stale": _stale,
    "other_tenant": _other_tenant,
    "doubled": _doubled,
}
