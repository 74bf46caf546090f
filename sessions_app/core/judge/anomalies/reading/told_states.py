"""What an answer says of the state of what it was asked for: refused, or not over yet."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.reading.vocabulary import GRANTED, REFUSED
from sessions_app.core.judge.reading import object_of, value_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import ToolCall

STATE_KEYS = frozenset(
    {"status", "state", "decision", "result", "outcome", "verdict", "approval", "statut", "estado", "stato"}
    | {"entscheidung", "décision", "decisión", "decisão", "decisione", "ergebnis", "状態", "状态", "结果", "結果"}
)
_WAITING = frozenset(
    {"pending", "queued", "waiting", "processing", "in_progress", "in progress", "in-progress", "progressing"}
)


def told_states(call: ToolCall) -> Iterator[str]:
    """Each state that an answer gives; also of the one record that is in it."""
    said = ((key, item) for record in _records(call) for key, item in record.items())
    yield from (item.strip().lower() for key, item in said if key.lower() in STATE_KEYS and isinstance(item, str))


def told_refusals(call: ToolCall) -> Iterator[str]:
    """Keys under which an answer says that something was not granted, or not done."""
    said = ((key, item) for record in _records(call) for key, item in record.items())
    yield from (key for key, item in said if item is False and GRANTED.fullmatch(key))
    not_done = says_not_done(call)
    yield from () if not_done is None else (not_done,)


_REASONS = frozenset({"conflict", "conflicts", "reason", "reasons", "message", "detail", "cause", "blocked_by"})
_IRREGULAR = {
    "send": "sent",
    "pay": "paid",
    "put": "put",
    "set": "set",
    "write": "written",
    "do": "done",
    "make": "made",
}


def says_not_done(call: ToolCall) -> str | None:
    """The key for what the tool does, as `saved` of `save_page`, where that is false and a reason stands beside it."""
    told = object_of(call.result)
    verb = re.split(r"_|(?<=[a-z])(?=[A-Z])", call.tool_name)[0].lower() if told else ""
    done = _IRREGULAR.get(verb, rf"{verb}(?:e?d|{verb[-1:]}ed)")
    key = next((key for key, item in told.items() if item is False and re.fullmatch(done, key.lower())), None)
    return key if any(told.get(reason) for reason in _REASONS) else None


_OF_THE_CALL = frozenset({"status", "state", "outcome", "approval"})


def says_refused(call: ToolCall) -> bool:
    """The call itself, and not what it judged."""
    said = object_of(call.result).items()
    return any(key.lower() in _OF_THE_CALL and isinstance(item, str) and is_refusal(item.lower()) for key, item in said)


def _records(call: ToolCall) -> list[JsonObject]:
    told = value_of(call.result)
    if not isinstance(told, dict):
        return []
    inner = [item for item in told.values() if isinstance(item, dict)]
    return [told, *(inner if len(inner) == 1 else ())]


def is_refusal(state: str) -> bool:
    return REFUSED.fullmatch(state) is not None


def is_waiting(state: str) -> bool:
    return state in _WAITING


def is_unfinished(state: str) -> bool:
    """What runs may be as it is meant to be, as a server."""
    return is_waiting(state) or state == "running"


_LINE = 300
"""Characters; more than that is a document."""
_OPEN = re.compile(
    r"(?<!\w)(?:running|pending|queued|waiting|processing|progressing|in progress|unfinished|incomplete|still|not yet"
    r"|läuft|wartet|ausstehend|en cours|en attente|en curso|pendientes?|em andamento|pendentes?)(?!\w)"
    r"|実行中|処理中|待機中|进行中|处理中|等待|(?<![\d.,])\d{1,2}(?:[.,]\d+)? ?%"
)
_OVER = re.compile(
    r"(?<!\w)(?:completed?|done|finished|succeeded|success|ready|100 ?%|fertig|abgeschlossen"
    r"|terminée?s?|listo|conclu\w+)(?!\w)|完了|完成"
)
_OF = re.compile(r"(?<![\w.,/-])(\d{1,6}) ?(?:of|out of|/|von|sur|de|af|av|van|di) ?(\d{1,6})(?![\w.,/-]*\d)")


def parts_done(call: ToolCall) -> tuple[int, int] | None:
    """How many of how many a line of text says that are there, as in `3 of 5 replicas are available`."""
    told = value_of(call.result)
    found = _OF.findall(told.lower()) if isinstance(told, str) and len(told) <= _LINE else []
    return (int(found[0][0]), int(found[0][1])) if len(found) == 1 else None


def tells_unfinished(call: ToolCall) -> bool:
    """An answer that says of something that it is not over: by its state, or in a line of text."""
    told = value_of(call.result)
    if not isinstance(told, str):
        return any(map(is_unfinished, told_states(call)))
    said, parts = told.lower() if len(told) <= _LINE else "", parts_done(call)
    if parts is not None:
        return parts[0] < parts[1] and _OPEN.search(said) is not None
    return _OPEN.search(said) is not None and _OVER.search(said) is None
