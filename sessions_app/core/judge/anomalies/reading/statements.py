"""What an answer states: its sentences, or the objects of a structured one, and the values in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.embedded_json import parsed
from sessions_app.core.judge.anomalies.reading.answer_words import ANSWER, SENTENCE, answer_of
from sessions_app.core.judge.anomalies.reading.vocabulary import NUMBER_WORDS
from sessions_app.core.judge.reading import is_number, value_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run
from sessions_app.core.shared_values import once_each


@once_each
def statements(run: Run) -> list[str]:
    """The sentences and lines of an answer; of JSON one line for each object."""
    value = _structured(run)
    return [each for each in (SENTENCE.split(answer_of(run)) if value is None else _lines(value)) if each]


def _structured(run: Run) -> JsonValue:
    """A structured answer, also where it came as text."""
    value = parsed(value_of(run.output))
    return value if isinstance(value, dict | list) else None


def _lines(value: JsonValue) -> list[str]:
    waiting, lines, room = [value], list[str](), ANSWER
    while waiting and room > 0:
        item = waiting.pop()
        said = item.items() if isinstance(item, dict) else enumerate(item) if isinstance(item, list) else ()
        waiting.extend(each for _, each in said if isinstance(each, dict | list))
        lines.append(", ".join(f"{key}: {each}" for key, each in said if not isinstance(each, dict | list)))
        room -= len(lines[-1])
    return lines


_FIGURE = re.compile(r"(?<![\w.,-])(?<!\d:)\d[\d.,'\u2019\u00a0\u202f]*+(?!:\d)", re.ASCII)
"""No part of a name, of a date or of a time."""


@once_each
def figures_in(text: str) -> frozenset[float]:
    """Every number of a text, in each way that it may be read: `1.250` is 1.25 or 1250."""
    return frozenset(number for found in _FIGURE.findall(text) for number in _readings(found))


def _readings(found: str) -> Iterator[float]:
    spelled = re.sub(r"['\u2019\u00a0\u202f]", "", found).rstrip(".,")
    marks = re.findall(r"[.,]", spelled)
    if len(set(marks)) == 2:
        whole, part = spelled.rsplit(marks[-1], 1)
        spelled = f"{whole.replace(marks[0], '')}.{part}"
    elif len(marks) == 1:
        yield from (float(spelled.replace(marks[0], "")),) if re.search(r"[.,]\d{3}$", spelled) else ()
        spelled = spelled.replace(",", ".")
    elif re.fullmatch(r"\d{1,3}(?:[.,]\d{3})+", spelled):
        spelled = spelled.replace(marks[0], "")
    yield from (float(spelled),) if re.fullmatch(r"\d+(?:\.\d+)?", spelled) else ()


_SPELLED_OUT = {word: float(n) for line in NUMBER_WORDS for n, word in enumerate(line.split(), start=2)}


@once_each
def counts_in(text: str) -> frozenset[float]:
    """The figures of a text, and the numbers up to 16 that it spells out."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return figures_in(text) | {_SPELLED_OUT[word] for word in words if word in _SPELLED_OUT}


def is_stated(value: JsonValue, text: str) -> bool:
    """Whether a text has a number in any spelling, or a name as a word of its own, in any script around it."""
    if is_number(value):
        return float(value) in figures_in(text)
    name = str(value).lower()
    alone = rf"(?<![\w-]){re.escape(name)}(?!\w|[.-]\w)"
    return name in text.lower() and re.search(alone, text, re.ASCII | re.IGNORECASE) is not None


def number_or_name(spelled: str) -> JsonValue:
    return float(spelled) if re.fullmatch(r"\d+(?:\.\d+)?", spelled, re.ASCII) else spelled


def plain_values(arguments: JsonObject) -> dict[str, JsonValue]:
    """The texts and numbers that a call names itself, by their keys."""
    return {
        key: item
        for key, item in arguments.items()
        if item != "" and (isinstance(item, str) or is_number(item)) and len(str(item)) <= _NAME
    }


_NAME = 200
"""Characters; what is longer is a document."""
