"""Calls that failed and of which the answer tells: which one, and why or apart from those that went well."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from itertools import islice, pairwise

from sessions_app.core.judge.anomalies.reading.answer_words import SAYS_NOTHING, answer_of, plain, question_of
from sessions_app.core.judge.anomalies.reading.languages import is_in_english
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import ended_in_error, object_of, own_tools, status_code
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_MOST = 50
"""Calls of one tool that a sentence is held against."""


def is_told(run: Run, step: Step, call: ToolCall, reason: str, *, owned_up: list[str], is_alone: bool) -> bool:
    """A sentence that names the call denies something or says why, as one that has a word of its tool alone; or the
    answer names it apart from those that went well, or gives the status; or a sentence that owns up to something is
    about it. Where it speaks another language than the tools, that is taken for granted of the only failure."""
    naming = [sentence for sentence in statements(run) if _names(run, step, call, sentence)]
    is_named = any(_denies(sentence) or _gives_reason(run, call, sentence, reason) for sentence in naming)
    if is_named or is_set_apart(run, step, call) or _gives_status(run, step, reason):
        return True
    why, own = stems_in(reason), _own_words(run).get(call.tool_name, frozenset())
    if any(own & said and (why - own) & said for said in _stems_of_statements(run)):
        return True
    if any(_repeats_reason(run, call, sentence, reason) for sentence in statements(run)):
        return True
    about = stems_in(_apart(call.tool_name), _asked(call)) | why
    is_foreign = is_alone and not is_in_english(run)
    return any(is_foreign or not about.isdisjoint(stems_in(sentence)) for sentence in owned_up)


@once_each
def _stems_of_statements(run: Run) -> list[set[str]]:
    return [stems_in(sentence) for sentence in statements(run)]


@once_each
def _own_words(run: Run) -> dict[str, frozenset[str]]:
    """By tool, the words of its name that no other of its kind has: what is left of `search_skyfind`."""
    words = {tool: stems_in(_apart(tool)) for tool in _calls_of(run)}
    often = Counter(stem for stems in words.values() for stem in stems)
    own = {tool: frozenset(stem for stem in stems if often[stem] == 1) for tool, stems in words.items()}
    return {tool: stems for tool, stems in own.items() if len(stems) < len(words[tool])}


def _denies(sentence: str) -> bool:
    return SAYS_NOTHING.search(plain(sentence)) is not None


def _apart(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def _asked(call: ToolCall) -> str:
    return "" if call.arguments is None else call.arguments.as_text()[:_READ]


_READ = 2_000


def _gives_status(run: Run, step: Step, reason: str) -> bool:
    """Or what the error says, or how many of a batch failed."""
    said, status = plain(answer_of(run)), status_code(step)
    numbers = [str(status)] if status is not None else re.findall(r"^\d+(?= )", reason)
    is_quoted = bool(reason.strip()) and plain(reason).strip() in said
    return is_quoted or any(re.search(rf"(?<![\d.,]){each}(?![\d.,]*\d)", said) for each in numbers)


def _gives_reason(run: Run, call: ToolCall, sentence: str, reason: str) -> bool:
    """At least two of the words of an error, or its only one; those of the call and of the question say nothing."""
    words = stems_in(reason) - stems_in(_apart(call.tool_name), _asked(call), question_of(run))
    return bool(words) and len(words & stems_in(sentence)) >= min(2, len(words))


def _repeats_reason(run: Run, call: ToolCall, sentence: str, reason: str) -> bool:
    """Two of the words of an error in a row, or one and that another source was taken."""
    known = stems_in(_apart(call.tool_name), _asked(call), question_of(run))
    pairs = {pair for pair in _pairs_in(reason) if known.isdisjoint(pair)}
    if not pairs.isdisjoint(_pairs_in(sentence)):
        return True
    return _BACKUP.search(plain(sentence)) is not None and not (stems_in(reason) - known).isdisjoint(stems_in(sentence))


def _pairs_in(text: str) -> set[tuple[str, str]]:
    """Words that stand side by side, as `under maintenance`."""
    return set(pairwise(word[:_STEM] for word in re.findall(r"[^\W\d_]{4,}", plain(text))))


_STEM = 5
_BACKUP = re.compile(
    r"(?<!\w)(?:back-?up|fallback|fell back|(?:second(?:ary)?|other|alternative) source|ersatz\w*|ausweich\w*|secours"
    r"|respaldo|reserva|riserva|zapasow\w*)(?!\w)|备用|備用|予備|代替"
)


def is_set_apart(run: Run, step: Step, call: ToolCall) -> bool:
    """Whether the answer names it in sentences that name none of two or more calls of its tool that went well, and
    that say something else than those which name one of them."""
    apart = _of_none_that_went_well(run).get(call.tool_name, [])
    naming = [at for at, sentence in enumerate(statements(run)) if _names(run, step, call, sentence)]
    if not apart or not naming or len(_went_well(run, step, call)) < 2 or not all(apart[at] for at in naming):
        return False
    shapes = {_shape(sentence) for sentence, is_apart in zip(statements(run), apart, strict=True) if not is_apart}
    return any(_shape(statements(run)[at]) not in shapes for at in naming)


def _shape(sentence: str) -> str:
    """Without its values, which are mostly those that have a digit."""
    return " ".join(re.sub(r"[\w.-]*\d[\w.,-]*", "", sentence).split())


@once_each
def _of_none_that_went_well(run: Run) -> dict[str, list[bool]]:
    """By tool, whether each sentence names none of its calls that went well."""
    return {
        tool: [not any(_names(run, *pair, sentence) for pair in pairs) for sentence in statements(run)]
        for tool, pairs in _first_that_went_well(run).items()
        if len(pairs) < len(_calls_of(run)[tool])
    }


def _went_well(run: Run, step: Step, call: ToolCall) -> list[tuple[Step, ToolCall]]:
    return [pair for pair in _first_that_went_well(run).get(call.tool_name, []) if pair[0] is not step]


@once_each
def _first_that_went_well(run: Run) -> dict[str, list[tuple[Step, ToolCall]]]:
    return {
        tool: list(islice((pair for pair in pairs if not ended_in_error(pair[0])), _MOST))
        for tool, pairs in _calls_of(run).items()
    }


def _names(run: Run, step: Step, call: ToolCall, sentence: str) -> bool:
    return any(is_stated(name, sentence) for name in _own_names(run).get(step.index, ()))


@once_each
def _own_names(run: Run) -> dict[int, list[str]]:
    """By step, the values of a call that no call of its tool with other arguments has."""
    found: dict[int, list[str]] = {}
    for pairs in _calls_of(run).values():
        used: dict[str, set[str]] = defaultdict(set)
        named = {step.index: plain_values(object_of(call.arguments)) for step, call in pairs}
        for asked in named.values():
            for item in asked.values():
                used[str(item)].add(str(sorted(asked.items())))
        for at, asked in named.items():
            found[at] = [str(item) for item in asked.values() if len(str(item)) > 1 and len(used[str(item)]) == 1]
    return found


@once_each
def _calls_of(run: Run) -> dict[str, list[tuple[Step, ToolCall]]]:
    calls: dict[str, list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        calls[call.tool_name].append((step, call))
    return calls
