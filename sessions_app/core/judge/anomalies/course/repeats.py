"""Many calls, and calls that were made again."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.answers.cut_json import answer_texts, is_cut_json
from sessions_app.core.judge.anomalies.failed.failures import has_failed
from sessions_app.core.judge.anomalies.failed.nothing_found import is_empty_answer
from sessions_app.core.judge.anomalies.failed.refused_steps import says_error, says_failed
from sessions_app.core.judge.anomalies.reading.answer_words import answer_of, question_of
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.told_states import tells_unfinished
from sessions_app.core.judge.anomalies.reading.waits import only_waits, waited_between
from sessions_app.core.judge.reading import (
    TIMES,
    argument_key,
    calls_made,
    ended_in_error,
    join_words,
    leaves,
    object_of,
    own_tools,
    value_of,
)
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, ToolCall
from sessions_app.core.shared_values import once_each


def many_tool_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """Of the run as a whole, so at no step. A mere note where no call was made again without a reason: there was much
    to do."""
    calls = calls_made(run)
    if len(calls) > rules.max_tool_calls:
        is_plain = not any(repeated.without_reason for repeated in repeated_calls(run))
        message = f"{len(calls)} tool calls"
        yield Anomaly(code="many_tool_calls", message=message, level="info" if is_plain else "warning")


def duplicate_calls(run: Run, rules: Rules) -> Iterator[Anomaly]:
    found = [anomaly for repeated in repeated_calls(run) for anomaly in _told(repeated)]
    yield from sorted(found, key=lambda anomaly: anomaly.steps[-1:])


Made = tuple[int | None, ToolCall]


@dataclass(frozen=True, kw_only=True, slots=True)
class RepeatedCall:
    """A call that was made with the same arguments before."""

    calls: tuple[Made, ...]
    """The first one, and those that were made again; without those that read anew what had been changed."""
    is_polled: bool
    """It asked how far something is, or what is new."""
    reasons: tuple[str | None, ...]
    """Of each that was made again."""

    @property
    def name(self) -> str:
        return self.calls[0][1].tool_name

    @property
    def steps(self) -> tuple[int, ...]:
        return tuple(step for step, _ in self.calls if step is not None)

    @property
    def without_reason(self) -> int:
        return 0 if self.is_polled else self.reasons.count(None)


def _told(repeated: RepeatedCall) -> Iterator[Anomaly]:
    if repeated.is_polled:
        message = f"{repeated.name} polled {len(repeated.calls)} {TIMES}"
        yield Anomaly(code="asked_again", message=message, steps=repeated.steps, level="info")
        return
    at, made = repeated.calls[0][0], _made_in_words(repeated)
    for (step, _), reason in zip(repeated.calls[1:], repeated.reasons, strict=True):
        steps = tuple(each for each in (at, step) if each is not None)
        if reason is None:
            yield Anomaly(code="duplicate_call", message=f"Duplicate call: {repeated.name}{made}", steps=steps)
        else:
            message = f"Called again {reason}: {repeated.name}"
            yield Anomaly(code="duplicate_call", message=message, steps=steps, level="info")


def _made_in_words(repeated: RepeatedCall) -> str:
    made = made_ids([call for _, call in repeated.calls])
    return f" ({join_words([name for ids in made for name in ids])})" if len(made) == 2 else ""


@once_each
def repeated_calls(run: Run) -> list[RepeatedCall]:
    same: dict[tuple[str, bytes], list[Made]] = defaultdict(list)
    for step, call in calls_made(run):
        if step is None or not only_waits(run.steps[step - 1], call):
            same[call.tool_name, argument_key(call)].append((step, call))
    again = [calls for calls in same.values() if len(calls) > 1]
    changes = _Changes(run) if again else None
    repeats = [calls for each in again if changes and len(calls := changes.not_read_anew(each)) > 1]
    return [_repeated(run, calls, is_alone=len(repeats) == 1) for calls in repeats]


def _repeated(run: Run, calls: list[Made], *, is_alone: bool) -> RepeatedCall:
    meant = _how_meant(run, calls) or ("with the same answer" if is_alone and _is_harmless(run, calls) else None)
    reasons = ["after it failed" if _failed(run, before) else meant for before, _ in pairwise(calls)]
    return RepeatedCall(calls=tuple(calls), is_polled=_is_polled(run, calls), reasons=tuple(reasons))


def _is_harmless(run: Run, calls: list[Made]) -> bool:
    """Something was looked up once more, and was told the same; what is repeated more often is a loop."""
    told = [(run.steps[at - 1], call) for at, call in calls if at is not None and call.result is not None]
    is_read = len(calls) == len(told) == 2 and all(looks_up(step, call) for step, call in told)
    return is_read and not any(_is_cut(*each) or is_empty_answer(each[1]) for each in told)


def _failed(run: Run, made: Made) -> bool:
    at, call = made
    return at is not None and _ended_badly(run.steps[at - 1], call)


def _ended_badly(step: Step, call: ToolCall) -> bool:
    is_failed = not looks_up(step, call) and (says_failed(call) or has_failed(step))
    return ended_in_error(step) or says_error(call) or is_failed


def _how_meant(run: Run, calls: list[Made]) -> str | None:
    if _TIMES_ASKED.search(question_of(run).lower()):
        return "as asked"
    made, answer = made_ids([call for _, call in calls]), answer_of(run)
    return "as the answer says" if made and all(any(name in answer for name in ids) for ids in made) else None


_TIMES_ASKED = re.compile(
    r"(?<!\w)(?:twice|(?:two|three|four|five) times|zweimal|dreimal|deux fois|dos veces|duas vezes)(?!\w)|二回|2回|两次"
)


class _Changes:
    """Where a run changed what its later calls read, or may have: a call that failed leaves it open."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._any: list[int] = []
        self._of: dict[str, list[int]] = defaultdict(list)
        for step, call in own_tools(run):
            if not looks_up(step, call) and call.outcome not in _NOT_RUN and not only_waits(step, call):
                self._any.append(step.index)
                for value in _values(call):
                    self._of[value].append(step.index)

    def not_read_anew(self, calls: list[Made]) -> list[Made]:
        """Calls that look up what was changed since they were made before are no repeats, nor are those that check
        what was done and answer otherwise, as tests do."""
        return [calls[0], *(call for before, call in pairwise(calls) if not self._is_read_anew(before, call))]

    def _is_read_anew(self, before: Made, made: Made) -> bool:
        (start, _), (at, call) = before, made
        if start is None or at is None:
            return False
        if not looks_up(self._run.steps[at - 1], call):
            return self._is_checked_anew(before, made) and _first_after(self._any, start + 1) < at
        values = _values(call)
        changes = [self._of[value] for value in values if value in self._of] if values else [self._any]
        return any(_first_after(steps, start) < at for steps in changes)

    def _is_checked_anew(self, *made: Made) -> bool:
        went_well = [(self._run.steps[at - 1], call) for at, call in made if at is not None and call.result is not None]
        is_told = len(went_well) == len(made) and not any(ended_in_error(step) for step, _ in went_well)
        return is_told and _has_changed([call for _, call in made]) and not _makes_something(went_well)


_NOT_RUN = ("retried", "denied")


def _first_after(steps: list[int], start: int) -> float:
    at = bisect_left(steps, start)
    return steps[at] if at < len(steps) else float("inf")


def _values(call: ToolCall) -> set[str]:
    return {str(item) for _, item in leaves(value_of(call.arguments)) if item not in (None, "", True, False)}


def _is_polled(run: Run, made: list[Made]) -> bool:
    """A call that changes nothing, whose answers changed or said that something is not over yet, or before which the
    run waited. One that gives a new id each time has made something each time."""
    answered = [(run.steps[at - 1], call) for at, call in made if at is not None and call.result is not None]
    went_well = [(step, call) for step, call in answered if not _ended_badly(step, call)]
    if len(answered) < len(made) or len(went_well) < 2 or any(_is_cut(*pair) for pair in answered):
        return False
    calls, waited = [call for _, call in went_well], waited_between(run, [step.index for step, _ in went_well])
    if all(looks_up(step, call) for step, call in went_well):
        return waited or _has_changed(calls) or all(map(tells_unfinished, calls[:-1]))
    is_asked_again = _has_changed(calls) or (waited and all(map(is_empty_answer, calls)))
    return is_asked_again and not _makes_something(went_well)


def _is_cut(step: Step, call: ToolCall) -> bool:
    return any(is_cut_json(text) for text in answer_texts(step, call))


def _has_changed(calls: list[ToolCall]) -> bool:
    return len({call.result.content for call in calls if call.result}) > 1


def _makes_something(calls: list[tuple[Step, ToolCall]]) -> bool:
    return any(step.extra.get("tool_kind") == "write" for step, _ in calls) or bool(made_ids([c for _, c in calls]))


ID = re.compile(r"[A-Za-z]{1,12}[_-](?=\w*\d)\w+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def made_ids(calls: list[ToolCall]) -> list[list[str]]:
    """Of each answer the ids that no other has under that key, where each has one; who asks for nothing in particular
    may be given the next of a queue."""
    if not object_of(calls[0].arguments):
        return []
    ids = [dict.fromkeys(_ids_in(object_of(call.result))) for call in calls]
    often = Counter(each for found in ids for each in found)
    own = [[name for key, name in found if often[key, name] == 1] for found in ids]
    return own if all(own) else []


def _ids_in(answer: JsonObject) -> Iterator[tuple[str, str]]:
    yield from ((key, item) for key, item in answer.items() if isinstance(item, str) and ID.fullmatch(item))
