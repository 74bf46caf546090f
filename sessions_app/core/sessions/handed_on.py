"""The history that a turn began with, held against the end of the turn before it.

A turn that is handed less, or a summary, was told no other past: only what stands in the place of something else is a
contradiction, and what was said between two turns that no run holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from sessions_app.core.history import History, messages
from sessions_app.core.judge.reading import object_of
from sessions_app.core.payload import JsonObject, JsonValue, Payload
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.replay.request_form import message_form, parts_of

_SYSTEM = "system-prompt"
_MADE_ANEW = frozenset({_SYSTEM, "thinking"})
"""Code may make instructions anew for each turn, and leave out what a model thought."""
_OF_MODELS = frozenset({"text", "tool-call"})
_LONG = 200
"""Characters from which on a text may be kept in a shorter form."""
_SHORTER = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class SaidPart:
    """A part of a message, as it reaches a model."""

    message: int
    """Position of its message in the history."""
    number: int
    """Its own in the message."""
    kind: str
    form: JsonObject
    key: str
    """Equal for equal parts. Keys stand in any order: a history may have been kept in a database."""

    @property
    def path(self) -> str:
        return f"messages[{self.message}].parts[{self.number}]"

    def without(self, name: str) -> SaidPart:
        form = {each: said for each, said in self.form.items() if each != name}
        return replace(self, form=form, key=_key(form))


def _key(form: JsonObject) -> str:
    return json.dumps(form, sort_keys=True)


class HistoryReader:
    """Reads each message of a session once, whoever holds it."""

    def __init__(self) -> None:
        self._read: dict[str, list[tuple[int, str, JsonObject, str]]] = {}

    def parts(self, history: History | None) -> list[SaidPart]:
        return [part for part in self._all(history) if part.kind not in _MADE_ANEW]

    def system_prompts(self, history: History | None) -> list[SaidPart]:
        """Those that Pydantic AI makes once."""
        return [part for part in self._all(history) if part.kind == _SYSTEM]

    def _all(self, history: History | None) -> list[SaidPart]:
        return [
            SaidPart(message=at, number=number, kind=kind, form=form, key=key)
            for at, message in enumerate(messages(history))
            for number, kind, form, key in self._of(message)
        ]

    def _of(self, message: Payload) -> list[tuple[int, str, JsonObject, str]]:
        if message.digest not in self._read:
            self._read[message.digest] = _forms(object_of(message))
        return self._read[message.digest]


def _forms(message: JsonObject) -> list[tuple[int, str, JsonObject, str]]:
    parts, form = parts_of(message), message_form(message, {})
    if parts is None or not isinstance(form, list):
        return []
    made = form[1]
    found = []
    for number, (part, said) in enumerate(zip(parts, made, strict=True)):
        kind = said.get("part_kind") if isinstance(said, dict) else None
        if isinstance(kind, str) and isinstance(part, dict) and part.get("dynamic_ref") is None:
            stripped = _stripped(said)
            found.append((number, kind, stripped, _key(stripped)))
    return found


def _stripped(form: JsonObject) -> JsonObject:
    content = form.get("content")
    return {**form, "content": content.strip()} if isinstance(content, str) else form


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldOtherwise:
    """A part of a turn's beginning that the turn before says otherwise."""

    now: SaidPart
    before: SaidPart
    path: str


def told_otherwise(prior: Sequence[SaidPart], end: Sequence[SaidPart]) -> ToldOtherwise | None:
    """The first; None where they have nothing in common, or one holds less than the other."""
    for tag, i1, i2, j1, j2 in _changes(prior, end):
        if tag != "replace" or not _stand_for_each_other(end[i1:i2], prior[j1:j2], at_head=i1 == 0):
            continue
        for before, now in zip(end[i1:i2], prior[j1:j2], strict=True):
            found = _difference(before, now)
            if found is not None:
                return ToldOtherwise(now=now, before=before, path=found.path)
    return None


def prompted_otherwise(prior: Sequence[SaidPart], end: Sequence[SaidPart]) -> ToldOtherwise | None:
    """Of the system prompts, where both have as many."""
    pairs = zip(end, prior, strict=True) if len(end) == len(prior) else ()
    others = ((before, now, found) for before, now in pairs if (found := _difference(before, now)) is not None)
    return next((ToldOtherwise(now=now, before=before, path=found.path) for before, now, found in others), None)


def unknown_turn(prior: Sequence[SaidPart], end: Sequence[SaidPart], known: frozenset[str]) -> SaidPart | None:
    """The question of a turn that stands behind what the turn before ended with, or in the midst of it, and whose
    answer no run gave. What stands in front of all may be examples, or a summary. `known` holds what all runs added."""
    for tag, i1, _, j1, j2 in _changes(prior, end):
        if tag == "insert" and i1 > 0:
            asked = next((each for each in prior[j1:j2] if each.kind == "user-prompt"), None)
            behind = prior[prior.index(asked) : j2] if asked else []
            if any(each.kind in _OF_MODELS and each.key not in known for each in behind):
                return asked
    return None


def _changes(prior: Sequence[SaidPart], end: Sequence[SaidPart]) -> list[tuple[str, int, int, int, int]]:
    """Empty where nothing is the same: then it is not known that the one was handed on to the other."""
    keys = [part.key for part in end], [part.key for part in prior]
    if keys[0] == keys[1]:
        return []
    found = SequenceMatcher(None, *keys, autojunk=False).get_opcodes()
    return [(*each,) for each in found] if any(tag == "equal" for tag, *_ in found) else []


def _stand_for_each_other(end: Sequence[SaidPart], prior: Sequence[SaidPart], *, at_head: bool) -> bool:
    """Several texts at the head of a history may have become a summary in as many, which says little of what they
    said."""
    if [part.kind for part in end] != [part.kind for part in prior]:
        return False
    is_of_texts = all(part.kind in ("user-prompt", "text") for part in end)
    is_told_anew = any(map(_are_alike, end, prior)) or not is_of_texts
    return is_told_anew or not (at_head and len(end) > 1)


def _are_alike(before: SaidPart, now: SaidPart) -> bool:
    one, other = (set(_WORD.findall(_content(part.form))) for part in (before, now))
    return len(one & other) * 2 >= max(len(one), len(other)) > 0


def _difference(before: SaidPart, now: SaidPart) -> Mismatch | None:
    if _is_kept_shorter(before.form, now.form):
        return None
    return first_mismatch(before.form, now.form, raw=before.form, path=now.path, tally=Tally())


def _is_kept_shorter(before: JsonObject, now: JsonObject) -> bool:
    """Whether it is what code that trims long texts, sums them up or leaves files out makes of it. What was trimmed
    are pieces of the text; a summary is mostly in other words."""
    one, other = _content(before), _content(now)
    if len(one) < _LONG or len(other) > len(one) * _SHORTER:
        return False
    whole, known = _in_words(one), set(_WORD.findall(one))
    words = _WORD.findall(_LEFT_OUT.sub(" ", other))
    is_summary = sum(word in known for word in words) * 4 < len(words) * 3
    return is_summary or all(_in_words(piece) in whole for piece in _ENDS.split(_LEFT_OUT.sub("\n", other)))


def _content(form: JsonObject) -> str:
    said: JsonValue = form.get("content", form.get("args"))
    return said if isinstance(said, str) else json.dumps(said)


def _in_words(text: str) -> str:
    return " ".join(_WORD.findall(text))


_WORD = re.compile(r"\w+")
_LEFT_OUT = re.compile(r"\[[^\]\"]*\]|<[^>]*>|\([^)]*\)|…|\.\.\.")
"""In which code says that it left something out."""
_ENDS = re.compile(r"[.!?,;{}\[\]\n]+")
"""Of what may be taken out as a whole: sentences, lines, and values of JSON."""
