"""Calls that found nothing: made again, or spoken of as if something had been found."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Level, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    SENTENCE,
    answer_of,
    is_named,
    owns_up,
    owns_up_in,
    says_all,
)
from sessions_app.core.judge.anomalies.reading.languages import is_in_english
from sessions_app.core.judge.anomalies.reading.statements import counts_in, is_stated, plain_values, statements
from sessions_app.core.judge.anomalies.reading.waits import waited_between
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import (
    argument_key,
    ended_in_error,
    first_requests,
    has_answer,
    join_words,
    leaves,
    object_of,
    own_tools,
    seen_messages,
    text_of,
    value_of,
)
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import AgentCall, ModelCall, OtherCall, Retrieval, Run, Step, ToolCall

Made = list[tuple[Step, ToolCall]]

COUNT_KEYS = frozenset({"count", "total", "total_count", "hits", "matches"})


def empty_result_retried(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Not where the run waited before it looked again, or found something in the end."""
    same: dict[tuple[str, bytes], list[tuple[Step, ToolCall]]] = defaultdict(list)
    for step, call in own_tools(run):
        same[call.tool_name, argument_key(call)].append((step, call))
    for (name, _), calls in same.items():
        retried = [pair for pair in pairwise(calls) if is_empty_answer(pair[0][1])]
        if retried and not _found_something(*calls[-1]) and not waited_between(run, [step.index for step, _ in calls]):
            steps = dict.fromkeys(step.index for pair in retried for step, _ in pair)
            message = f"Empty result retried: {name}"
            yield Anomaly(code="empty_result_retried", message=message, steps=tuple(steps))


def _found_something(step: Step, call: ToolCall) -> bool:
    return call.result is not None and not is_empty_answer(call) and not ended_in_error(step)


def is_empty_answer(call: ToolCall) -> bool:
    return call.result is not None and is_empty(value_of(call.result))


def is_empty(value: JsonValue) -> bool:
    """Nothing was found: null, no text, no items, or empty lists and counts of 0."""
    if isinstance(value, str):
        return value.strip() in ("", "null")
    if not isinstance(value, dict):
        return value is None or value == []
    lists = [item for item in value.values() if isinstance(item, list | dict)]
    numbers = [item for item in value.values() if isinstance(item, int | float)]
    has_place = bool(lists) or not value or not COUNT_KEYS.isdisjoint(value)
    return has_place and not any(lists) and not any(n for n in numbers if n is not True)


def empty_results_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Nothing was found, and the answer speaks of it as if something had been."""
    if not has_answer(run):
        return
    empty = {step.index for step, call in own_tools(run) if is_empty_answer(call)}
    for step, name in named_though_not_found(run, empty):
        message = f"{step.name} found nothing, but the answer mentions {name} without saying so"
        yield Anomaly(code="empty_result_unsaid", message=message, steps=(step.index,))


def one_empty_among_many(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool told something each time but once, and that call was not made again. A note where the answer does not
    speak of all of them, or of this one."""
    if not has_answer(run):
        return
    for step, call, calls in _only_empty_ones(run):
        names = _own_names(call, calls)
        naming = [each for each in statements(run) if any(is_stated(name, each) for name in names)]
        if any(SAYS_NOTHING.search(each.lower()) or owns_up_in(each.lower()) for each in naming):
            continue
        counts = {count for each in statements(run) for count in counts_in(each)}
        is_counted = len(calls) in counts and len(calls) - 1 not in counts
        is_named = any(len(str(name)) > 1 for name in names) and bool(naming)
        level: Level = "warning" if is_counted or is_named or _speaks_of_all(run, call) else "info"
        named = f" for {names[0]}" if names else ""
        message = f"{step.name} answered nothing{named}, unlike the other {len(calls) - 1} calls"
        message += "; the answer does not say so"
        yield Anomaly(code="empty_result_unsaid", message=message, steps=(step.index,), level=level)


_MANY = 4


def _speaks_of_all(run: Run, call: ToolCall) -> bool:
    about = stems_in(call.tool_name.replace("_", " "), *object_of(call.arguments))
    found = (stems_in(sentence) for sentence in statements(run) if says_all(sentence))
    return any(not is_in_english(run) or not about.isdisjoint(stems) for stems in found)


def _only_empty_ones(run: Run) -> Iterator[tuple[Step, ToolCall, Made]]:
    """Of texts and records, as a list may well be empty; not of commands, whose arguments are not alike."""
    made: dict[str, dict[bytes, tuple[Step, ToolCall]]] = defaultdict(dict)
    for step, call in own_tools(run):
        made[call.tool_name][argument_key(call)] = step, call
    for calls in (list(each.values()) for each in made.values() if len(each) >= _MANY):
        blank = [pair for pair in calls if _is_blank(pair[1]) and not ended_in_error(pair[0])]
        if len(blank) != 1 or any(call.result is None or _lists(call) for _, call in calls):
            continue
        forms = Counter(_form(call) for _, call in calls)
        if 2 * forms[_form(blank[0][1])] > len(calls):
            yield *blank[0], calls


def _is_blank(call: ToolCall) -> bool:
    """No text, or a record whose texts are all empty but for those of the call."""
    told, asked = value_of(call.result), {str(item) for _, item in leaves(value_of(call.arguments))}
    if isinstance(told, dict):
        return not any(item not in (None, "") and str(item) not in asked for item in told.values())
    return told is None or (isinstance(told, str) and not told.strip())


def _lists(call: ToolCall) -> bool:
    told = value_of(call.result)
    return isinstance(told, list) or any(isinstance(item, list) for item in object_of(call.result).values())


def _form(call: ToolCall) -> str:
    """Of its arguments: `clause 4` is like `clause 12`; behind a number such as `K-88-4` may stand any title."""
    named = plain_values(object_of(call.arguments))
    forms = {key: _LETTERS.sub("a", _DIGIT.sub("0", str(item))) for key, item in named.items()}
    return " ".join(f"{key} {_TITLE.sub('', forms[key])}" for key in sorted(forms))


_LETTERS, _DIGIT = re.compile(r"[^\W\d_]+"), re.compile(r"[0-9]+")
_TITLE = re.compile(r"(?<=\d)\s.*", re.DOTALL)


def _own_names(call: ToolCall, calls: Made) -> list[JsonValue]:
    """Values that no other of them has, and the title behind a number."""
    own = [item for item in plain_values(object_of(call.arguments)).values() if item not in _shared(calls)]
    titles = (re.sub(r"^\S*\d\s+", "", item) for item in own if isinstance(item, str))
    return [*own, *(title for title in titles if len(title) > 2 and title not in own)]


def _shared(calls: Made) -> set[JsonValue]:
    """Values that more than one of them has."""
    often = Counter(item for _, call in calls for item in plain_values(object_of(call.arguments)).values())
    return {item for item, times in often.items() if times > 1}


_NAMED = 50
"""Steps that speak of what was not found; each is looked for in all that tools told."""


def named_though_not_found(run: Run, is_empty: set[int]) -> Iterator[tuple[Step, str]]:
    """Steps whose call found nothing, with the number or id that it asked for and the answer speaks of. What another
    tool told of it, or an answer that says that there is nothing, is in order; so is a tool that answers nobody."""
    answer = answer_of(run)
    if SAYS_NOTHING.search(answer.lower()):
        return
    listings = ((step, call) for step, call in own_tools(run) if step.index in is_empty and _is_listing(call))
    found = ((step, name) for step, call in listings if (name := _name_in(answer, call)) is not None)
    asked = list(islice(found, _NAMED))
    named = {name for _, name in asked}
    told = [call.result.as_text() for _, call in own_tools(run) if call.result is not None] if named else []
    untold = {name for name in named if not any(name in text for text in told)}
    yield from ((step, name) for step, name in asked if name in untold)


def _is_listing(call: ToolCall) -> bool:
    return isinstance(value_of(call.result), list | dict)


def _name_in(answer: str, call: ToolCall) -> str | None:
    words = {str(item) for _, item in leaves(value_of(call.arguments)) if re.search(r"\d{2}", str(item))}
    return next((word for word in sorted(words) if is_named(word, answer)), None)


def answers_without_a_source(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A search of documents found nothing, and the answer states what only they could tell. A note where what it says
    may stand in the instructions, or be common knowledge."""
    searches = [(step, call) for step, call in own_tools(run) if is_search(call) and is_empty_answer(call)]
    if not searches or not has_answer(run) or owns_up(run.output):
        return
    stated = numbers_without_a_source(run, searches)
    for query, (steps, number) in stated.items():
        name = run.steps[steps[0] - 1].name
        message = f"{name} found nothing for {query[:60]}; the {number} in the answer has no source"
        yield Anomaly(code="no_source", message=message, steps=tuple(steps))
    if stated or _has_other_source(run):
        return
    rules_of_it = states_a_rule(run) and any(_is_only_in_documents(run, words_asked(call)) for _, call in searches)
    if rules_of_it or affirms(run):
        names = join_words(list(dict.fromkeys(step.name for step, _ in searches)))
        message = f"{names} found nothing; the answer has no source"
        level: Level = "warning" if rules_of_it else "info"
        yield Anomaly(code="no_source", message=message, steps=tuple(step.index for step, _ in searches), level=level)


_QUERY_KEYS = frozenset({"query", "q", "question", "search", "search_query", "keywords", "terms"})


def words_asked(call: ToolCall) -> str:
    """What a search of documents looked for, in words."""
    asked = value_of(call.arguments)
    said = asked.items() if isinstance(asked, dict) else ()
    return next((item for key, item in said if key.lower() in _QUERY_KEYS and isinstance(item, str)), "")


def numbers_without_a_source(run: Run, searches: Made) -> dict[str, tuple[list[int], str]]:
    """By the words of a search: its steps, and the number that the answer states of them though nothing told it."""
    queries: dict[str, list[int]] = defaultdict(list)
    for step, call in searches:
        queries[words_asked(call)].append(step.index)
    answer = answer_of(run)
    told = _numbers_told(run) if any(queries) and _NUMBER.search(answer) else None
    if told is None:
        return {}
    sentences = [(sentence, _unknown_number(sentence, told)) for sentence in SENTENCE.split(answer)]
    stated = [(_stems(sentence), number) for sentence, number in sentences if number is not None]
    found = {query: next((number for stems, number in stated if _is_about(query, stems)), None) for query in queries}
    doubted = islice(((query, number) for query, number in found.items() if number is not None), _NAMED)
    return {query: (queries[query], number) for query, number in doubted if not _is_told_later(run, query, queries)}


def _is_told_later(run: Run, query: str, queries: dict[str, list[int]]) -> bool:
    """Whether a call behind the search gave something of what it looked for: the number may be made of that."""
    later = (each for each in own_tools(run) if each[0].index > queries[query][-1] and not is_empty_answer(each[1]))
    return any(_is_about(query, _stems(_told_by(step))) for step, _ in later)


_NUMBER = re.compile(r"(?<![\w.,-])\d+(?:[.,]\d+)*(?!\w)")


def _unknown_number(sentence: str, told: set[str]) -> str | None:
    numbers = () if SAYS_NOTHING.search(sentence.lower()) or sentence.endswith("?") else _NUMBER.findall(sentence)
    return next((number for number in numbers if _spelled(number) not in told), None)


def _numbers_told(run: Run) -> set[str] | None:
    """All digits that were recorded; None where something may have told of others: what came was not captured."""
    if any(call.result is None and not step.error for step, call in own_tools(run)):
        return None
    texts = [text_of(run.input) or "", run.instructions or "", *(_told_by(step) for step in run.steps)]
    given = (seen for seen in seen_messages(run) if not seen.is_answer and seen.step <= len(run.steps))
    texts += [str([part.get("content") for part in seen.parts] or seen.message) for seen in given]
    return {_spelled(number) for text in texts for number in _DIGITS.findall(text)}


_DIGITS = re.compile(r"\d+(?:[.,]\d+)*")


def _told_by(step: Step) -> str:
    match step.call:
        case ToolCall(arguments=arguments, result=result) | AgentCall(arguments=arguments, result=result):
            return " ".join(payload.as_text() for payload in (arguments, result) if payload is not None)
        case OtherCall(result=result):
            return "" if result is None else result.as_text()
        case Retrieval(chunks=chunks):
            return " ".join(chunk.content.as_text() for chunk in chunks or () if chunk.content is not None)
        case ModelCall():
            return ""


def _spelled(number: str) -> str:
    return re.sub(r"[.,]0+$", "", number).replace(",", "")


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"\w{4,}", text.lower())}


def _is_about(query: str, stems: set[str]) -> bool:
    """At least half of the words that were looked for."""
    asked = _stems(query)
    return bool(asked) and 2 * len(asked & stems) >= len(asked)


def _is_only_in_documents(run: Run, query: str) -> bool:
    return bool(query) and not _is_about(query, _stems(run.instructions or ""))


def states_a_rule(run: Run) -> bool:
    """ "Yes, …" to a question, or that something is never possible. That something is free needs no document."""
    answer = answer_of(run).lower()
    is_yes = _YES.match(answer) is not None and SAYS_NOTHING.search(answer) is None
    return (is_yes and _FREE.search(answer) is None) or _NEVER.search(answer) is not None


_YES = re.compile(r"\s*(?:yes|ja|oui|sí|sim|はい|是)(?!\w)")
_FREE = re.compile(r"(?<!\w)(?:free|available|unused|unique|clear)(?!\w)")
_NEVER = re.compile(
    r"(?<!\w)(?:is|are|'s|can|may) ?(?:never|not|n't) (?:be )?(?:possible|allowed|permitted|covered|included|refunded"
    r"|refundable|supported|accepted|eligible)(?!\w)"
)


def _has_other_source(run: Run) -> bool:
    """An earlier turn, another step that may have brought something, or an answer of a tool that is not empty or was
    not recorded."""
    others = any(not isinstance(step.call, ModelCall | ToolCall) for step in run.steps)
    earlier = run.prior is not None or any(seen.message.get("kind") == "response" for seen in first_requests(run))
    return others or earlier or not all(is_empty_answer(call) for _, call in own_tools(run))


_SEARCHES = re.compile(r"(?:^|_)(?:search|find|lookup|retrieve|query)|look_up|Search|Find|Lookup|Retrieve|Query")


def is_search(call: ToolCall) -> bool:
    return _is_listing(call) and _SEARCHES.search(call.tool_name) is not None


def affirms(run: Run) -> bool:
    """A statement with something in it that could be wrong: no denial, no question, no short word."""
    answer = answer_of(run)
    is_statement = len(answer.split()) > 3 and "?" not in answer
    return is_statement and not SAYS_NOTHING.search(answer.lower())
