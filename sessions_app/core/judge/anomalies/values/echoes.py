"""Answers of tools that give an argument back with another value: of another thing, or less than was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.failed.fallbacks import acts
from sessions_app.core.judge.anomalies.reading.answer_words import SAYS_NOTHING, owns_up, plain, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import is_stated, plain_values, statements
from sessions_app.core.judge.anomalies.reading.told_states import is_unfinished, told_states
from sessions_app.core.judge.anomalies.values.sums import made_of
from sessions_app.core.judge.reading import as_object, has_answer, is_number, leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each

_MOST = 20
"""Each is held against all that came later."""


@dataclass(frozen=True, slots=True)
class _Echo:
    """An argument that came back."""

    step: Step
    call: ToolCall
    key: str
    asked: JsonValue
    told: JsonValue

    @property
    def is_same(self) -> bool:
        """Also where one is but spelled more fully, as `Berlin` and `Berlin, DE`."""
        return is_stated(self.asked, str(self.told)) or is_stated(self.told, str(self.asked))


@once_each
def _echoes(run: Run) -> list[_Echo]:
    found: list[_Echo] = []
    for step, call in own_tools(run):
        asked, told = plain_values(object_of(call.arguments)), _record(value_of(call.result))
        names = [] if not told or has_failed(step) else [key for key in asked if _is_plain(told.get(key))]
        found += (_Echo(step, call, key, asked[key], told[key]) for key in names)
    return found


def _record(told: JsonValue) -> JsonObject:
    """The answer, or the one record that it wraps or lists, with what stands in it: `order: {id}` is `order_id`."""
    while isinstance(told, dict | list) and len(told) == 1:
        only = next(iter(told.values())) if isinstance(told, dict) else told[0]
        name = next(iter(told)).removesuffix("s") if isinstance(told, dict) else ""
        if not isinstance(only, dict | list):
            break
        told = {f"{name}_{key}": item for key, item in only.items()} | only if isinstance(only, dict) else only
    record = as_object(told)
    inner = ((name, key, each) for name, item in record.items() for key, each in as_object(item).items())
    return {key if key.startswith(name) else f"{name}_{key}": each for name, key, each in inner} | record


def _is_plain(item: JsonValue) -> bool:
    return isinstance(item, str) or is_number(item)


def _others(run: Run) -> list[_Echo]:
    return [each for each in _echoes(run) if not each.is_same]


# --- of another thing --------------------------------------------------------------------------


def other_records(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool was asked for one thing and answered with another one, and what it said was used. Who tells of the other
    one, or goes on with it, knows; it may be the same under a new id."""
    for each in _of_others(run) if has_answer(run) else ():
        message = (
            f"{each.step.name} was called with {each.key} {each.asked} but returned {each.key} {each.told}, "
            "and its data was used"
        )
        yield Anomaly(code="other_record", message=message, steps=(each.step.index,))


def _of_others(run: Run) -> list[_Echo]:
    others = [each for each in _others(run) if _is_of_other(each)]
    if not others:
        return []
    echoed = Counter(each.key for each in _echoes(run) if each.is_same)
    by_tool = Counter((each.step.name, each.key) for each in _echoes(run) if each.is_same)
    often = Counter(each.key for each in others)
    pairs = Counter((each.asked, each.told) for each in others)
    told = Counter(str(item) for _, call in own_tools(run) for _, item in set(leaves(value_of(call.result))))
    return [
        each
        for each in others[:_MOST]
        if (_gives_what_is_named(each) or by_tool[each.step.name, each.key] > 1)
        and pairs[each.asked, each.told] == 1
        and often[each.key] <= max(1, echoed[each.key])
        and _is_used(run, each, told)
    ]


_ANOTHER = re.compile(
    r"next|prev|latest|newest|replac|substitut|alternativ|similar|related|linked|parent|child|successor|resolve|redirect"
    r"|manager|owner|assignee|supervisor|lead|deputy|delegate|partner|spouse|contact|peer|neighbo|reply|replies"
    r"|follow|original|copy|duplicate|exchange|swap|merge"
)
"""What gives another thing than the one that is named, as it is meant to."""


def _gives_what_is_named(each: _Echo) -> bool:
    is_read = looks_up(each.step, each.call) or not acts(each.step, each.call)
    return is_read and not _ANOTHER.search(each.step.name.lower())


_ID = re.compile(r"[^\W\d_]+[\w-]*\d[\w-]*|[\w.+-]+@[\w.-]+")
_ID_KEY = re.compile(r"(?:^|_)id$|\wId$")


def _is_of_other(each: _Echo) -> bool:
    """Two ids of one form, and the one that was asked for stands nowhere in the answer."""
    asked, told = str(each.asked), str(each.told)
    if isinstance(each.asked, int) and isinstance(each.told, int):
        is_id = _ID_KEY.search(each.key) is not None
    else:
        is_id = _ID.fullmatch(asked) is not None and (_form(asked) == _form(told) or ("@" in asked and "@" in told))
    return is_id and each.call.result is not None and not is_stated(asked, each.call.result.as_text())


def _form(each: str) -> str:
    return re.sub(r"\d", "0", re.sub(r"[^\W\d_]", "a", each))


def _is_used(run: Run, each: _Echo, told: Counter[str]) -> bool:
    """A later call or the answer has something that this answer alone told, and not whose it is."""
    later = [call.arguments for step, call in own_tools(run) if step.index > each.step.index]
    texts = (payload.as_text() for payload in later if payload is not None)
    used = "\n".join([*statements(run), *texts])[:_READ]
    asked = f"{question_of(run)}\n{run.instructions or ''}"
    if is_stated(str(each.told), f"{used}\n{asked}"):
        return False
    own = [pair for pair in leaves(value_of(each.call.result)) if told[str(pair[1])] == 1][:_LEAVES]
    arguments = {pair for payload in later for pair in leaves(value_of(payload))}
    if any(_is_passed_on(pair, arguments) and not is_stated(pair[1], asked) for pair in own):
        return True
    return any(_says_something(item) and is_stated(item, used) and not is_stated(item, asked) for _, item in own)


_READ = 100_000
"""Characters."""
_LEAVES = 50
_SHORT = 3


def _is_passed_on(told: tuple[str | None, JsonValue], arguments: set[tuple[str | None, JsonValue]]) -> bool:
    """As an argument, where it is no number that any other may be by chance."""
    item = told[1]
    if isinstance(item, int):
        return told in arguments and not isinstance(item, bool)
    return item not in (None, "") and any(item == other for _, other in arguments)


def _says_something(item: JsonValue) -> bool:
    return len(str(item)) > _SHORT if isinstance(item, str) else is_number(item) and (item > 9 or item != int(item))


# --- less than was asked for -------------------------------------------------------------------


def done_in_part(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool that does something gave another number than it was called with, and the answer states that one."""
    others = [each for each in _others(run) if _is_amount(each)] if has_answer(run) and not owns_up(run.output) else []
    kept = Counter((each.step.name, each.key) for each in _echoes(run) if each.is_same) if others else Counter()
    for each in others[:_MOST]:
        is_limit = _is_less(each) and not _RELATIVE.search(each.step.name) and not _is_on_its_way(run, each)
        is_odd = is_limit or _is_tenfold(each) or kept[each.step.name, each.key] > 1
        if is_odd and _is_claimed(run, each) and not _is_reached(run, each):
            message = (
                f"{each.step.name} was called with {each.key} {each.asked} but returned {each.told}; "
                f"the answer says {each.asked}"
            )
            yield Anomaly(code="done_in_part", message=message, steps=(each.step.index,))


_NO_AMOUNTS = re.compile(
    r"(?:.*_)?id|\w+Id|(?:page|batch)?_?(?:page|limit|offset|size)|(?:.*_)?(?:timeout|delay|interval|duration|ttl|ms)"
    r"|(?:.*_)?(?:seconds|minutes|hours|days|expires_in|version|retries|top_k|max_\w+)"
)
"""Parts of lists, and times that run down."""
_RELATIVE = re.compile(
    r"add|increas|top_?up|deposit|remov|deduct|withdraw|subtract|decreas|consum|spend|redeem|releas|return|sell|use_|take"
)
"""Tools that may give what there is in the end."""


def _is_amount(each: _Echo) -> bool:
    """No id, no page, no other unit, and nothing that the other numbers of the answer explain, as a fee does."""
    asked, told = each.asked, each.told
    if not is_number(asked) or not is_number(told) or looks_up(each.step, each.call):
        return False
    numbers = {float(item) for _, item in leaves(value_of(each.call.result)) if is_number(item)} - {float(told)}
    is_unit = told and asked and max(asked / told, told / asked) in (100, 1000)
    explained = float(asked) in numbers or made_of(float(told), float(asked), sorted(numbers))
    return not _NO_AMOUNTS.fullmatch(each.key) and not is_unit and not explained


def _is_less(each: _Echo) -> bool:
    return is_number(each.told) and is_number(each.asked) and each.told < each.asked


def _is_tenfold(each: _Echo) -> bool:
    return is_number(each.told) and is_number(each.asked) and each.told == 10 * each.asked


def _is_on_its_way(run: Run, each: _Echo) -> bool:
    """Whether the tool told how it still was, as before the call."""
    before = (call for step, call in own_tools(run) if step.index < each.step.index)
    was_told = any(_gives(call, each, each.told) for call in before)
    return was_told or any(is_unfinished(state) or state.endswith("ing") for state in told_states(each.call))


_LESS = re.compile(
    r"(?<!\w)(?:only|just|instead|rather|of the|out of|than|partly|partial\w*|limit\w*|cap|capped|quota|max\w*|at most"
    r"|up to|but|statt|nur|seulement|sólo|solo|solamente)(?!\w)"
)


def _is_claimed(run: Run, each: _Echo) -> bool:
    """By a sentence about it that states what was asked for and no reserve; what came of it is told nowhere."""
    said = statements(run)
    if any(is_stated(each.told, sentence) for sentence in said):
        return False
    names = [*_subjects(each), *re.findall(r"[a-z]{4,}", each.key.lower())]
    reasons = {word for text in _texts(each) for word in re.findall(r"\w{4,}", plain(text))}
    about = [plain(sentence) for sentence in said if is_stated(each.asked, sentence)]
    return any(
        any(name.lower() in sentence for name in names)
        and not (SAYS_NOTHING.search(sentence) or _LESS.search(sentence) or any(word in sentence for word in reasons))
        for sentence in about
    )


def _subjects(each: _Echo) -> list[str]:
    """The names that the call has beside the number."""
    named = plain_values(object_of(each.call.arguments))
    return [item for key, item in named.items() if key != each.key and isinstance(item, str)]


def _texts(each: _Echo) -> list[str]:
    """What the tool said beside what it was asked."""
    asked = {item for _, item in leaves(value_of(each.call.arguments))}
    return [item for _, item in leaves(value_of(each.call.result)) if isinstance(item, str) and item not in asked]


def _is_reached(run: Run, each: _Echo) -> bool:
    """Whether a later answer about it gives the number after all."""
    later = (call for step, call in own_tools(run) if step.index > each.step.index)
    return any(_gives(call, each, each.asked) for call in later)


def _gives(call: ToolCall, each: _Echo, number: JsonValue) -> bool:
    """Whether an answer has the number for the same thing."""
    if (each.key, number) not in set(leaves(value_of(call.result))):
        return False
    named = {item for payload in (call.arguments, call.result) for _, item in leaves(value_of(payload))}
    return not (subjects := _subjects(each)) or not named.isdisjoint(subjects)
