"""What models asked of tools, and which span tells that it was done."""

from __future__ import annotations

from dataclasses import dataclass

from sessions_app.core.payload import JsonValue, canonical_json
from sessions_app.core.spans.attributes import parsed
from sessions_app.core.spans.reading import CallPart, Reading

_ABSENT: JsonValue = object()


@dataclass(eq=False)
class Asked:
    """One call that an answer asks for."""

    part: CallPart
    call_id: str
    is_taken: bool = False
    """Whether a span tells of it."""
    result: JsonValue = _ABSENT
    """As the model was given it by a later request."""

    @property
    def has_result(self) -> bool:
        return self.result is not _ABSENT


class OpenCalls:
    """The calls that wait for a span, newest answer first."""

    def __init__(self) -> None:
        self._answers: list[list[Asked]] = []

    def add(self, asked: list[Asked]) -> None:
        if asked:
            self._answers.append(asked)

    def take(self, reading: Reading) -> Asked | None:
        """The call that a tool's span tells of: by id, by name and arguments, by name alone."""
        for fits in (_same_id, _same_arguments, _same_name):
            for asked in (each for answer in reversed(self._answers[-_LOOK_BACK:]) for each in answer):
                if not asked.is_taken and fits(asked, reading):
                    asked.is_taken = True
                    return asked
        return None

    def answered(self, results: dict[str, JsonValue]) -> None:
        """A later request brought these results to a model, by call id."""
        if not results:
            return
        for answer in reversed(self._answers[-_LOOK_BACK:]):
            for asked in answer:
                if asked.call_id in results and not asked.has_result:
                    asked.result = results[asked.call_id]


_LOOK_BACK = 64
"""Answers; tools are run soon after they were asked for."""


def _same_id(asked: Asked, reading: Reading) -> bool:
    return reading.call_id is not None and reading.call_id == asked.call_id


def _same_arguments(asked: Asked, reading: Reading) -> bool:
    if asked.part.tool_name != reading.tool_name or not reading.has_arguments:
        return False
    return same_value(asked.part.arguments, reading.arguments)


def _same_name(asked: Asked, reading: Reading) -> bool:
    """Arguments that were changed on the way, or not captured."""
    return asked.part.tool_name == reading.tool_name


def same_value(left: JsonValue, right: JsonValue) -> bool:
    """Whether both say the same, be it as JSON, as text that holds it, or as Python prints it; nothing and `{}` are
    the same."""
    return _canonical(left) == _canonical(right) or _is_print_of(left, right) or _is_print_of(right, left)


def _is_print_of(text: JsonValue, value: JsonValue) -> bool:
    value = parsed(value)
    return isinstance(text, str) and isinstance(value, dict | list) and text.strip() == str(value)


def comparable(value: JsonValue) -> JsonValue:
    """The value in the form in which it is compared: text that holds JSON is read, and nothing is `{}`."""
    value = parsed(value)
    return {} if value in (None, "") else value


def _canonical(value: JsonValue) -> bytes:
    try:
        return canonical_json(comparable(value))
    except (ValueError, RecursionError):
        return repr(parsed(value)).encode(errors="replace")
