"""Answers of models that were cut off at their limit, and that the run went on with as if they were whole."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise

from sessions_app.core.finish_reasons import is_cut
from sessions_app.core.history import nodes
from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.last_calls import calls_in
from sessions_app.core.judge.reading import (
    ended_in_error,
    has_answer,
    leaves,
    main_models,
    object_of,
    own_tools,
    seen_message,
    text_of,
    value_of,
)
from sessions_app.core.run import ModelCall, Run, Step

CutCall = tuple[Step, ModelCall, str]


def answer_cut(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """The last answer, where the run ended well: nobody saw that there was more to say. Others where a tool was called
    with them, the run's own answer ends with their text, or the next answer calls tools and says nothing more."""
    found = [(step, call, reason) for step, call in run.model_calls if (reason := _cut_reason(call))]
    last = {step.index for step, _ in main_models(run)[-1:]}
    users = _Users(run) if found else None
    for step, call, reason in found if has_answer(run) else ():
        if step.index in last:
            message = f"The answer was cut off: finish reason {reason}"
            yield Anomaly(code="answer_cut", message=message, steps=(step.index,))
        elif users and (user := users.of(step, call)):
            message = f"A model's answer was cut off (finish reason {reason}), and {user} used it"
            yield Anomaly(code="answer_cut", message=message, steps=(step.index,))


def _cut_reason(call: ModelCall) -> str | None:
    reason = call.finish_reason or object_of(call.response).get("finish_reason")
    return str(reason) if is_cut(reason) else None


class _Users:
    """What went on with the text of an answer, or made the calls that it asks for."""

    def __init__(self, run: Run) -> None:
        self._calls: dict[str, Step] = {}
        self._ends: dict[str, tuple[int, str]] = {}
        for step, call in own_tools(run):
            if call.call_id is not None and call.outcome != "retried" and not ended_in_error(step):
                self._calls[call.call_id] = step
            for _, item in leaves(value_of(call.arguments)):
                self._ends |= dict.fromkeys(_ends_of(item), (step.index, step.name))
        self._ends |= dict.fromkeys(_ends_of(text_of(run.output)), (len(run.steps) + 1, "the run's answer"))
        self._next = {step.index: after for (step, _), (_, after) in pairwise(main_models(run))}

    def of(self, step: Step, call: ModelCall) -> str | None:
        called = (self._calls.get(str(part.get("tool_call_id"))) for part in calls_in(call))
        user = next((each for each in called if each is not None and each.index > step.index), None)
        at, name = self._ends.get(_end_of(_text(call)), (0, ""))
        return user.name if user else (name if at > step.index else self._caller_behind(step, call))

    def _caller_behind(self, step: Step, call: ModelCall) -> str | None:
        """What the next answer called, where it was given the text and did not go on with it in words."""
        after = self._next.get(step.index)
        if after is None or calls_in(call) or not _text(call) or _text(after) or not _is_given(call, after):
            return None
        return next((str(part.get("tool_name")) for part in calls_in(after)), None)


def _is_given(call: ModelCall, after: ModelCall) -> bool:
    own = call.output_history
    recent = islice(nodes(after.history), _BEHIND)
    return own is not None and any(node.digest == own.digest for node in recent)


_BEHIND = 3
"""Messages between an answer and the next."""


_END = 40
_SHORTEST = 12
"""Characters by which a text is known again."""


def _ends_of(value: object) -> Iterator[str]:
    """Of each line of a text: where a text goes on behind what was cut, somebody saw to it."""
    if isinstance(value, str):
        yield from (end for line in value.splitlines() if len(end := _end_of(line)) >= _SHORTEST)


def _end_of(text: str) -> str:
    return text.rstrip()[-_END:].rpartition("\n")[2]


def _text(call: ModelCall) -> str:
    parts = seen_message(call.response, step=0).parts_of("text") if call.response else []
    return "".join(str(part.get("content")) for part in parts)
