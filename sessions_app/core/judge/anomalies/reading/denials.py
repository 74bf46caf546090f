"""Answers that say that there is none of something, and the calls that this is taken from."""

from __future__ import annotations

import re

from sessions_app.core.judge.anomalies.reading.answer_words import SENTENCE, answer_of, is_named, plain, question_of
from sessions_app.core.judge.reading import leaves, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

NONE_OF = re.compile(
    r"(?<!\w)(?:no|none of(?: the| its| these)?|(?:not|\w+n't) (?:\w+ ){0,2}any|kein\w*|aucune?|ning[uú]n\w*|nenhum\w*)"
    r" ((?:\w+ ?){1,3})"
)
_OF_A_PART = re.compile(
    r"(?<!\w)(?:first|parts?|partly|partial\w*|truncat\w*|excerpt|so far|beginning|shown|sample|up to|only|tail|head"
    r"|more)(?!\w)"
)


_MOST = 20
"""Sentences, as each is held against each call."""


@once_each
def denials_in(run: Run) -> list[str]:
    """The sentences of an answer that deny something; none where it says that it speaks of a part."""
    answer = plain(answer_of(run))
    sentences = [] if _OF_A_PART.search(answer) else SENTENCE.split(answer)
    return [sentence for sentence in sentences if NONE_OF.search(sentence)][:_MOST]


def is_denied(run: Run, denials: list[str], step: Step, call: ToolCall) -> bool:
    """Whether a sentence names what the call asked for, and denies what the call tells of, or what the question asks
    for. What was changed later was more than read, and what was read otherwise later may be known."""
    values = [value for value in _values(call) if not _goes_on(run, value, step, call)] if denials else []
    about = [each for each in denials if any(is_named(value.lower(), each) for value in values)]
    told = plain(call.result.as_text()[:_READ]) if about and call.result else ""
    asked = " ".join(_ANY.findall(plain(question_of(run)))) if about else ""
    return any(_tells_of(f"{told}\n{asked}", words) for sentence in about for words in NONE_OF.findall(sentence))


_READ = 20_000
_SHORT = 3
_ANY = re.compile(r"(?<!\w)any ((?:\w+ ?){1,2})")
_CHANGES = re.compile(r"edit|write|update|set|save|patch|replace|create|delete|insert|apply|move|rename", re.IGNORECASE)


def _tells_of(told: str, words: str) -> bool:
    return any(word[:-1] in told for word in words.split() if len(word) > _SHORT)


def _goes_on(run: Run, value: str, step: Step, call: ToolCall) -> bool:
    last = _last_uses(run)
    return any(last.get((value, word), 0) > step.index for word in (*_kind(call), _CHANGED))


_CHANGED = ""


def _kind(call: ToolCall) -> list[str]:
    """The words of the tool's name but for the first."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+", call.tool_name)[1:]]


def _values(call: ToolCall) -> set[str]:
    return {
        str(item) for _, item in leaves(value_of(call.arguments)) if not isinstance(item, bool) and item is not None
    }


@once_each
def _last_uses(run: Run) -> dict[tuple[str, str], int]:
    """The last step with a value and a kind of thing in the tool's name, and the last that changed something of it."""
    last: dict[tuple[str, str], int] = {}
    for step, call in own_tools(run):
        words = [*_kind(call), *((_CHANGED,) if _CHANGES.search(call.tool_name) else ())]
        last |= {(value, word): step.index for value in _values(call) for word in words}
    return last
