"""Writes to things of which a call before had told that this cannot be done to them, or can no longer be done."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import failed_steps, turns_of_users
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    answer_of,
    owns_up,
    owns_up_in,
    plain,
    question_of,
)
from sessions_app.core.judge.anomalies.reading.forbidden_acts import (
    acts_allowed_by,
    acts_forbidden_by,
    acts_forbidden_in,
    clauses_in,
    is_one_act,
)
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import statements
from sessions_app.core.judge.anomalies.reading.told_states import tells_unfinished
from sessions_app.core.judge.anomalies.reading.vocabulary import ASKS_LEAVE, ASKS_PEOPLE, DESPITE, LEAVE, TO_OTHERS
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import has_answer, leaves, object_of, own_tools, value_of
from sessions_app.core.payload import JsonValue, Payload
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


def writes_against_the_state(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Not where something was done to the thing in between, which may have changed it, or a user spoke, or where the
    question asks for it all the same, or the answer tells of it."""
    for state, write in _against_the_state(run) if has_answer(run) and not owns_up(run.output) else ():
        message = (
            f"{write.name} was called although {state.step.name} had returned \u201c{state.words}\u201d; "
            "the answer does not say so"
        )
        yield Anomaly(code="state_forbids", message=message, steps=(state.step.index, write.index))


@dataclass(frozen=True, kw_only=True, slots=True)
class _State:
    """What a call told of one thing."""

    step: Step
    words: str
    beside: frozenset[str]
    """Stems of what was told along with it."""
    acts: frozenset[str]
    """Stems of what cannot be done."""


_States = dict[str, dict[tuple[str, str], _State]]
"""By the name of a thing, by the tool and its words."""


def _against_the_state(run: Run) -> Iterator[tuple[_State, Step]]:
    states: _States = defaultdict(dict)
    failed, turns = failed_steps(run), turns_of_users(run)
    for step, call in own_tools(run):
        if step.index in failed:
            continue
        names, is_write = _names_in(call.arguments), not looks_up(step, call)
        if is_write:
            known = (state for name in names for state in islice(states.get(name, {}).values(), _MOST))
            against = (state for state in known if _acts(call) and _is_against(run, state, call))
            state = next(against, None)
            if state and bisect_right(turns, state.step.index) == bisect_right(turns, step.index):
                yield state, step
        if LEAVE.search(call.tool_name) or ASKS_PEOPLE.search(call.tool_name):
            states.clear()
        for name in names if is_write and not TO_OTHERS.search(call.tool_name) else ():
            states.pop(name, None)
        _remember(states, names, step, call)


_MOST = 20
"""States of one thing, and names of one state."""
_ONLY_ASKS = re.compile(
    r"(?:request|quote|preview|simulate|estimate|propose|draft|offer|ask|schedule|escalate|explain|anfrag|solicit|demand"
    r"|richied)|.*(?:request|preview|options|exception|dry_?run|依頼|申请)",
    re.IGNORECASE,
)
_UNDER_LEAVE = re.compile(
    r"approv|authori[sz]|exception|override_reason|waiver|dry_?run|preview|simulate", re.IGNORECASE
)


def _acts(call: ToolCall) -> bool:
    """And does not ask whether it may, or was told that it may."""
    if ASKS_LEAVE.search(call.tool_name) or _ONLY_ASKS.match(call.tool_name) or tells_unfinished(call):
        return False
    return not any(_UNDER_LEAVE.search(key) for key, item in object_of(call.arguments).items() if item)


def _is_against(run: Run, state: _State, call: ToolCall) -> bool:
    """By a word of the tool's name that is not the kind of thing, as that of the other tool or an argument is."""
    kinds = stems_in(*map(_apart, (state.step.name, *object_of(call.arguments))))
    acts = {act for act in stems_in(_apart(call.tool_name)) - kinds for each in state.acts if is_one_act(act, each)}
    if not acts or call.tool_name == state.step.name:
        return False
    texts = (str(item)[:_READ] for _, item in leaves(value_of(call.result)))
    known = {each for text in texts for clause in clauses_in(text) for each in acts_forbidden_in(clause)}
    is_known = any(is_one_act(act, each) for act in acts for each in known | _forbidden_in_question(run))
    return not is_known and not _is_told(run, acts, state)


@once_each
def _forbidden_in_question(run: Run) -> set[str]:
    return {each for clause in clauses_in(question_of(run)) for each in acts_forbidden_in(clause)}


def _apart(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name)


def _is_told(run: Run, acts: set[str], state: _State) -> bool:
    """By a sentence that denies something of the act, by one that has what stood beside it, or as an exception."""
    beside = state.beside - state.acts - acts - stems_in(question_of(run))
    return _is_exception(run) or any(
        not beside.isdisjoint(said) or (denies and any(is_one_act(act, each) for act in acts for each in said))
        for said, denies in _said(run)
    )


@once_each
def _is_exception(run: Run) -> bool:
    return DESPITE.search(plain(answer_of(run))) is not None


@once_each
def _said(run: Run) -> list[tuple[set[str], bool]]:
    """Of each sentence of the answer its stems, and whether it denies something."""
    return [(stems_in(each), _denies(plain(each))) for each in statements(run)]


def _denies(sentence: str) -> bool:
    return SAYS_NOTHING.search(sentence) is not None or owns_up_in(sentence) or bool(acts_forbidden_in(sentence))


# --- what was told of what ---------------------------------------------------------------------

_READ = 2_000
"""Characters of a text; longer ones are documents."""
_NAME = re.compile(r"[^\W_](?:[\w-]*[^\W_])?")
_DIGITS = 3
"""A shorter number names nothing."""
_Told = list[tuple[str | None, JsonValue]]


def _remember(states: _States, asked: set[str], step: Step, call: ToolCall) -> None:
    """A later answer of the same tool for the same thing takes the place of the one before."""
    for known in (states[name] for name in asked if name in states):
        for key in [key for key in known if key[0] == call.tool_name]:
            del known[key]
    for told, is_part in _things(value_of(call.result)):
        found = list(_states_in(step, told))
        own = {name for key, item in told for name in _names_of(key, item)} if found else set[str]()
        for name in islice(own if is_part and own else own | asked, _MOST) if found else ():
            states[name] |= {(call.tool_name, state.words): state for state in found}


def _things(value: JsonValue) -> Iterator[tuple[_Told, bool]]:
    """What is told of each thing, and whether it is but one of several: a row of a list or a line of a text."""
    if isinstance(value, str):
        lines = [line for line in value[:_READ].split("\n") if line.strip()]
        for line in lines:
            yield [(None, line)], len(lines) > 1
        return
    waiting, is_row = [value], isinstance(value, list)
    while waiting:
        told, rows = _apart_from_rows(waiting.pop())
        waiting += rows
        yield told, is_row
        is_row = True


def _apart_from_rows(value: JsonValue) -> tuple[_Told, list[JsonValue]]:
    """Every scalar of it, and the objects in its lists."""
    told, rows, waiting = _Told(), list[JsonValue](), [(None, value)] if not isinstance(value, list) else []
    rows += value if isinstance(value, list) else []
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.items()
        elif isinstance(item, list):
            rows += (each for each in item if isinstance(each, dict))
            told += ((key, each) for each in item if not isinstance(each, dict | list))
        else:
            told.append((key, item))
    return told, rows


def _states_in(step: Step, told: _Told) -> Iterator[_State]:
    """None where a flag says that it may be done, as the fare may be refunded and a fee may not."""
    allowed = {act for key, item in told for act in acts_allowed_by(key, item)}
    for state in (state for key, item in told for state in _states_by(step, key, item)):
        if not any(is_one_act(act, each) for act in allowed for each in state.acts):
            yield state


def _states_by(step: Step, key: str | None, item: JsonValue) -> Iterator[_State]:
    if acts := acts_forbidden_by(key, item):
        words = f"{key}: {str(item).lower()}"
        yield _State(step=step, words=words, beside=frozenset(), acts=frozenset(acts))
    elif isinstance(item, str) and len(item) <= _READ and not _IS_TIME.fullmatch(key or ""):
        yield from _states_in_text(step, item)


_IS_TIME = re.compile(r".*_(?:at|on|date)")


def _states_in_text(step: Step, text: str) -> Iterator[_State]:
    """With the clause before, which may say why."""
    before = ""
    for clause in clauses_in(text):
        if acts := acts_forbidden_in(clause):
            beside = frozenset(stems_in(before, clause) - _ANY_STATE)
            yield _State(step=step, words=clause[:_SAID], beside=beside, acts=frozenset(acts))
        before = clause


_SAID = 80
_ANY_STATE = frozenset(stems_in("status state order"))


def _names_in(payload: Payload | None) -> set[str]:
    return {name for key, item in leaves(value_of(payload)) if (name := _name_under(key, item))}


def _names_of(key: str | None, item: JsonValue) -> set[str]:
    if isinstance(item, str):
        return set(filter(_is_name, _NAME.findall(item[:_READ])))
    return {name} if (name := _name_under(key, item)) else set()


_NUMBERED = re.compile(r"(?:.*_)?(?:id|nr|no|num|number|code|key)", re.IGNORECASE)


def _name_under(key: str | None, item: JsonValue) -> str | None:
    """Of whole numbers only those that are a name by their key."""
    is_number = isinstance(item, int) and not isinstance(item, bool) and _NUMBERED.fullmatch(key or "")
    return str(item) if is_number or (isinstance(item, str) and _is_name(item)) else None


def _is_name(text: str) -> bool:
    """With digits, and not a text or a small number."""
    return " " not in text and re.search(r"\d", text) is not None and not (text.isdecimal() and len(text) < _DIGITS)
