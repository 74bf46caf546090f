"""The history that a turn began with, held against the end of the turn before it.

Of what a turn was handed beyond that end, four things are no contradiction:

- less of it, wherever it was cut;
- a summary: texts that stand for more parts than they are, or for a long text;
- what people wrote and tools answered behind the end of the turn before, and an answer that middleware redacted if the
  output of that turn is redacted alike;
- what other runs of the session said.

Everything else is: another question, call or answer, one that no run said, and one in another place.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
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
_TEXTS = frozenset({"user-prompt", "text"})
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

    def is_before(self, other: SaidPart | None) -> bool:
        return other is not None and (self.message, self.number) < (other.message, other.number)

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
    """With the arguments of a call that has none: only a part that does not tell them may lack them."""
    if form.get("part_kind") == "tool-call":
        return {"args": {}, **form}
    content = form.get("content")
    return {**form, "content": content.strip()} if isinstance(content, str) else form


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldOtherwise:
    """A part of a turn's beginning that the turn before says otherwise, or that no run says."""

    now: SaidPart
    before: SaidPart | None
    """What the turn before says there; None where no run of the session says it."""
    path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnEnd:
    """What a turn came to."""

    parts: Sequence[SaidPart]
    answer: str | None
    """The key of its output, where code made another text of it than the model answered."""

    @classmethod
    def of(cls, parts: Sequence[SaidPart], output: JsonValue) -> TurnEnd:
        key = _key({"content": output.strip(), "part_kind": "text"}) if isinstance(output, str) else None
        answered = next((part.key for part in reversed(parts) if part.kind == "text"), None)
        return cls(parts=parts, answer=None if key == answered else key)


def told_otherwise(
    prior: Sequence[SaidPart], end: TurnEnd, said: Callable[[], SessionParts | None]
) -> Iterator[ToldOtherwise]:
    """None where they have nothing in common. `said` gives None where not all runs were recorded whole."""
    for block in _blocks(prior, end.parts):
        found = _other_part(block, end) if block.is_alike else _added_part(block, prior, end, said())
        if found is not None:
            yield found


def is_retold(found: ToldOtherwise, end: TurnEnd) -> bool:
    """Whether it may be what code makes of a turn for another agent: a prompt of its own, or the same in more words."""
    if found.before is None and found.now.kind == "user-prompt":
        return True
    now = _content(found.now.form)
    return any(part.kind in _TEXTS and _content(part.form) in now for part in end.parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionParts:
    """What the runs of a session said, for a turn of it."""

    counts: Counter[str]
    """How often each part, by its key."""
    left_out: int
    """How many parts of earlier turns its own history does not hold."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Block:
    """Parts at the end of a turn, and those that the next one was handed in their place."""

    old: Sequence[SaidPart]
    new: Sequence[SaidPart]
    at_head: bool
    at_end: bool
    next_old: SaidPart
    """The part that the turn before has there."""

    @property
    def is_alike(self) -> bool:
        return [part.kind for part in self.old] == [part.kind for part in self.new]

    def is_summary(self, left_out: int) -> bool:
        """At the head, it may be of turns that the turn before was not handed either."""
        is_of_open_calls = all(part.kind == "tool-call" for part in self.old)
        stands_for = (0 if is_of_open_calls else len(self.old)) + (left_out if self.at_head else 0)
        return len(self.new) < stands_for and all(part.kind in _TEXTS for part in self.new)


def _other_part(block: _Block, end: TurnEnd) -> ToldOtherwise | None:
    """Several texts at the head of a history may have become a summary in as many, which says little of what they
    said."""
    is_of_texts = all(part.kind in _TEXTS for part in block.old)
    if block.at_head and len(block.old) > 1 and is_of_texts and not any(map(_are_alike, block.old, block.new)):
        return None
    for before, now in zip(block.old, block.new, strict=True):
        found = _difference(before, now)
        is_by_code = (before is end.parts[-1] and now.key == end.answer) or _is_taken_output(before)
        if found is not None and not is_by_code:
            return ToldOtherwise(now=now, before=before, path=found.path)
    return None


def _is_taken_output(part: SaidPart) -> bool:
    """Pydantic AI lets an application write something else there."""
    return part.kind == "tool-return" and part.form.get("content") == "Final result processed."


def _added_part(
    block: _Block, prior: Sequence[SaidPart], end: TurnEnd, said: SessionParts | None
) -> ToldOtherwise | None:
    """A part that no run said, or not so often, or that the turn before said once and in another place."""
    if said is None or block.is_summary(said.left_out):
        return None
    handed, held = (Counter(part.key for part in parts) for parts in (prior, end.parts))
    made = next((part for part in block.new if block.at_end and part.key == end.answer), None)
    added = [
        part
        for part in block.new
        if part is not made and (_is_unsaid(part, handed, said.counts) or held[part.key] == 1 == handed[part.key])
    ]
    if block.at_end and not any(part.kind in _OF_MODELS or part.is_before(made) for part in added):
        return None
    return _as_added(added, block, prior, held) if added else None


def _is_unsaid(part: SaidPart, handed: Counter[str], said: Counter[str]) -> bool:
    """Code may put one prompt into each request; what tools answered is held against their calls."""
    if part.kind in _OF_MODELS:
        return handed[part.key] > said[part.key]
    return part.kind == "user-prompt" and part.key not in said


def _as_added(added: Sequence[SaidPart], block: _Block, prior: Sequence[SaidPart], held: Counter[str]) -> ToldOtherwise:
    now = added[0]
    is_whole = all(part in added for part in prior if part.message == now.message)
    path = f"messages[{now.message}]" if is_whole else now.path
    return ToldOtherwise(now=now, before=block.next_old if now.key in held else None, path=path)


def prompted_otherwise(prior: Sequence[SaidPart], end: Sequence[SaidPart]) -> ToldOtherwise | None:
    """Of the system prompts, where both have as many."""
    pairs = zip(end, prior, strict=True) if len(end) == len(prior) else ()
    others = ((before, now, found) for before, now in pairs if (found := _difference(before, now)) is not None)
    return next((ToldOtherwise(now=now, before=before, path=found.path) for before, now, found in others), None)


def _blocks(prior: Sequence[SaidPart], end: Sequence[SaidPart]) -> list[_Block]:
    """Where the turn was handed something else or more. Empty where nothing is the same: then it is not known that the
    one was handed on to the other."""
    keys = [part.key for part in end], [part.key for part in prior]
    if _is_cut_from(keys[1], keys[0]):
        return []
    found = SequenceMatcher(None, *keys, autojunk=False).get_opcodes()
    if not any(tag == "equal" for tag, *_ in found):
        return []
    return [
        _Block(
            old=end[i1:i2],
            new=prior[j1:j2],
            at_head=i1 == 0,
            at_end=i2 == len(end),
            next_old=end[min(i1, len(end) - 1)],
        )
        for tag, i1, i2, j1, j2 in found
        if tag in ("insert", "replace")
    ]


def _is_cut_from(keys: Iterable[str], whole: Iterable[str]) -> bool:
    left = iter(whole)
    return all(key in left for key in keys)


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
