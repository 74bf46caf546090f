"""One of many calls of one tool that gave another value than all the others, and than what had been set."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    error_words_in,
    owns_up,
    plain,
    question_of,
)
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import (
    figures_in,
    is_stated,
    number_or_name,
    plain_values,
    statements,
)
from sessions_app.core.judge.reading import argument_key, has_answer, object_of, own_tools, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, ToolCall

Made = tuple[Step, ToolCall]
MANY = 5
"""Calls of one tool, each with arguments of its own."""
_MOST = 20
"""Each is held against the whole run."""


@dataclass(frozen=True, slots=True)
class _OddOne:
    step: Step
    call: ToolCall
    place: str | int
    value: str
    usual: str
    """That of all the others."""
    calls: int

    @property
    def subjects(self) -> list[str]:
        named = plain_values(object_of(self.call.arguments))
        return [str(item) for item in named.values() if str(item) != self.usual]


def other_values(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer states the usual value as that of all, and says nothing of the one."""
    if not has_answer(run) or error_words_in(run.output, rules) or owns_up(run.output):
        return
    found: dict[int, _OddOne] = {}
    for each in list(_odd_ones(run))[:_MOST]:
        is_wanted = _was_set(run, each) or _is_wanted_of_all(run, each)
        if is_wanted and _is_passed_over(run, each) and not _is_set_right(run, each):
            found.setdefault(each.step.index, each)
    for each in found.values():
        named = f" for {each.subjects[0][:60]}" if len(each.subjects) == 1 else ""
        message = (
            f"{each.step.name}{named} returned {each.value}, unlike the other {each.calls - 1} calls ({each.usual}); "
            "the answer does not say so"
        )
        yield Anomaly(code="other_value", message=message, steps=(each.step.index,))


def _odd_ones(run: Run) -> Iterator[_OddOne]:
    series: dict[str, dict[bytes, Made]] = defaultdict(dict)
    for step, call in own_tools(run):
        series[call.tool_name][argument_key(call)] = step, call  # what was asked again counts as it was in the end
    for made in series.values():
        calls = [(step, call) for step, call in made.values() if call.result is not None and not has_failed(step)]
        yield from _odd_in(calls) if len(calls) >= MANY else ()


def _odd_in(calls: list[Made]) -> Iterator[_OddOne]:
    """By each place of an answer where all but one have the same."""
    places: dict[str | int, list[tuple[int, str]]] = defaultdict(list)
    for at, (_, call) in enumerate(calls):
        for place, value in fields(call.result).items():
            places[place].append((at, value))
    for place, values in places.items():
        usual, often = Counter(value for _, value in values).most_common(1)[0]
        if often == len(values) - 1 == len(calls) - 1:
            at, value = next(each for each in values if each[1] != usual)
            if _are_alike(place, value, usual) and not is_stated(usual, _text(calls[at][1])):
                yield _OddOne(*calls[at], place, value, usual, len(calls))


def _are_alike(place: str | int, value: str, usual: str) -> bool:
    """Of a text, whose places shift with its wording, only numbers and what is written like them."""
    if isinstance(place, str):
        return _has_digit(value) or not _has_digit(usual)
    return _has_digit(usual) and re.sub(r"\d+", "0", value) == re.sub(r"\d+", "0", usual)


def _text(call: ToolCall) -> str:
    return "" if call.result is None else call.result.as_text()


_WORDS = 40


def fields(result: Payload | None) -> dict[str | int, str]:
    """The values of an answer by their keys; of a text its words by their places."""
    value = value_of(result)
    if isinstance(value, dict):
        return {key: str(item) for key, item in plain_values(value).items()}
    words = value.split(maxsplit=_WORDS)[:_WORDS] if isinstance(value, str) else []
    return {at: word.strip(".,;:!()[]\"'") for at, word in enumerate(words)}


def _has_digit(value: str) -> bool:
    return re.search(r"\d", value) is not None


# --- what speaks for it ------------------------------------------------------------------------


_ALL = re.compile(
    r"(?<!\w)(?:all|every|each|alle[nrs]?|jede[rsn]?|tou(?:s|tes)|chaque|tod[oa]s|cada)(?!\w)"
    r"|すべて|全|每|كل|جميع"
)
_BUT = re.compile(
    r"(?<!\w)(?:but|except|apart|besides|one|still|remain\w*|other|others|most|außer|bis auf|noch|sauf|encore|excepto"
    r"|salvo|menos)(?!\w)"
)


def _is_passed_over(run: Run, each: _OddOne) -> bool:
    """The usual value is stated; the other one is not, and its call is named only as if it had the usual one."""
    said = statements(run)
    stating = [sentence for sentence in said if is_stated(number_or_name(each.usual), sentence)]
    naming = [sentence for sentence in said if any(is_stated(name, sentence) for name in each.subjects)]
    is_reserved = any(_BUT.search(plain(sentence)) or SAYS_NOTHING.search(plain(sentence)) for sentence in stating)
    is_told = any(is_stated(number_or_name(each.value), sentence) for sentence in said)
    is_counted = any(each.calls - 1 in figures_in(sentence) for sentence in said)
    return bool(stating) and not (is_reserved or is_told or is_counted) and all(line in stating for line in naming)


def _was_set(run: Run, each: _OddOne) -> bool:
    """A call before that does something had the usual value for the same thing; a mere number, under the same name."""
    for step, call in own_tools(run):
        if step.index >= each.step.index:
            return False
        named = _named_in(call)
        by_name = object_of(call.arguments).get(str(each.place))
        is_set = str(by_name) == each.usual if _is_small(each) and isinstance(each.place, str) else each.usual in named
        if is_set and not named.isdisjoint(each.subjects) and not looks_up(step, call):
            return True
    return False


def _is_small(each: _OddOne) -> bool:
    """A number that counts many things."""
    return number_or_name(each.usual) in _COUNTS


_COUNTS = frozenset(map(float, range(100)))


def _is_set_right(run: Run, each: _OddOne) -> bool:
    """A later answer about it has the usual value."""
    later = ((call, _text(call)) for step, call in own_tools(run) if step.index > each.step.index)
    return any(
        is_stated(each.usual, text) and any(is_stated(name, text) or name in _named_in(call) for name in each.subjects)
        for call, text in later
    )


def _named_in(call: ToolCall) -> set[str]:
    return {str(item) for item in plain_values(object_of(call.arguments)).values()}


def _is_wanted_of_all(run: Run, each: _OddOne) -> bool:
    """The question names the usual value, and the answer states it of all."""
    usual = number_or_name(each.usual)
    if _is_small(each) or not _has_digit(each.usual) or not is_stated(usual, question_of(run)):
        return False
    stating = [plain(sentence) for sentence in statements(run) if is_stated(usual, sentence)]
    return any(_ALL.search(sentence) or each.calls in figures_in(sentence) for sentence in stating)
