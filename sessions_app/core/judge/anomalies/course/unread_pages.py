"""Lists and texts of which only a part was read, and answers that speak of all of it, or deny something of it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeGuard

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.fallbacks import acts
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
from sessions_app.core.judge.anomalies.reading.languages import answers_in_a_known_language
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import counts_in, statements
from sessions_app.core.judge.anomalies.reading.told_parts import part_in_words
from sessions_app.core.judge.reading import (
    as_object,
    has_answer,
    is_number,
    leaves,
    object_of,
    objects_in,
    own_tools,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """What was read of a list or a text that has more."""

    step: Step
    call: ToolCall
    words: str
    given: int = 0
    total: int | None = None
    is_sure: bool = True
    """Said in so many words, and not by a greater number beside the list alone."""


def unread_pages(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool said that there is more, nobody asked for it, and the answer speaks of all, or says that there is none."""
    is_told = has_answer(run) and not owns_up(run.output)
    for part in _left_unread(run) if is_told else ():
        claim = _claim(run, part)
        if claim is not None:
            message = f"{part.step.name} returned {part.words}; the rest was not read, but the answer {claim}"
            yield Anomaly(code="page_unread", message=message, steps=(part.step.index,))


def _claim(run: Run, part: _Part) -> str | None:
    """A number needs no words; without that of all it may be said to be one of some."""
    of_all, is_read = _of_all(run), answers_in_a_known_language(run)
    if part.is_sure and _speaks_of(of_all, part.call) and not (part.total and is_named(str(part.total), of_all)):
        return "treats it as complete"
    if (is_read or part.total) and _is_read_as_all(run, part):
        return f"gives {part.given}"
    asks_for_part = not _PLACES.isdisjoint(map(str.lower, object_of(part.call.arguments)))
    if asks_for_part or not part.is_sure or not is_denied(run, denials_in(run), part.step, part.call):
        return None
    return "says that there is none"


def _is_read_as_all(run: Run, part: _Part) -> bool:
    """Whether the answer has the number of what was read and not that of all, and nobody had asked for so many."""
    if part.given < _FEW:
        return False
    read, whole = float(part.given), float(part.total or 0)
    known = counts_in(f"{question_of(run)}\n{run.instructions or ''}")
    is_claimed = any(read in said and of_all for said, of_all in _counts(run))
    is_told = any(whole in said for said, _ in _counts(run))
    is_of_others = bool(_tools_by_number(run).get(read, set()) - {part.step.name})
    return is_claimed and not is_told and read not in known and not is_of_others


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
    r"(?<!\w)(?:first|top|latest|newest|last|recent|pages?|more|at least|some|sample|up to|truncat\w*|only|out of"
    r"|erste[nrs]?|neueste[nrs]?|letzte[nrs]?|premi[eè]r\w*|derni[eè]r\w*|primer\w*|primeir\w*|[uú]ltim\w*|prim[ie]"
    r"|najnowsz\w*|pierwsz\w*|ostatni\w*|eerste|nieuwste|laatste)(?!\w)|最新|最近|直近"
)


@once_each
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


def _left_unread(run: Run) -> Iterator[_Part]:
    """Of each list or text that was read the last call, where it did not come to the end."""
    lists: dict[tuple[str, str], list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        is_read = looks_up(step, call) or (_rows(object_of(call.result)) and not acts(step, call))
        if is_read and (_rows(object_of(call.result)) or text_of(call.result)):
            lists[call.tool_name, _list_asked_for(run, call)].append((step, call))
    for calls in lists.values():
        step, call = calls[-1]
        given = sum(len(_rows(object_of(each.result))) for _, each in calls)
        words = part_in_words(text_of(call.result) or "")
        part = _Part(step=step, call=call, words=words) if words else _part(step, call, given)
        if part is not None:
            yield part


def _list_asked_for(run: Run, call: ToolCall) -> str:
    """The arguments but for those that say which part of it: by their name, as a token, or as they are counted up."""
    places, tokens = _counted_up(run).get(call.tool_name, frozenset()), _tokens_of(run).get(call.tool_name, frozenset())
    return str(
        sorted(
            (key, str(item))
            for key, item in object_of(call.arguments).items()
            if item not in ("", None) and key.lower() not in _PLACES and key not in places and str(item) not in tokens
        )
    )


@once_each
def _counted_up(run: Run) -> dict[str, frozenset[str]]:
    """By tool, arguments that go from 0, 1 or 2, or from one length of a page to the next, by the same each time."""
    numbers: dict[tuple[str, str], set[int]] = defaultdict(set)
    for _, call in own_tools(run):
        for key, item in object_of(call.arguments).items():
            if _is_whole(item):
                numbers[call.tool_name, key].add(item)
    found: dict[str, set[str]] = defaultdict(set)
    for (tool, key), each in numbers.items():
        steps = {then - first for first, then in pairwise(sorted(each))} or {min(each)}
        if len(steps) == 1 and min(each) in (0, 1, 2, *steps):
            found[tool].add(key)
    return {tool: frozenset(keys) for tool, keys in found.items()}


@once_each
def _tokens_of(run: Run) -> dict[str, frozenset[str]]:
    """By tool, what its answers gave as the place of the next page: by its key, or as they said that there is more, as
    something that the call was not made with."""
    found: dict[str, set[str]] = defaultdict(set)
    for _, call in own_tools(run):
        beside = _beside(object_of(call.result))
        asked = {str(item) for item in object_of(call.arguments).values()} if _has_more(beside) else None
        for key, item in beside.items():
            if isinstance(item, str) and (_NEXT.fullmatch(key) or (asked is not None and item not in asked)):
                found[call.tool_name].add(item)
    return {tool: frozenset(tokens) for tool, tokens in found.items()}


def _part(step: Step, call: ToolCall, given: int) -> _Part | None:
    told = object_of(call.result)
    beside, rows = _beside(told), _rows(told)
    total = _total(beside, len(rows), given)
    has_more = _has_more(beside)
    if has_more is False or (has_more is None and (total is None or _adds_up_to(rows, total))):
        return None
    words = f"{given} of {total}" if total else f"{given} and said that there is more"
    is_sure = has_more is True or not _PLACES.isdisjoint(beside)
    return _Part(step=step, call=call, words=words, given=given, total=total, is_sure=is_sure)


def _rows(told: JsonObject) -> list[JsonValue]:
    """Of the one list of an answer."""
    lists = [item for item in told.values() if isinstance(item, list)]
    return lists[0] if len(lists) == 1 else []


def _beside(told: JsonObject) -> JsonObject:
    """What stands beside a list, by itself or in an object such as `meta`."""
    inner = {key: item for each in told.values() for key, item in as_object(each).items()}
    return {key.lower(): item for key, item in (inner | told).items() if not isinstance(item, list | dict)}


_MORE = ("has_more", "hasmore", "has_next", "has_next_page", "hasnextpage", "truncated", "is_truncated", "istruncated")
_NEXT = re.compile(
    r"(?:@odata\.)?(?:next|nast[eę]pn\w{1,2}|suivante?|siguiente|pr[oó]xim[oa]|prossim[oa]|weiter|nächste[rs]?"
    r"|naechste[rs]?|volgende|nästa|næste|neste|次|下一)(?:[_ -]?(?:page|cursor|token|link|url|k?c?urs[oe]u?r|strona"
    r"|seite|página|pagina|side|sida|ページ|页)){0,2}"
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TOTALS = ("total_count", "totalcount", "total_results", "totalresults", "total_items", "totalitems", "total")
_PAGES = ("pages", "total_pages", "totalpages", "page_count", "pagecount", "last_page")


def _has_more(beside: JsonObject) -> bool | None:
    """As the answer says; None where it does not."""
    if any(isinstance(beside.get(key), bool) for key in _MORE):
        return any(beside.get(key) is True for key in _MORE)
    tokens = [item for key, item in beside.items() if _NEXT.fullmatch(key)]
    if tokens:
        return any(_is_token(item) for item in tokens)
    page, last = beside.get("page"), next((item for key in _PAGES if _is_whole(item := beside.get(key))), None)
    return page < last if _is_whole(page) and _is_whole(last) else None


def _is_token(item: JsonValue) -> bool:
    return isinstance(item, str | int) and item not in ("", 0, False) and not _DAY.match(str(item))


def _total(beside: JsonObject, rows: int, given: int) -> int | None:
    """A greater number than what was given: by its name, or the only one beside the number of the rows."""
    named = next((item for key in _TOTALS if _is_whole(item := beside.get(key))), None)
    if named is not None:
        return named if named > given else None
    numbers = [item for item in beside.values() if _is_whole(item)]
    greater = [item for item in numbers if item > given]
    return greater[0] if len(greater) == 1 and rows in numbers else None


def _is_whole(item: JsonValue) -> TypeGuard[int]:
    return isinstance(item, int) and not isinstance(item, bool)


def _adds_up_to(rows: list[JsonValue], total: int) -> bool:
    """Whether the total may be one of money, with a discount or a tax, or in cents."""
    sums: dict[str, float] = defaultdict(float)
    for row in objects_in(rows):
        for key, item in row.items():
            sums[key] += item if is_number(item) else 0
    wholes = (total, total / 100)
    return any(each <= 2 * whole and whole <= 2 * each for each in sums.values() for whole in wholes)
