"""What a replay shows of the arguments that tools are given: one with the team's code hears them, a rebuilt one has
none of that code."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.reading import join_words
from sessions_app.core.payload import JsonObject
from sessions_app.core.ran_with import both_given, code_behind, is_told, said_of, unknown_arguments
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.replay.matching import Mismatch, Tally, first_mismatch
from sessions_app.core.replay.observed import Observations
from sessions_app.core.replay.proof import PROVEN, Part, not_comparable
from sessions_app.core.run import Run, Step, ToolCall, tool_ran

NO_CALL = "no tool call was compared"
SAME = "the tools were called with the same arguments"
NOT_TOLD = f"{SAME}; what they received was not recorded"
NOT_MADE_AGAIN = "code that transforms the arguments before the tools did not run again"
"""By a replay without the team's code."""


def first_other(recorded: Step, now: JsonObject, tally: Tally) -> Mismatch | None:
    """Where a tool is given other arguments now, although the model asked with the same."""
    assert isinstance(recorded.call, ToolCall)
    if recorded.call.arguments is None:
        return None
    given = both_given(recorded_arguments(recorded.call.arguments), said_of(recorded), now)
    if given is None:
        return None
    return first_mismatch(*given, raw=given[0], path="arguments", tally=tally)


def arguments_part(run: Run, seen: Observations) -> Part:
    """Of the calls that a replay made; a difference has a place of its own."""
    called = [(run.steps[call.step - 1], call.given) for call in seen.calls if call.step]
    reached = [(step, given) for step, given in called if tool_ran(step) is not False]
    if not seen.calls:
        return not_comparable(NO_CALL)
    unasked = [step.index for step, _ in called if isinstance(step.call, ToolCall) and step.call.arguments is None]
    if unasked:
        return not_comparable(f"the arguments of step {unasked[0]} were not recorded")
    if not is_told(run) and reached:
        return not_comparable(NOT_TOLD)
    reasons = list(dict.fromkeys(reason for step, given in reached for reason in _reasons(step, given, seen)))
    return not_comparable("; ".join([SAME, *reasons])) if reasons else PROVEN


def _reasons(step: Step, now: JsonObject | None, seen: Observations) -> Iterator[str]:
    said = said_of(step)
    if not seen.hears_arguments and said:
        yield NOT_MADE_AGAIN
        return
    for each in (said, now or {}):
        if code_behind(each):
            yield f"{join_words(code_behind(each))} may have given them something else"
        if unknown_arguments(each) and isinstance(step.call, ToolCall):
            yield f"{join_words(unknown_arguments(each))} of {step.call.tool_name} is not comparable as JSON"
