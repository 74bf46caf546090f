"""Calls that failed and were made again, where a list that was read later holds what both of them did."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.course.repeats import ID
from sessions_app.core.judge.anomalies.failed.failures import failed_steps, has_failed
from sessions_app.core.judge.anomalies.failed.fallbacks import acts
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, is_named, plain, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import plain_values
from sessions_app.core.judge.reading import (
    argument_key,
    has_answer,
    leaves,
    listed_rows,
    object_of,
    own_tools,
    value_of,
)
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall


def done_twice(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer does not tell of it, and nothing was undone."""
    answer = plain(answer_of(run))
    found = list(_counted_twice(run)) if has_answer(run) and not _TWICE.search(answer) else []
    by_call: dict[int, tuple[Step, Step, str]] = {}
    for step, listing, name in sorted(found, key=lambda each: re.search(r"[^\W\d_]", each[2]) is None):
        if not _is_undone(run, listing, {name}):
            by_call.setdefault(step.index, (step, listing, name))  # a name rather than an amount
    for step, listing, name in by_call.values():
        counted = f"{listing.name} has {name} twice as often as the others"
        message = f"{step.name} was made again after it failed and took effect twice: {counted}"
        yield Anomaly(code="done_twice", message=message, steps=(step.index, listing.index))
    if found:
        return
    for step, listing, made, other in _listed_twice(run) if has_answer(run) and not _TWICE.search(answer) else ():
        if not is_named(other.lower(), answer) and not _is_undone(run, listing, {made, other}):
            message = f"{step.name} was retried after it failed, and {listing.name} lists both {other} and {made}"
            yield Anomaly(code="done_twice", message=message, steps=(step.index, listing.index))


_TWICE = re.compile(r"(?<!\w)(?:twice|both|double\w*|duplicat\w*|two)(?!\w)")


def _is_undone(run: Run, listing: Step, ids: set[str]) -> bool:
    later = (call for step, call in own_tools(run) if step.index > listing.index and _undoes(call))
    return any(item in ids for call in later for _, item in leaves(value_of(call.arguments)))


def _undoes(call: ToolCall) -> bool:
    return any(word in call.tool_name.lower() for word in ("cancel", "refund", "void", "delete", "remove", "revert"))


def _listed_twice(run: Run) -> Iterator[tuple[Step, Step, str, str]]:
    """The call that succeeded, a later one that lists records and does nothing, the id that the call gave, and one that
    nobody told before it failed, of a record which is the same in all else."""
    again = _made_again(run)
    asked, told = question_of(run), dict[JsonValue, int]()
    given: dict[tuple[str, str], Step] = {}
    for step, call in own_tools(run) if again else ():
        records = listed_rows(value_of(call.result)) if given and not acts(step, call) else []
        listed = [(row, key, made, by) for row in records for key, made in _ids(row) if (by := given.get((key, made)))]
        for row, key, made, by in listed:
            twins = (each[key] for each in records if _is_twin(row, each, key) and isinstance(each[key], str))
            other = next((each for each in twins if told.get(each, by.index) >= again[by.index]), None)
            if other is not None and not is_named(other, asked) and (key, made) in given:
                del given[key, made]
                yield by, step, made, other
        if step.index in again:
            given |= dict.fromkeys(_ids(object_of(call.result)), step)
        for _, item in leaves([value_of(call.arguments), value_of(call.result)]):
            told.setdefault(item, step.index)


def _counted_twice(run: Run) -> Iterator[tuple[Step, Step, str]]:
    """A later lookup names what the call was for once more than each of two or more others of its tool, all of which it
    names alike."""
    again = _made_again(run)
    done: _Done = defaultdict(dict)
    for step, call in own_tools(run) if again else ():
        if looks_up(step, call) and call.result is not None and not has_failed(step):
            yield from _once_more(done, step, call.result.as_text()[:_READ])
        elif not looks_up(step, call) and not has_failed(step):
            for key, item in plain_values(object_of(call.arguments)).items():
                done[call.tool_name, key].setdefault(str(item), (step, step.index in again))


_Done = dict[tuple[str, str], dict[str, tuple[Step, bool]]]
"""By tool and argument, for what it was called, and whether that was made again after it had failed."""


def _once_more(done: _Done, listing: Step, text: str) -> Iterator[tuple[Step, Step, str]]:
    words = Counter(_WORD.findall(text))
    for names in done.values():
        often = {name: count for name, count in words.items() if name in names}
        repeated = [name for name in often if names[name][1]]
        usual = {count for name, count in often.items() if not names[name][1]}
        if len(often) - len(repeated) > 1 and len(usual) == 1:
            yield from (
                (names[name][0], listing, name) for name in repeated[:_MOST] if often[name] == 2 * next(iter(usual))
            )


_READ = 100_000
_WORD = re.compile(r"[^\W_][\w@./-]*\w")
_MOST = 20


def _made_again(run: Run) -> dict[int, int]:
    """Calls that do something and succeeded, with the step where the same one had failed; only the first ones, as each
    is looked for in all lists."""
    failed, tried, found = failed_steps(run), dict[tuple[str, bytes], int](), dict[int, int]()
    for step, call in own_tools(run) if failed else ():
        same = call.tool_name, argument_key(call)
        if step.index in failed:
            tried.setdefault(same, step.index)
        elif same in tried and not looks_up(step, call) and len(found) < _MOST:
            found[step.index] = tried[same]
    return found


def _ids(record: JsonObject) -> Iterator[tuple[str, str]]:
    yield from ((key, item) for key, item in record.items() if isinstance(item, str) and ID.fullmatch(item))


def _is_twin(row: JsonObject, other: JsonObject, key: str) -> bool:
    """Another id, and all else the same, times within the day."""
    return (
        row.get(key) != other.get(key)
        and row.keys() == other.keys()
        and all(_day(row[each]) == _day(other[each]) for each in row if each != key)
    )


def _day(item: JsonValue) -> JsonValue:
    return item[:10] if isinstance(item, str) and item[10:11] == "T" else item
