"""One of many calls of one tool that answered in other words than all the others, while the run's answer counts it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Level, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    answer_of,
    error_words_in,
    owns_up,
    owns_up_in,
    plain,
    says_all,
)
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import counts_in, is_stated, plain_values, statements
from sessions_app.core.judge.reading import argument_key, has_answer, is_number, object_of, own_tools, value_of
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, ToolCall

MANY = 8
"""Calls of one tool, each with arguments of its own."""
FEW = 6
"""Such calls, where each answers with a state."""
_LINE = 300
_MOST = 20

Made = tuple[Step, ToolCall]


def other_shapes(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The answer counts it with the others. A note where no word that is known says that nothing was done."""
    if not has_answer(run) or error_words_in(run.output, rules) or owns_up(run.output):
        return
    counts = {count for sentence in statements(run) for count in counts_in(sentence)}
    speaks_of_all = any(says_all(each) and not _BUT.search(plain(each)) for each in statements(run))
    for step, call, calls in list(_odd_ones(run))[:_MOST]:
        names = [str(item) for item in plain_values(object_of(call.arguments)).values()]
        is_counted = len(calls) in counts or (speaks_of_all and _is_record(call))
        if is_counted and len(calls) - 1 not in counts and not any(is_stated(each, answer_of(run)) for each in names):
            said = (call.result.as_text() if call.result else "").strip()[:_SAID]
            message = f"{step.name} answered “{said}”, unlike the other {len(calls) - 1} calls"
            message += "; the answer does not say so"
            level: Level = "warning" if _denies(call) or _did_nothing(call, calls) else "info"
            yield Anomaly(code="other_shape", message=message, steps=(step.index,), level=level)


_SAID = 100
_BUT = re.compile(
    r"(?<!\w)(?:but|except|apart|other than|außer|bis auf|ausgenommen|sauf|excepto|menos|salvo|tranne)(?!\w)"
)


def _is_record(call: ToolCall) -> bool:
    return bool(object_of(call.result))


def _odd_ones(run: Run) -> Iterator[tuple[Step, ToolCall, list[Made]]]:
    series: dict[str, dict[bytes, Made]] = defaultdict(dict)
    for step, call in own_tools(run):
        series[call.tool_name][argument_key(call)] = step, call  # what was asked again counts as it was in the end
    for made in (list(made.values()) for made in series.values() if len(made) >= FEW):
        if (at := _in_another_state(made)) is not None:
            yield *made[at], made
            continue
        shapes = [_shape(step, call) for step, call in made]
        usual, often = Counter(shapes).most_common(1)[0]
        if usual and often == len(made) - 1 and len(made) >= MANY:
            at = next(at for at, shape in enumerate(shapes) if shape != usual)
            if shapes[at] and _is_other(shapes[at], usual) and not _was_left(made[at][1]):
                yield *made[at], made


def _in_another_state(made: list[Made]) -> int | None:
    """The only one whose answer has, under a name that has one text in all others, another text, and lacks something
    that all others have, whatever the words are."""
    if any(looks_up(*pair) or has_failed(pair[0]) for pair in made):
        return None
    told = [object_of(call.result) for _, call in made]
    for key in told[0].keys() & told[-1].keys():
        texts = Counter(item if isinstance(item := each.get(key), str) else "" for each in told)
        if len(texts) == 2 and "" not in texts and min(texts.values()) == 1:
            odd = min(texts, key=texts.__getitem__)
            at = next(at for at, each in enumerate(told) if each[key] == odd)
            return at if _lacks_something(told, at) and not _was_so(made[at][1]) else None
    return None


def _lacks_something(told: list[JsonObject], at: int) -> bool:
    return bool(frozenset.intersection(*(frozenset(each) for n, each in enumerate(told) if n != at)) - told[at].keys())


_Shape = frozenset[str]


def _shape(step: Step, call: ToolCall) -> _Shape:
    """The words of a line without those of the call; of an object its names, with what is true of them."""
    if looks_up(step, call) or has_failed(step) or call.result is None:
        return frozenset()
    told = value_of(call.result)
    if isinstance(told, dict):
        return frozenset(f"{key}={item}" if isinstance(item, bool) else key for key, item in told.items())
    own = {str(item).lower() for item in plain_values(object_of(call.arguments)).values()}
    said = str(told).lower() if isinstance(told, str) and len(told) <= _LINE else ""
    for each in own:
        said = said.replace(each, " ")
    return frozenset(word.rstrip("s") for word in re.findall(r"[^\W\d_]{3,}", said)) or frozenset(said.split()[:1])


def _is_other(shape: _Shape, usual: _Shape) -> bool:
    """No more than a third in common; of an object, something that is true of the others is false."""
    is_false = any(f"{each.removesuffix('=False')}=True" in usual for each in shape if each.endswith("=False"))
    is_object = any("=" in each for each in usual)
    return is_false if is_object else 3 * len(shape & usual) <= len(shape | usual)


_WAS_SO = re.compile(
    r"already|unchanged|no change|nothing to|up to date|exist|duplicate|bereits|schon|unverändert"
    r"|existier|déjà|inchangé"
    r"|exist|ya (?:est|exist)|sin cambio|já |sem altera|existent|już|redan|allerede|reeds|già|zaten|既に"
    r"|すでに|变更なし|已"
)
"""It was so before: nothing had to be done."""


def _was_so(call: ToolCall) -> bool:
    return call.result is not None and _WAS_SO.search(plain(call.result.as_text()[:_LINE])) is not None


def _was_left(call: ToolCall) -> bool:
    return _was_so(call) or (call.result is not None and "skipp" in plain(call.result.as_text()[:_LINE]))


def _denies(call: ToolCall) -> bool:
    said = plain(call.result.as_text()[:_LINE]) if call.result else ""
    return "false" in said or SAYS_NOTHING.search(said) is not None or owns_up_in(said)


def _did_nothing(call: ToolCall, calls: list[Made]) -> bool:
    """A count of 0 that is none in all others."""
    counted = {key for key, item in object_of(call.result).items() if is_number(item) and item == 0}
    others = [object_of(each.result) for _, each in calls if each is not call]
    return any(all(each.get(key) for each in others) for key in counted)
