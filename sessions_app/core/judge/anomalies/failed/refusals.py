"""Tools that refused, or that had not finished, and whether the answer says so."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.course.repeats import repeated_calls
from sessions_app.core.judge.anomalies.failed.failures import has_failed, is_failed_state
from sessions_app.core.judge.anomalies.reading.answer_words import (
    REFUSAL,
    SAYS_NOTHING,
    answer_of,
    owns_up,
    plain,
    question_of,
)
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.statements import counts_in
from sessions_app.core.judge.anomalies.reading.told_states import (
    is_refusal,
    is_waiting,
    parts_done,
    tells_unfinished,
    told_refusals,
    told_states,
)
from sessions_app.core.judge.anomalies.reading.vocabulary import ASKS_LEAVE, LEAVE, TO_OTHERS
from sessions_app.core.judge.anomalies.reading.words import stems_in
from sessions_app.core.judge.reading import has_answer, leaves, own_tools, text_of, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


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
    """Steps of tools that refused, with the word for it. Not where the answer names the state or denies anything, and
    not where the same tool did it in the end; a tool that looks up tells of somebody else's refusal, unless that stood
    in the way of what was done then."""
    answer = _USELESS.sub("", plain(answer_of(run)))
    if SAYS_NOTHING.search(answer) or not has_answer(run) or owns_up(run.output):
        return
    is_done = _DONE.search(answer) is not None
    refused: dict[str, list[tuple[Step, str]]] = {}
    for step, call in own_tools(run):
        said = _refusal(step, call, answer) if is_done else None
        said = said or _leave_refused(run, step, call, answer)
        if said is not None:
            refused.setdefault(call.tool_name, []).append((step, said))
        elif _grants(step, call):
            refused.pop(call.tool_name, None)
    yield from (pair for pairs in refused.values() for pair in pairs)


_USELESS = re.compile(
    r"(?<!\w)(?:no longer|not|nicht mehr|nicht) (?:used|needed|in use|genutzt|benötigt|gebraucht|verwendet)(?!\w)"
    r"|无用|无误"
)
"""Said of the thing that was taken away, and not of the leave to do so."""


def _grants(step: Step, call: ToolCall) -> bool:
    is_asked = not looks_up(step, call) or ASKS_LEAVE.search(call.tool_name) is not None
    return is_asked and not any(map(_is_hard, _states_of(call))) and not any(told_refusals(call))


def _is_hard(state: str) -> bool:
    return is_refusal(state) or is_failed_state(state)


def _refusal(step: Step, call: ToolCall, answer: str) -> str | None:
    """The word for it, unless the answer has it too."""
    if looks_up(step, call) or has_failed(step):
        return None
    sent_back = _SENT_BACK if _SENDS.search(call.tool_name) else frozenset[str]()
    states = sorted(state for state in _states_of(call) if _is_hard(state) or state in sent_back)
    if states:
        return None if _TELLS.search(answer) or any(state[:5] in answer for state in states) else states[0]
    is_over = _OVER.search(answer) and not _UNDER_WAY.search(answer)
    return next((f"{key}: false" for key in told_refusals(call)), None) if is_over else None


def _leave_refused(run: Run, step: Step, call: ToolCall, answer: str) -> str | None:
    """The word for it, where a later call did something for the same thing, and the answer says that it was granted or
    leave was to be asked for."""
    word, key = _word_of_refusal(call)
    done = gone_on(run, step, call) if word is not None and not _TELLS.search(answer) else None
    if done is None or _gives_reason(run, call, answer):
        return None
    claim = rf"(?<!\w){re.escape(key.removeprefix('is_').lower())}(?!\w)"
    if key and re.search(claim, answer) and not _UNDER_WAY.search(answer) and not _WAITS.search(answer):
        return word
    asked = stems_in(question_of(run), run.instructions or "")
    is_wanted = not asked.isdisjoint(stems_in(key, call.tool_name.replace("_", " ")))
    is_leave = ASKS_LEAVE.search(call.tool_name) is not None and "valid" not in key.lower()
    is_told_why = LEAVE.search(call.tool_name) is not None and _tells_why(call) and not TO_OTHERS.search(done.name)
    return word if (is_wanted and is_leave) or is_told_why else None


def _tells_why(call: ToolCall) -> bool:
    asked, told = _values(call.arguments), (item for _, item in leaves(value_of(call.result)))
    return any(isinstance(item, str) and " " in item.strip() and item not in asked for item in told)


def _gives_reason(run: Run, call: ToolCall, answer: str) -> bool:
    """At least two of the words that the tool said beside those of the call and of the question."""
    texts = [item for _, item in leaves(value_of(call.result)) if isinstance(item, str)]
    words = stems_in(*texts) - stems_in(question_of(run), run.instructions or "", *_values(call.arguments))
    return len(words & stems_in(answer)) > 1


_WAITS = re.compile(r"(?<!\w)(?:pending|wait\w*|awaits|once|until)(?!\w)")


def _word_of_refusal(call: ToolCall) -> tuple[str | None, str]:
    """And the key that was false."""
    if (key := next(told_refusals(call), None)) is not None:
        return f"{key}: false", key
    said = (text_of(call.result) or "").strip()
    is_said = 0 < len(said) <= _LINE and (REFUSAL.search(plain(said)) or SAYS_NOTHING.search(plain(said)))
    if call.outcome == "denied" or (is_said and ASKS_LEAVE.search(call.tool_name)):
        return said[:_SAID] or "denied", ""
    return next((state for state in _states_of(call) if is_refusal(state)), None), ""


_LINE = 300


def gone_on(run: Run, step: Step, call: ToolCall) -> Step | None:
    """What was done then with a value that the call had, or by the tool that it named."""
    made = _made_with(run)
    later = (each for value in _values(call.arguments) if len(value) > 1 for each in made.get(value, ()))
    return min((each for each in later if each.index > step.index), key=lambda each: each.index, default=None)


@once_each
def _made_with(run: Run) -> dict[str, list[Step]]:
    """By a value, the last few steps that did something with it."""
    found: dict[str, list[Step]] = defaultdict(list)
    for step, call in own_tools(run):
        if not looks_up(step, call) and not has_failed(step) and call.outcome != "denied":
            for value in {call.tool_name, *_values(call.arguments)}:
                found[value] = [*found[value][-_MOST:], step]
    return found


_MOST = 20


_TELLS = re.compile(r"reject|declin|denied|deny|refus|turned down|block|fail|insufficient|bounced")
_SENT_BACK = frozenset({"returned", "bounced", "undelivered", "undeliverable"})
_SENDS = re.compile(r"pay|transfer|send|mail|notif|messag", re.IGNORECASE)


def _states_of(call: ToolCall) -> set[str]:
    return set(told_states(call))


def _gone_on(run: Run, step: Step) -> str:
    """What was done all the same by a run that had asked for leave."""
    if not isinstance(step.call, ToolCall) or not _asked_leave(step.call):
        return ""
    later = (each for each, call in own_tools(run) if each.index > step.index and not looks_up(each, call))
    done = gone_on(run, step, step.call) or next(later, None)
    return f", {done.name} was called anyway" if done else ""


def _asked_leave(call: ToolCall) -> bool:
    return ASKS_LEAVE.search(call.tool_name) is not None or any(told_refusals(call)) or call.outcome == "denied"


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
