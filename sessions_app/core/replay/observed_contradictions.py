"""What a run that was observed says against itself: nobody knows then which of the two its machine saw."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.verdict import judge, judge_code
from sessions_app.core.replay.observed_pairs import Pairs, Tools
from sessions_app.core.run import Run
from sessions_app.core.unproven_outcomes import why_unproven


def first_contradiction(pairs: Pairs, observed: Run, tools: Tools) -> Reason | None:
    """At the recorded step beside it, in the run as it came. What the recording has as well, its own verdict says."""
    known = {reason.code for reason in judge(pairs.recorded).reasons}
    found = [
        reason
        for reason in judge_code(observed, runs_tools=tools == "run").reasons
        if "_contradict" in reason.code and reason.code not in known
    ]
    if not found:
        return _unproven(pairs)
    message = f"The run that was observed contradicts itself: {found[0].message}"
    return replace(found[0], message=message, step=_recorded_step(pairs, found[0].step))


def _unproven(pairs: Pairs) -> Reason | None:
    why = why_unproven(pairs.observed)
    if why is None or why_unproven(pairs.recorded) is not None:
        return None
    message = f"The run that was observed says that its outcome is not the agent's: {why}"
    return Reason(code="outcome_unproven", message=message, step=len(pairs.recorded.steps) + 1)


def _recorded_step(pairs: Pairs, index: int | None) -> int:
    beside = {pair.observed.index: pair.recorded.index for pair in pairs.steps if pair.recorded}
    last = len(pairs.observed.steps)
    if index is not None and index > last:
        return len(pairs.recorded.steps) + 1
    return beside.get(index or 0, 1)
