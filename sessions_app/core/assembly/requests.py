"""What models asked of tools, and which span tells that it was done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sessions_app.core.embedded_json import arguments_in, parsed
from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.spans.reading import CallPart, Reading, ResultPart

_ABSENT: JsonValue = object()
_OF_GOOGLE_ADK = ("adk-", "<not specified>")


@dataclass(eq=False)
class Asked:
    """One call that an answer asks for."""

    part: CallPart
    call_id: str
    asked_in: int | None = None
    """The identity of what stands around the answer: an agent, or work of one."""
    was_left_open: bool = False
    """Whether an earlier run ended with it."""
    is_taken: bool = False
    """Whether a span tells of it."""
    result: JsonValue = _ABSENT
    """As the model was given it by a later request."""
    has_failed: bool = False
    """Whether that request says so."""

    @property
    def has_result(self) -> bool:
        return self.result is not _ABSENT


@dataclass(eq=False)
class Told:
    """A tool's span."""

    reading: Reading
    answers_before: int
    """How many answers that ask for something had been given when it began."""
    inside: frozenset[int]
    """The identities of all that stands around it."""
    asked: Asked | None = None
    """The call that it tells of."""
    again_of: Asked | None = None
    """The call, where this was an attempt at it that another one came after."""

    @property
    def call(self) -> Asked | None:
        """The call that it belongs to."""
        return self.asked or self.again_of

    @property
    def names_another_call(self) -> bool:
        """Whether it tells an id that is not that of its call, where both have one. Google's ADK makes one for models
        that give none."""
        own, asked = self.reading.call_id, None if self.asked is None else self.asked.part.call_id
        return None not in (own, asked) and own != asked and not str(own).startswith(_OF_GOOGLE_ADK)

    @property
    def has_worked(self) -> bool:
        return self.reading.error is None and self.reading.has_result


class OpenCalls:
    """The calls that wait for a span, by the answers that ask for them."""

    def __init__(self) -> None:
        self._answers: list[list[Asked]] = []

    def __len__(self) -> int:
        """How many answers ask for something so far."""
        return len(self._answers)

    def add(self, asked: list[Asked]) -> None:
        if asked:
            self._answers.append(asked)

    def answered(self, results: dict[str, ResultPart]) -> None:
        """A later request brought these results to a model, by call id."""
        if not results:
            return
        for answer in reversed(self._answers[-_LOOK_BACK:]):
            for asked in answer:
                if asked.call_id in results and not asked.has_result:
                    asked.result = results[asked.call_id].content
                    asked.has_failed = results[asked.call_id].is_error

    def match(self, told: Sequence[Told]) -> None:
        """Say of each tool's span which call it tells of, once all answers and all results are known.

        By id first. The others by what they say, the surest sign of all spans before the next one of any: a span that
        fits a call in name alone must not take it from one that has its arguments.
        """
        self._match_ids(told)
        for fits in _SIGNS:
            for only_near in (True, False):
                for each in told:
                    if each.call is None:
                        each.asked = _taken(self._newest(each, fits, only_near=only_near))
        for each in told:
            if each.call is None and not each.has_worked:
                each.again_of = self._newest(each, _same_arguments, only_near=True, is_taken=True)

    def _match_ids(self, told: Sequence[Told]) -> None:
        """The clocks of two hosts may differ: the span may seem to begin before it was asked for."""
        waiting: dict[str, list[Asked]] = defaultdict(list)
        for asked in (each for answer in self._answers for each in answer):
            if asked.part.call_id is not None:
                waiting[asked.part.call_id].append(asked)
        same_id: dict[str, list[Told]] = defaultdict(list)
        for each in told:
            if each.reading.call_id is not None:
                same_id[each.reading.call_id].append(each)
        for call_id, spans in same_id.items():
            self._share_out(spans, waiting.get(call_id, []))

    def _share_out(self, spans: list[Told], calls: list[Asked]) -> None:
        """Spans and calls of one id. More spans than calls are attempts: those that failed come before the one that
        the model was told of."""
        failed = [each for each in spans if not each.has_worked]
        for each in failed[: max(len(spans) - len(calls), 0)] if calls else ():
            each.again_of = calls[0]
        for each in spans:
            if each.again_of is None:
                left = next((asked for asked in calls if not asked.is_taken), None)
                each.asked = _taken(self._newest(each, _same_id, only_near=False) or left)

    def _newest(self, told: Told, fits: _Sign, *, only_near: bool, is_taken: bool = False) -> Asked | None:
        """The call, of those that a span tells of already or of the others."""
        before = self._answers[max(told.answers_before - _LOOK_BACK, 0) : told.answers_before]
        for asked in (each for answer in reversed(before) for each in answer):
            is_open = asked.is_taken == is_taken and (not only_near or _is_near(asked, told))
            if is_open and fits(asked, told.reading):
                return asked
        return None


_LOOK_BACK = 64
"""Answers; tools are run soon after they were asked for."""


def _taken(asked: Asked | None) -> Asked | None:
    if asked is not None:
        asked.is_taken = True
    return asked


def _is_near(asked: Asked, told: Told) -> bool:
    """Whether the tool ran inside of what stands around the answer: agents that work at once ask alike."""
    return asked.asked_in is None or asked.asked_in in told.inside


def _same_id(asked: Asked, reading: Reading) -> bool:
    return asked.part.call_id == reading.call_id


def _same_call(asked: Asked, reading: Reading) -> bool:
    # In this order: most spans that fit nothing are told apart by what was not captured.
    return _same_name_and_result(asked, reading) and _same_arguments(asked, reading)


def _same_name_and_result(asked: Asked, reading: Reading) -> bool:
    if not (asked.has_result and reading.has_result and _same_name(asked, reading)):
        return False
    return same_value(asked.result, reading.result)


def _same_arguments(asked: Asked, reading: Reading) -> bool:
    if asked.part.tool_name != reading.tool_name or not reading.has_arguments:
        return False
    return same_arguments(asked.part.arguments, reading.arguments)


def _same_name(asked: Asked, reading: Reading) -> bool:
    return asked.part.tool_name == reading.tool_name


def _name_alone(asked: Asked, reading: Reading) -> bool:
    """Arguments that were changed on the way, or not captured. Some frameworks give their spans ids of their own, so
    others than the call's are no obstacle before; here nothing speaks for them."""
    ids = asked.part.call_id, reading.call_id
    return _same_name(asked, reading) and (None in ids or ids[0] == ids[1])


_Sign = Callable[[Asked, Reading], bool]
_SIGNS: tuple[_Sign, ...] = (_same_call, _same_arguments, _same_name_and_result, _name_alone)


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Whether both say the same, be it as JSON, as text that holds it, or as Python prints it; nothing and `{}` are
    the same."""
    return canonical(left) == canonical(right) or _is_print_of(left, right) or _is_print_of(right, left)


def same_arguments(left: JsonValue, right: JsonValue) -> bool:
    return same_value(arguments_in(left), arguments_in(right))


def _is_print_of(text: JsonValue, value: JsonValue) -> bool:
    value = parsed(value)
    return isinstance(text, str) and isinstance(value, dict | list) and text.strip() == str(value)


def comparable(value: JsonValue) -> JsonValue:
    """The value in the form in which it is compared: text that holds JSON is read, and nothing is `{}`."""
    value = parsed(value)
    return {} if value in (None, "") else value


def canonical(value: JsonValue) -> bytes:
    try:
        return canonical_json(comparable(value))
    except (ValueError, RecursionError):
        return repr(parsed(value)).encode(errors="replace")
