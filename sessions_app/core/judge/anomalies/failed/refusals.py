"""Tools that refused, or that had not finished, and whether the answer says so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.course.repeats import repeated_calls
from sessions_app.core.judge.anomalies.failed.failures import FAILED_STATES, has_failed
from sessions_app.core.judge.anomalies.reading.answer_words import SAYS_NOTHING, answer_of, owns_up, plain
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import counts_in
from sessions_app.core.judge.anomalies.reading.told_states import (
    REFUSED,
    is_waiting,
    parts_done,
    tells_unfinished,
    told_refusals,
    told_states,
)
from sessions_app.core.judge.reading import has_answer, leaves, own_tools, text_of, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, ToolCall


def refusals_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A tool refused, and the answer speaks of success."""
    for step, said in refusals_unsaid(run):
        message = f"{step.name} answered {said}{_gone_on(run, step)}, and the answer does not say so"
        yield Anomaly(code="refusal_unsaid", message=message, steps=(step.index,))


_FINISHED = (
    r"paid|sent|done|made|booked|refunded|cancell?ed|closed|deployed|published|released|installed|delivered"
    r"|transferred|approved|activated|completed?|finished|settled|imported|exported|migrated|indexed|reindexed"
    r"|confirmed|live|ready|active|online|up|through"
)
_NOW = r"(?: now| just| successfully| already| all| fully)*"
_SUBJECT = r"(?:was|were|is|are|been|went|i|we|i've|we've|i have|we have)"
_DONE = re.compile(
    rf"(?<!\w){_SUBJECT}{_NOW} (?:\w{{2,}}ed|set|put|bought|sold|given|{_FINISHED})(?!\w)"
    rf"|(?:^|[.!\n]\s*)(?:\w{{2,}}ed|{_FINISHED})(?!\w)"
    r"|(?<!\w)(?:done|success\w*|on (?:its|the) way)(?!\w)"
)
_OVER = re.compile(rf"(?<!\w){_SUBJECT}{_NOW} (?:{_FINISHED})(?!\w)|(?:^|[.!\n]\s*)(?:{_FINISHED})(?!\w)")
_UNDER_WAY = re.compile(
    r"(?<!\w)(?:pending|being|process\w*|progress|soon|shortly|wait\w*|once|until|queued|start\w*|begun|began|schedul\w*"
    r"|submit\w*|request\w*|creat\w*|open\w*|fil(?:e|ed|ing)|plac(?:e|ed|ing)|initiat\w*|trigger\w*|add\w*|regist\w*"
    r"|rais\w*|log(?:ged)?|launch\w*|sent|send\w*|issu\w*|ask\w*|forward\w*|appl(?:y|ied))(?!\w)"
)
"""What is true of a thing that is not over yet."""


def claim_of_success(text: str) -> str | None:
    """The words that say that it was done: `has been paid`."""
    found = _CLAIM.search(text)
    return found[0].strip(" .!\n") if found else None


_CLAIM = re.compile(rf"(?:\w+ )?(?:{_DONE.pattern})", re.IGNORECASE)


def refusals_unsaid(run: Run) -> Iterator[tuple[Step, str]]:
    """Steps of tools that do something and were refused, with the word for it. Not where the answer names the state or
    denies anything, and not where the same tool did it in the end; a tool that looks up tells of somebody else's
    refusal."""
    answer = plain(answer_of(run))
    if not _DONE.search(answer) or SAYS_NOTHING.search(answer) or not has_answer(run) or owns_up(run.output):
        return
    refused: dict[str, list[tuple[Step, str]]] = {}
    for step, call in own_tools(run):
        said = _refusal(step, call, answer)
        if said is not None:
            refused.setdefault(call.tool_name, []).append((step, said))
        elif not looks_up(step, call) and not _states_of(call) & _HARD:
            refused.pop(call.tool_name, None)
    yield from (pair for pairs in refused.values() for pair in pairs)


_HARD = REFUSED | FAILED_STATES


def _refusal(step: Step, call: ToolCall, answer: str) -> str | None:
    """The word for it, unless the answer has it too."""
    if looks_up(step, call) or has_failed(step):
        return None
    states = sorted(_states_of(call) & (_HARD | (_SENT_BACK if _SENDS.search(call.tool_name) else frozenset())))
    if states:
        return None if _TELLS.search(answer) or any(state[:5] in answer for state in states) else states[0]
    is_over = _OVER.search(answer) and not _UNDER_WAY.search(answer)
    return next((f"{key}: false" for key in told_refusals(call)), None) if is_over else None


_TELLS = re.compile(r"reject|declin|denied|deny|refus|turned down|block|fail|insufficient|bounced")
_SENT_BACK = frozenset({"returned", "bounced", "undelivered", "undeliverable"})
_SENDS = re.compile(r"pay|transfer|send|mail|notif|messag", re.IGNORECASE)


def _states_of(call: ToolCall) -> set[str]:
    return set(told_states(call))


def _gone_on(run: Run, step: Step) -> str:
    """What was done all the same by a run that had asked for leave."""
    if not _ASKS_LEAVE.search(step.name):
        return ""
    later = (each for each, call in own_tools(run) if each.index > step.index and not looks_up(each, call))
    done = next(later, None)
    return f", {done.name} was called anyway" if done else ""


_ASKS_LEAVE = re.compile(r"approv|permi|consent|authori[sz]|confirm", re.IGNORECASE)


def unfinished_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """What a tool last said to be unfinished, and the answer says to be done."""
    answer = plain(answer_of(run))
    if SAYS_NOTHING.search(answer) or not has_answer(run) or owns_up(run.output):
        return
    is_over = _OVER.search(answer) and not _UNDER_WAY.search(answer)
    furthest = _furthest(run)
    for step, call in left_unfinished(run):
        state, parts = next(filter(is_waiting, told_states(call)), ""), parts_done(call)
        if not is_over and not (parts and _counts_all(answer, *parts)):
            continue
        if parts and furthest[call.tool_name, parts[1]] > parts[0]:
            continue
        state = state or (text_of(call.result) or "it had not finished").strip()[:_SAID]
        message = f"{step.name} last reported {state}, but the answer says that it is done"
        yield Anomaly(code="unfinished_unsaid", message=message, steps=(step.index,))


_SAID = 80


def _furthest(run: Run) -> dict[tuple[str, int], int]:
    """By tool and the number of all parts, how many there were in the end: uploads go on piece by piece."""
    found: dict[tuple[str, int], int] = defaultdict(int)
    for _, call in own_tools(run):
        done, of = parts_done(call) or (0, 0)
        found[call.tool_name, of] = max(done, found[call.tool_name, of])
    return found


def _counts_all(answer: str, done: int, of: int) -> bool:
    """The answer has the number of all of them, and not how many are there."""
    return of in (counts := counts_in(answer)) and done not in counts


Made = tuple[Step, ToolCall]


def left_unfinished(run: Run) -> list[Made]:
    """Calls that began something that was not over, or the last ones that asked how far it is. One that looks something
    up a single time may tell of what is nobody's business here."""
    asked = {step for repeated in repeated_calls(run) if repeated.is_polled for step in repeated.steps}
    begun: dict[int, Made] = {}
    begun_with: dict[str, int] = {}
    for step, call in own_tools(run):
        reads, is_open = looks_up(step, call), _is_open(call)
        known = {begun_with[value] for value in _values(call.arguments) if begun_with.get(value) in begun}
        for at in known if reads else ():
            del begun[at]
        if is_open and (known or not reads or step.index in asked):
            begun[step.index] = (step, call)
            values = _values(call.arguments) | (_values(call.result) if not reads else set())
            begun_with |= dict.fromkeys(values, step.index)
    return list(begun.values())


def _is_open(call: ToolCall) -> bool:
    """In words only where they count the parts: what runs may be as it is meant to be."""
    return any(map(is_waiting, told_states(call))) or (parts_done(call) is not None and tells_unfinished(call))


def _values(payload: Payload | None) -> set[str]:
    return {str(item) for _, item in leaves(value_of(payload)) if not isinstance(item, bool)}
