"""A run in one line, and its loops folded for display."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from sessions_app.core.judge.anomalies.anomaly import Anomaly, first_odd_step
from sessions_app.core.judge.anomalies.course.repeats import RepeatedCall, repeated_calls
from sessions_app.core.judge.anomalies.failed.failures import failed_steps, unhealed
from sessions_app.core.judge.anomalies.failed.fallbacks import is_done_by_another
from sessions_app.core.judge.anomalies.failed.gone_past import TOLD
from sessions_app.core.judge.anomalies.failed.made_again import made_again_in_words
from sessions_app.core.judge.last_calls import asked_last, is_settled
from sessions_app.core.judge.reading import (
    TIMES,
    argument_key,
    count,
    has_answer,
    join_words,
    own_tools,
    result_key,
)
from sessions_app.core.run import (
    AgentCall,
    ErrorInfo,
    ModelCall,
    OtherCall,
    Run,
    Step,
    ToolCall,
    broke_off_at,
    counted_steps,
)


def story(run: Run, anomalies: Iterable[Anomaly] = ()) -> str:
    """How long, the call made most often, how it ended, and where to look first."""
    anomalies = list(anomalies)
    odd, failures = first_odd_step(anomalies), _failures_in_words(run, anomalies)
    parts = [
        count(len(counted_steps(run)), "step"),
        _calls_in_words(run, odd),
        _end_in_words(run),
        *failures,
        None if odd is None or {f"step {odd} {_FAILED}", f"step {odd} {_TOLD}"} & set(failures) else f"{ODD_AT}{odd}",
        None if odd is not None or failures else _doubt_in_words(anomalies),
    ]
    return " · ".join(part for part in parts if part)


ODD_AT = "first anomaly at step "
CUT_OFF, STILL_RUNNING = "cut off", "still running"


def named_step(line: str) -> int | None:
    """The first step that a story names for a failure, a doubt or an anomaly."""
    found = _NAMED_STEP.search(line)
    return next((int(step) for step in found.groups() if step), None) if found else None


_NAMED_STEP = re.compile(
    rf" · (?:\d+ steps from )?steps? (\d+)[\d, and]* (?:failed|was refused|timed out)| · {ODD_AT}(\d+)|\(step (\d+)\)$"
)


def _doubt_in_words(anomalies: list[Anomaly]) -> str | None:
    doubt = next((each for each in anomalies if each.is_doubt and each.steps), None)
    return f"{doubt.message[:_WORDS]} (step {doubt.odd_step})" if doubt else None


_WORDS = 120


def _calls_in_words(run: Run, odd: int | None) -> str:
    """A poll leads away from what went wrong elsewhere."""
    calls = len(own_tools(run))
    agents = sum(isinstance(step.call, AgentCall) for step in run.steps)
    others = [count(agents, "sub-agent")] if agents else []
    if not calls:
        return join_words(others) or "no tool call"
    again = max(repeated_calls(run), key=_weight, default=None)
    if again and again.without_reason:
        return f"{again.name} called {again.without_reason + 1} {TIMES} with the same arguments"
    if again and again.is_polled and len(again.calls) > 2 and (odd is None or odd in again.steps):
        return f"{again.name} polled {len(again.calls)} {TIMES}"
    return join_words([count(calls, "tool call"), *others])


def _weight(repeated: RepeatedCall) -> tuple[int, int]:
    return repeated.without_reason, repeated.is_polled * len(repeated.calls)


def _end_in_words(run: Run) -> str:
    error = _error_of(run)
    if run.status == "error":
        return f"ended in {error or 'an error'}"
    if run.status == "running":
        return _running_in_words(run)
    at = broke_off_at(run)
    if at is not None:
        return f"{CUT_OFF} at step {at}" if at <= len(run.steps) else f"{CUT_OFF} after step {at - 1}"
    return "answered" if has_answer(run) else "no answer"


def _running_in_words(run: Run) -> str:
    awaited = dict.fromkeys(call.tool_name for step, call in asked_last(run) if not is_settled(step, call))
    return f"{STILL_RUNNING}, waiting for {join_words(list(awaited)[:_NAMED])}" if awaited else STILL_RUNNING


_FAILED = "failed"
_TOLD = "failed, and the answer says so"
_RETRIED = "failed, then succeeded on retry"
_DONE_BY_ANOTHER = "failed, then another tool was called in its place"


def _failures_in_words(run: Run, anomalies: list[Anomaly]) -> list[str]:
    """Each step that failed, whatever came later, and apart from them those that the answer tells of and those that
    were made again with success, at once or after something else was done; the error that ended the run is told
    already."""
    refused = _refused(run)
    by_number = failed_steps(run) | refused
    failed = [by_number[at] for at in sorted(by_number) if not isinstance(by_number[at].call, OtherCall)]
    if run.status == "error" and failed and failed[-1] is run.steps[-1]:
        failed.pop()
    told_apart = {step.index: words for step in failed if (words := _made_again(run, step))}
    ended: dict[str, list[Step]] = {words: [] for words in (_FAILED, _TOLD, _RETRIED, _DONE_BY_ANOTHER)}
    open_ones = {step.index for step, _ in unhealed(run)} | _never_accepted(run, refused)
    told = {at for each in anomalies if each.message.endswith(TOLD) for at in each.steps}
    for step in (each for each in failed if each.index not in told_apart):
        ended[_how_it_ended(run, step, open_ones, told)].append(step)
    return [*(f"{_numbered(steps)} {words}" for words, steps in ended.items() if steps), *_first_of(told_apart)]


def _first_of(told: dict[int, str]) -> list[str]:
    more = [f"{len(told) - _NAMED} more likewise"] if len(told) > _NAMED else []
    return [*list(told.values())[:_NAMED], *more]


def _made_again(run: Run, step: Step) -> str | None:
    return made_again_in_words(run, step, step.call) if isinstance(step.call, ToolCall) else None


def _how_it_ended(run: Run, step: Step, open_ones: set[int], told: set[int]) -> str:
    if not isinstance(step.call, ToolCall) or step.index in open_ones:
        return _TOLD if step.index in told else _FAILED
    return _DONE_BY_ANOTHER if is_done_by_another(run, step, step.call) else _RETRIED


def _refused(run: Run) -> dict[int, Step]:
    """Calls that a tool sent back to the model, by number."""
    return {step.index: step for step, call in own_tools(run) if call.outcome == "retried"}


def _never_accepted(run: Run, refused: dict[int, Step]) -> set[int]:
    """Of these, those whose tool took no later call either, with whatever arguments."""
    last = {call.tool_name: step.index for step, call in own_tools(run) if step.index not in refused}
    return {at for at, step in refused.items() if last.get(step.name, 0) < at}


def _numbered(steps: Sequence[Step]) -> str:
    numbers = [str(step.index) for step in steps]
    if len(steps) > _NAMED:
        return f"{count(len(steps), 'step')} from step {numbers[0]}"
    return f"step{'s' if len(steps) > 1 else ''} {join_words(numbers)}"


_NAMED = 3
"""More steps than these are counted."""


def _error_of(run: Run) -> str | None:
    errors = [run.error, *(step.error for step in reversed(run.steps))]
    return next((name for error in errors if error and (name := _error_name(error))), None)


def _error_name(error: ErrorInfo) -> str | None:
    return error.type or (error.message and error.message[:60])


# --- folding -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Steps shown as one row: a step alone, or a call that was made again and again."""

    first: int
    last: int
    count: int
    """How often the call was made."""
    name: str
    same_arguments: bool = True
    same_result: bool = True


Signature = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Turn:
    """A model's answer and what it led to; or steps that no model asked for."""

    steps: tuple[Step, ...]

    @property
    def calls(self) -> list[ToolCall]:
        return [step.call for step in self.steps if isinstance(step.call, ToolCall)]

    @property
    def signature(self) -> Signature:
        return tuple((call.tool_name, argument_key(call)) for call in self.calls)

    @property
    def results(self) -> tuple[bytes | None, ...]:
        return tuple(result_key(call) for call in self.calls)


def collapse_repeats(steps: Sequence[Step]) -> list[Group]:
    """All steps in order; turns that made the same calls as the one before are one group."""
    return [
        group
        for signature, turns in groupby(_turns(steps), key=lambda turn: turn.signature)
        for group in _groups(signature, list(turns))
    ]


def _turns(steps: Sequence[Step]) -> Iterator[_Turn]:
    turn: list[Step] = []
    for step in steps:
        if isinstance(step.call, ModelCall) and turn:
            yield _Turn(steps=tuple(turn))
            turn = []
        turn.append(step)
    if turn:
        yield _Turn(steps=tuple(turn))


def _groups(signature: Signature, turns: list[_Turn]) -> Iterator[Group]:
    if len(turns) > 1 and signature:
        yield _folded_turns(signature, turns)
        return
    for turn in turns:
        yield from _folded_steps(turn)


def _folded_turns(signature: Signature, turns: list[_Turn]) -> Group:
    return Group(
        first=turns[0].steps[0].index,
        last=turns[-1].steps[-1].index,
        count=len(turns),
        name=" + ".join(name for name, _ in signature),
        same_result=len({turn.results for turn in turns}) == 1,
    )


def _folded_steps(turn: _Turn) -> Iterator[Group]:
    """Within a turn equal calls that follow each other are one group."""
    for _, same in groupby(turn.steps, key=_call_key):
        steps = list(same)
        results = {result_key(s.call) for s in steps if isinstance(s.call, ToolCall)}
        yield Group(
            first=steps[0].index,
            last=steps[-1].index,
            count=len(steps),
            name=steps[0].name,
            same_result=len(results) <= 1,
        )


def _call_key(step: Step) -> tuple[object, ...]:
    if isinstance(step.call, ToolCall):
        return ("tool", step.call.tool_name, argument_key(step.call))
    return ("alone", step.index)
