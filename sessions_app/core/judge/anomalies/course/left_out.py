"""Lists that were gone through one by one, but for one or two, with an answer that counts all of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import question_of
from sessions_app.core.judge.anomalies.reading.statements import counts_in, is_stated, plain_values, statements
from sessions_app.core.judge.reading import has_answer, join_words, leaves, object_of, own_tools, value_of
from sessions_app.core.run import Run, Step, ToolCall

MANY = 5
"""Things of a list that one tool was called for."""
_MOST = 2
_SHARE = 10
"""One of so many may be missing, and at most two."""
_ROOM = 20
"""Lists that are looked at."""


def left_out(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """No call has what was left out, nothing else tells of it, and the answer does not name it."""
    for listing, name, names, missing, last in _walks(run) if has_answer(run) else ():
        is_excused = any(_is_excused(run, each) or _is_told(run, listing, each) for each in missing)
        if _is_counted_in(run, len(names), len(missing)) and not is_excused:
            words = join_words(missing)
            message = (
                f"{listing.name} lists {len(names)}, and {name} was never called for {words}; "
                f"the answer speaks of {len(names)}"
            )
            yield Anomaly(code="left_out", message=message, steps=(last.index, listing.index))


def _is_counted_in(run: Run, listed: int, missing: int) -> bool:
    """A sentence has the number of all and not that of those that were done."""
    return any(
        listed in (counts := counts_in(sentence)) and listed - missing not in counts for sentence in statements(run)
    ) and not any(listed - missing in counts_in(sentence) for sentence in statements(run))


def _is_excused(run: Run, name: str) -> bool:
    texts = [question_of(run), run.instructions or "", *statements(run)]
    return any(is_stated(name, text) for text in texts)


def _is_told(run: Run, listing: Step, name: str) -> bool:
    """Another tool than the one that lists it may have said why, or that it was done."""
    others = (call.result for step, call in own_tools(run) if step.name != listing.name and call.result is not None)
    return any(is_stated(name, result.as_text()[:_TEXT]) for result in others)


_Walk = tuple[Step, str, list[str], list[str], Step]
"""The call that listed, the tool, what was listed, what was left out, and the call behind which it should have come."""


def _walks(run: Run) -> Iterator[_Walk]:
    called, used = _called(run), _used(run)
    told = set[str]()
    for step, call in own_tools(run) if called else ():
        for names in _lists(call)[:_ROOM]:
            for tool, steps in called.items():
                done = {name: at for name in names if (at := steps.get(name)) and at.index > step.index}
                missing = [name for name in names if name not in done]
                is_walk = len(done) >= MANY - 1 and 0 < len(missing) <= min(_MOST, max(1, len(names) // _SHARE))
                if is_walk and tool not in told and used.isdisjoint(missing):
                    told.add(tool)
                    yield step, tool, names, missing, _before(names, done, missing[0])


def _before(names: list[str], done: dict[str, Step], missing: str) -> Step:
    """The call for the one that is listed before it, else the first one."""
    at = names.index(missing)
    before = (done[name] for name in reversed(names[:at]) if name in done)
    return next(before, None) or min(done.values(), key=lambda step: step.index)


def _called(run: Run) -> dict[str, dict[str, Step]]:
    """By tool, the things that it was called for, each in a call of its own."""
    found: dict[str, dict[str, Step]] = defaultdict(dict)
    for step, call in own_tools(run):
        for item in plain_values(object_of(call.arguments)).values():
            found[call.tool_name].setdefault(str(item), step)
    return {tool: steps for tool, steps in found.items() if len(steps) >= MANY - 1}


def _used(run: Run) -> set[str]:
    """What any call has in its arguments, or in a text there."""
    items = [str(item) for _, call in own_tools(run) for _, item in leaves(value_of(call.arguments))]
    return {*items, *(name for item in items for name in _NAME.findall(item[:_TEXT]))}


_NAME = re.compile(r"(?<![\w-])[^\W\d_]{1,8}[-_]?\d[\w-]*")
_TEXT = 20_000


def _lists(call: ToolCall) -> list[list[str]]:
    """Ids that an answer lists: under one name, or in a text; each once."""
    value = value_of(call.result)
    columns: dict[str | None, list[str]] = defaultdict(list)
    if isinstance(value, str):
        columns[None] = _NAME.findall(value[:_TEXT])
    else:
        for key, item in leaves(value):
            columns[key].append(str(item))
    ordered = [names if isinstance(value, str) else names[::-1] for names in columns.values()]
    return [names for names in ordered if MANY <= len(names) == len(set(names))]
