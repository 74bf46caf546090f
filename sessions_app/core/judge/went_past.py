"""What a tool told, and the run went past: a failure told as data, nothing found, another sum."""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterator
from itertools import islice

from sessions_app.core.judge.reading import first_requests, is_number, leaves, own_tools, text_of, value_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import ModelCall, Run, Step, ToolCall

FAILED_COUNTS = ("failed", "failures", "failed_count", "rejected", "errors", "error_count")
FAILED_STATES = frozenset({"error", "failed", "failure"})
SUM_KEYS = frozenset({"total", "amount", "sum", "grand_total", "subtotal", "price", "cost"})


# --- a failure that is told as data ------------------------------------------------------------


def told_failure(call: ToolCall) -> str | None:
    """What an answer without an error says of a failure, in its own words where it has any."""
    told = value_of(call.result)
    if not isinstance(told, dict):
        return None
    if _failed_whole(told):
        error = told.get("error")
        words = (error, *(error.values() if isinstance(error, dict) else ()), told.get("message"), told.get("reason"))
        return next((word for word in words if isinstance(word, str) and word), "")
    return next((f"{told[key]} {key.split('_')[0]}" for key in FAILED_COUNTS if _is_count(told.get(key))), None)


def _failed_whole(told: JsonObject) -> bool:
    state = told.get("status")
    return (
        told.get("ok") is False
        or told.get("success") is False
        or bool(told.get("error"))
        or (isinstance(state, str) and state.lower() in FAILED_STATES)
    )


def _is_count(value: JsonValue) -> bool:
    return is_number(value) and value > 0


# --- a refusal, and the answer speaks of success -------------------------------------------------


REFUSED_STATES = frozenset({"rejected", "declined", "denied", "refused"})
_DONE = re.compile(
    r"(?<!\w)(?:(?:was|were|is|are|been|i|we|i've|we've|i have|we have)(?: now| just| successfully| already)* "
    r"(?:\w{2,}ed|sent|paid|made|done|set|put|bought|sold|given)|done|success\w*|on (?:its|the) way)(?!\w)"
)
_READS = re.compile(
    r"(?:get|list|find|search|look_?up|read|fetch|check|query|show|describe|track|view)(?:_|[A-Z]|$)|\w*status$"
)


def refusals_unsaid(run: Run) -> Iterator[tuple[Step, str]]:
    """Steps of tools that do something and were refused, with the word for it. Not where the answer names the state or
    denies anything, and not where the same tool did it in the end; a tool that looks up tells of somebody else's
    refusal."""
    answer = (text_of(run.output) or "").lower()
    if not _DONE.search(answer) or _SAYS_NOTHING.search(answer):
        return
    refused: dict[str, list[tuple[Step, str]]] = {}
    for step, call in own_tools(run):
        state = _refusal(call)
        if state is not None and not _looks_up(step, call):
            refused.setdefault(call.tool_name, []).append((step, state))
        elif state is None:
            refused.pop(call.tool_name, None)
    yield from (pair for pairs in refused.values() for pair in pairs if pair[1][:5] not in answer)


def _refusal(call: ToolCall) -> str | None:
    told = value_of(call.result)
    state = told.get("status") if isinstance(told, dict) else None
    return state.lower() if isinstance(state, str) and state.lower() in REFUSED_STATES else None


def _looks_up(step: Step, call: ToolCall) -> bool:
    return step.extra.get("tool_kind") == "read" or _READS.match(call.tool_name) is not None


# --- nothing found, and the answer speaks of it ------------------------------------------------


_SAYS_NOTHING = re.compile(
    r"(?<!\w)(no|not|none|nothing|never|without|0|zero|empty|\w+n't|kein\w*|nicht\w*|aucun\w*|pas|rien|ning[uú]n\w*|nada"
    r"|não|nenhum\w*)(?!\w)|ありません|ない|見つかりません|没有|未找到|无"
)


_ANSWER = 20_000
"""Characters; longer ones are documents, and each name is looked for in all of it."""
_NAMED = 50
"""Steps that speak of what was not found; each is looked for in all that tools told."""


def named_though_not_found(run: Run, is_empty: set[int]) -> Iterator[tuple[Step, str]]:
    """Steps whose call found nothing, with the number or id that it asked for and the answer speaks of. What another
    tool told of it, or an answer that says that there is nothing, is in order; so is a tool that answers nobody."""
    answer = (text_of(run.output) or "")[:_ANSWER]
    if _SAYS_NOTHING.search(answer.lower()):
        return
    listings = ((step, call) for step, call in own_tools(run) if step.index in is_empty and _is_listing(call))
    found = ((step, name) for step, call in listings if (name := _name_in(answer, call)) is not None)
    asked = list(islice(found, _NAMED))
    named = {name for _, name in asked}
    told = [call.result.as_text() for _, call in own_tools(run) if call.result is not None] if named else []
    untold = {name for name in named if not any(name in text for text in told)}
    yield from ((step, name) for step, name in asked if name in untold)


_SEARCHES = re.compile(r"(?:^|_)(?:search|find|lookup|retrieve|query)|look_up|Search|Find|Lookup|Retrieve|Query")


def is_search(call: ToolCall) -> bool:
    return _is_listing(call) and _SEARCHES.search(call.tool_name) is not None


def affirms(run: Run) -> bool:
    """A statement with something in it that could be wrong: no denial, no question, no short word."""
    answer = (text_of(run.output) or "")[:_ANSWER]
    is_statement = len(answer.split()) > 3 and "?" not in answer
    return is_statement and not _SAYS_NOTHING.search(answer.lower())


def _is_listing(call: ToolCall) -> bool:
    return isinstance(value_of(call.result), list | dict)


def _name_in(answer: str, call: ToolCall) -> str | None:
    words = {str(item) for _, item in leaves(value_of(call.arguments)) if re.search(r"\d{2}", str(item))}
    return next((word for word in sorted(words) if word in answer and _stands_in(answer, word)), None)


def _stands_in(answer: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", answer) is not None


# --- another sum than was told -----------------------------------------------------------------


def other_sums(run: Run) -> Iterator[tuple[Step, str, float, float]]:
    """Steps that go on with another sum than was told of the same thing: step, key, its number, the one that was told.
    A number that was recorded anywhere, or that one recorded number makes of the told one, is in order."""
    if not any(_sums(value_of(call.arguments)) for _, call in own_tools(run)):
        return
    told: dict[str, tuple[float, set[str]]] = {}
    known, alone = _numbers_in(text_of(run.input) or ""), list[float]()
    for step, call in own_tools(run):
        arguments, result = value_of(call.arguments), value_of(call.result)
        about = {item for _, item in leaves(arguments) if isinstance(item, str)}
        for key, number in _sums(arguments):
            before, of = told.get(key, (number, set[str]()))
            if of & about and number not in known and not _made_of(number, before, alone):
                yield step, key, number, before
        known |= {item for _, item in leaves([arguments, result]) if is_number(item)}
        for item in (item for value in (arguments, result) for item in _fields(value).values() if is_number(item)):
            insort(alone, item)
        told |= {key: (number, about) for key, number in _sums(result)}


def _fields(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _sums(value: JsonValue) -> list[tuple[str, float]]:
    return [(key, item) for key, item in _fields(value).items() if key in SUM_KEYS and is_number(item)]


def _made_of(number: float, told: float, others: list[float]) -> bool:
    """By adding, taking away, multiplying, dividing or a percentage. The others are in order: of very many, those that
    would make it are looked up and not tried one after the other."""
    near = max(0.006, abs(number) * 1e-9)
    low, high = number - near, number + near
    makings = ((told, 1), (told, -1), (told, told / 100), (told, -told / 100), (told, told), (0, told))
    if any(_has_between(others, (low - start) / step, (high - start) / step) for start, step in makings if step):
        return True
    return low * high > 0 and _has_between(others, told / low, told / high)


def _has_between(ordered: list[float], *ends: float) -> bool:
    at = bisect_left(ordered, min(ends))
    return at < len(ordered) and ordered[at] <= max(ends)


def _numbers_in(text: str) -> set[float]:
    return {float(found) for found in re.findall(r"\d+(?:\.\d+)?", text)}


# --- a total that is not the sum of its lines ----------------------------------------------------


_TOTAL = re.compile(r"(?<!\w)(?:total|totals|sum|altogether|in all)(?!\w)")
_AMOUNT = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")


def total_beside_lines(run: Run) -> tuple[Step, float, float] | None:
    """The step that gave lines with one number each, the total in the answer, and their sum. Only where that call is
    the run's one source of numbers, and the answer has this one number alone."""
    answer, tools = (text_of(run.output) or "")[:_ANSWER], own_tools(run)
    amounts = re.findall(r"[\w.,-]*\d[\w.,-]*", answer)
    if len(amounts) != 1 or len(tools) != 1 or not _TOTAL.search(answer.lower()) or run.prior is not None:
        return None
    step, call = tools[0]
    amount, lines = _amount(amounts[0]), _lines(value_of(call.result))
    if amount is None or len(lines) < 2 or _has_numbers_beside(run, call) or amount in {*lines, float(len(lines))}:
        return None
    return None if abs(sum(lines) - amount) < 0.006 else (step, amount, sum(lines))


def _has_numbers_beside(run: Run, call: ToolCall) -> bool:
    """In the question, the instructions, or what the tool was asked; steps of other kinds may hold any."""
    said = [part.get("content") for seen in first_requests(run) for part in seen.parts]
    asked = [item for _, item in leaves(value_of(call.arguments))]
    others = any(not isinstance(step.call, ModelCall | ToolCall) for step in run.steps)
    return others or bool(_numbers_in(f"{text_of(run.input) or ''} {run.instructions or ''} {said} {asked}"))


def _amount(word: str) -> float | None:
    number = word.rstrip(".,")
    return float(number.replace(",", "")) if _AMOUNT.fullmatch(number) else None


def _lines(value: JsonValue) -> list[float]:
    """The numbers of records that stand alone in an answer and have one each, all under one name."""
    rows = next(iter(value.values()), None) if isinstance(value, dict) and len(value) == 1 else value
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return []
    found = [[(key, item) for key, item in leaves(row) if is_number(item)] for row in rows]
    is_plain = all(len(each) == 1 for each in found) and len({key for each in found for key, _ in each}) == 1
    return [float(item) for each in found for _, item in each] if is_plain else []
