"""Lists and texts of which only a part was read, and answers that speak of all of it, or deny something of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SENTENCE,
    answer_of,
    is_named,
    owns_up,
    plain,
    question_of,
    says_all,
)
from sessions_app.core.judge.anomalies.reading.denials import denials_in, is_denied
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import counts_in, statements
from sessions_app.core.judge.anomalies.reading.told_parts import part_in_words
from sessions_app.core.judge.reading import has_answer, is_number, leaves, object_of, own_tools, text_of, value_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


def unread_pages(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool said that there is more, nobody asked for it, and the answer speaks of all, or says that there is none."""
    is_told = has_answer(run) and not owns_up(run.output)
    of_all, denials = (_of_all(run), denials_in(run)) if is_told else ("", [])
    for step, call, said, total in _left_unread(run) if is_told else ():
        if _speaks_of(of_all, call) and not (total and is_named(str(total), of_all)):
            claim = "treats it as complete"
        elif (read := _read_as_all(run, step, said, total)) is not None:
            claim = f"gives {read}"
        elif not _PLACES.isdisjoint(map(str.lower, object_of(call.arguments))) or not is_denied(
            run, denials, step, call
        ):
            continue
        else:
            claim = "says that there is none"
        message = f"{step.name} returned {said}; the rest was not read, but the answer {claim}"
        yield Anomaly(code="page_unread", message=message, steps=(step.index,))


def _read_as_all(run: Run, step: Step, said: str, total: int | None) -> str | None:
    """The number of what was read, where the answer has it and not that of all, and nobody had asked for so many."""
    found = re.match(rf"(\d+) of {total}$", said) if total else None
    if found is None or int(found[1]) < _FEW:
        return None
    read, whole = float(found[1]), float(total or 0)
    known = counts_in(f"{question_of(run)}\n{run.instructions or ''}")
    is_claimed = any(read in said and of_all for said, of_all in _counts(run))
    is_told = any(whole in said for said, _ in _counts(run))
    is_of_others = bool(_tools_by_number(run).get(read, set()) - {step.name})
    return found[1] if is_claimed and not is_told and read not in known and not is_of_others else None


_FEW = 5


@once_each
def _counts(run: Run) -> list[tuple[frozenset[float], bool]]:
    """The numbers of each sentence, and whether it speaks of no choice."""
    return [(counts_in(each), _SOME.search(plain(each)) is None) for each in statements(run)]


@once_each
def _tools_by_number(run: Run) -> dict[float, set[str]]:
    """Who gave a number, of which the answer may speak."""
    found: dict[float, set[str]] = defaultdict(set)
    for step, call in own_tools(run):
        for item in (item for _, item in leaves(value_of(call.result)) if is_number(item)):
            found[float(item)].add(step.name)
    return found


_SOME = re.compile(
    r"(?<!\w)(?:first|top|latest|newest|last|recent|pages?|more|at least|some|sample|up to|truncat\w*|only"
    r"|out of)(?!\w)"
)


def _of_all(run: Run) -> str:
    """The sentences that speak of all of something, and not of a choice."""
    answer = plain(answer_of(run))
    found = (each for each in SENTENCE.split(answer) if says_all(each) and not _SOME.search(each))
    return "\n".join(found)


def _speaks_of(sentences: str, call: ToolCall) -> bool:
    """By the name of the list, or of the tool."""
    names = [key for key, item in object_of(call.result).items() if isinstance(item, list)]
    words = {word for name in [*names, call.tool_name] for word in re.findall(r"[a-z]{4,}", name.lower())}
    stems = (word[:-1] if word.endswith("s") else word for word in words - _NO_NAMES)
    return any(re.search(rf"(?<!\w){stem}", sentences) for stem in stems)


_NO_NAMES = frozenset({"items", "results", "data", "rows", "list", "find", "search", "fetch", "read", "query", "show"})

_PLACES = frozenset(
    {"page", "page_number", "page_token", "pagetoken", "page_size", "pagesize", "per_page", "cursor", "next_cursor"}
    | {"offset", "start", "skip", "after", "starting_after", "limit"}
    | {"line", "lines", "head", "tail", "start_line", "end_line", "max_lines", "max_results", "range", "first", "last"}
)
"""Arguments that say which part of a list is asked for."""


def _left_unread(run: Run) -> Iterator[tuple[Step, ToolCall, str, int | None]]:
    """Of each list or text that was read the last call, where it did not come to the end: what it gave, and of how
    many."""
    lists: dict[tuple[str, str], list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        if looks_up(step, call) and (_rows(object_of(call.result)) or text_of(call.result)):
            asked = {key: item for key, item in object_of(call.arguments).items() if key.lower() not in _PLACES}
            lists[call.tool_name, str(sorted(asked.items(), key=str))].append((step, call))
    for calls in lists.values():
        told, given = object_of(calls[-1][1].result), sum(_rows(object_of(call.result)) for _, call in calls)
        total = _total(told)
        if (part := part_in_words(text_of(calls[-1][1].result) or "")) is not None:
            yield *calls[-1], part, None
        elif _has_more(told, given, total):
            more = total if total and total > given else None
            yield *calls[-1], f"{given} of {more}" if more else f"{given} and said that there is more", more


def _rows(told: JsonObject) -> int:
    """Of the one list of an answer."""
    lists = [item for item in told.values() if isinstance(item, list)]
    return len(lists[0]) if len(lists) == 1 else 0


_MORE = ("has_more", "hasmore", "has_next", "has_next_page", "hasnextpage", "truncated", "is_truncated", "istruncated")
_NEXT = ("next_cursor", "nextcursor", "next_page_token", "nextpagetoken", "next_page", "next")
_TOTALS = ("total_count", "totalcount", "total_results", "totalresults", "total_items", "totalitems", "total")


def _has_more(told: JsonObject, given: int, total: int | None) -> bool:
    """As the answer says; a total by itself only beside the number of the page, as it may be a sum of money."""
    said = {key.lower(): item for key, item in told.items()}
    if any(isinstance(said.get(key), bool) for key in _MORE):
        return any(said.get(key) is True for key in _MORE)
    if any(key in said for key in _NEXT):
        return any(isinstance(item := said.get(key), str | int) and item not in ("", 0) for key in _NEXT)
    return total is not None and total > given and not _PLACES.isdisjoint(said)


def _total(told: JsonObject) -> int | None:
    said = {key.lower(): item for key, item in told.items()}
    return next((item for key in _TOTALS if _is_whole(item := said.get(key))), None)


def _is_whole(item: JsonValue) -> bool:
    return isinstance(item, int) and not isinstance(item, bool)
