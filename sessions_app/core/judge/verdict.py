"""Can this run be replayed, to which step, and what stands in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from sessions_app.core.history import History
from sessions_app.core.judge.beside_messages import gaps_beside_messages
from sessions_app.core.judge.call_steps import call_step_gaps
from sessions_app.core.judge.contradictions import record_gaps
from sessions_app.core.judge.course import course_gaps
from sessions_app.core.judge.cut_values import cut_values
from sessions_app.core.judge.ends_of_the_loop import may_be_taken
from sessions_app.core.judge.last_calls import is_answered, is_settled, kinds_said
from sessions_app.core.judge.model_http import model_http_gaps
from sessions_app.core.judge.openai_copies import copy_gaps
from sessions_app.core.judge.openai_loop import openai_gaps
from sessions_app.core.judge.openai_returns import return_gaps
from sessions_app.core.judge.outcome import OF_OTHER_CODE, OF_TOOLS, outcome_gaps
from sessions_app.core.judge.outside_messages import outside_messages
from sessions_app.core.judge.reading import (
    is_framework_written,
    is_of_recorder,
    main_models,
    own_tools,
    seen_message,
    step_name,
)
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.judge.retries import retry_gaps
from sessions_app.core.judge.reviews import review_gaps
from sessions_app.core.judge.saved_outcome import saved_outcome_gaps
from sessions_app.core.judge.unreadable import unreadable_contents, unreadable_messages, unreadable_parameters
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.plan import repeated_requests
from sessions_app.core.run import (
    EXCHANGES,
    SPANS,
    WAITING,
    ModelCall,
    Run,
    Step,
    ToolCall,
    broke_off_at,
    main_steps,
    was_stopped,
)
from sessions_app.core.shared_values import shared_values

VerdictName = Literal["replayable", "replayable_to_step", "cold"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a run can be replayed; `step` is the last one that can, for `replayable_to_step`."""

    verdict: VerdictName
    step: int | None = None
    reasons: tuple[Reason, ...] = ()

    @property
    def limit(self) -> Reason | None:
        """The first thing that ends a replay from the recording."""
        return next(iter(self.reasons), None)

    @property
    def words(self) -> str:
        return " ".join(reason.message for reason in self.reasons)

    def to_json(self) -> JsonObject:
        reasons = [reason.to_json() for reason in self.reasons]
        return {"verdict": self.verdict, "step": self.step, "reasons": reasons}


@shared_values()
def judge(run: Run) -> Verdict:
    cold = tuple(reason for check in COLD_CHECKS if (reason := check(run)))
    if cold:
        return Verdict(verdict="cold", reasons=cold)
    gaps = sorted((gap for find in GAP_CHECKS for gap in find(run)), key=_step_of)
    if not gaps:
        return Verdict(verdict="replayable")
    return _up_to_gap(run, tuple(gaps))


def judge_code(run: Run, *, runs_tools: bool) -> Verdict:
    """The same of a replay of the team's own code, which does itself what a rebuilt agent lacks."""
    judged, without = judge(run), OF_OTHER_CODE | OF_TOOLS if runs_tools else OF_OTHER_CODE
    gaps = tuple(reason for reason in judged.reasons if reason.code not in without)
    if gaps == judged.reasons:
        return judged
    return _up_to_gap(run, gaps) if gaps else Verdict(verdict="replayable")


def _up_to_gap(run: Run, gaps: tuple[Reason, ...]) -> Verdict:
    last = _step_of(gaps[0]) - 1
    answered = any(step.index <= last and call.response for step, call in run.model_calls)
    if not answered:
        return Verdict(verdict="cold", reasons=gaps)
    return Verdict(verdict="replayable_to_step", step=last, reasons=gaps)


def _step_of(reason: Reason) -> int:
    return reason.step or 0


# --- nothing to replay at all ------------------------------------------------------------------


def _still_running(run: Run) -> Reason | None:
    if run.status != "running":
        return None
    return Reason(code="still_running", message="The run has not ended yet.")


def _no_steps(run: Run) -> Reason | None:
    if run.steps:
        return None
    if run.output is None:
        return reason_at(run, "nothing_recorded", "Neither messages nor steps were recorded.")
    return reason_at(run, "only_final_output", "Only the final output was saved: no messages, no steps.")


def _no_model_answers(run: Run) -> Reason | None:
    models = main_models(run)
    if not run.steps or any(call.response for _, call in models):
        return None
    if any(step.error for step, _ in models) or (models and run.error):
        return None
    return reason_at(run, "model_answers_missing", _NO_ANSWER if models else _no_model(run))


_NO_ANSWER = "No model answer was recorded."


def _no_model(run: Run) -> str:
    words = "No model call was recorded, so there is no request that a replay could check."
    has_states = any(step.state is not None for step in run.steps)
    return f"{words} The recorded states play back, step by step." if has_states else words


def _first_answer_missing(run: Run) -> Reason | None:
    """Without the first answer a replay has nothing to begin with, whatever came later."""
    models = main_models(run)
    if not any(call.response for _, call in models) or not _has_no_answer(*models[0]):
        return None
    step = models[0][0]
    message = f"The first model call, {step_name(step)}, has no recorded answer."
    return reason_at(run, "first_model_answer_missing", message, step)


def _no_tool_answers(run: Run) -> Reason | None:
    gaps = _tool_gaps(run)
    ran = [pair for pair in own_tools(run) if not is_framework_written(pair[1])]
    if not gaps or any(is_answered(step, call) for step, call in ran):
        return None
    message = "Tool answers were not recorded, starting with the first call."
    return reason_at(run, "tool_answers_missing", message, gaps[0])


def _no_input(run: Run) -> Reason | None:
    models = main_models(run)
    if run.input is not None or run.prior is not None or not models or models[0][1].history:
        return None
    return reason_at(run, "input_missing", "Neither the input nor a request that holds it was recorded.")


ColdCheck = Callable[[Run], Reason | None]
COLD_CHECKS: tuple[ColdCheck, ...] = (
    _still_running,
    _no_steps,
    _no_model_answers,
    _first_answer_missing,
    _no_tool_answers,
    _no_input,
)


# --- gaps in the middle ------------------------------------------------------------------------


def _missing_model_answers(run: Run) -> Iterator[Reason]:
    for step, call in main_models(run):
        if _has_no_answer(step, call) or (call.response is None and _must_have_answer(run, step)):
            message = f"The model answer at {step_name(step)} was not recorded."
            yield reason_at(run, "model_answer_missing", message, step)
        elif run.source_format == EXCHANGES and call.response is None and _goes_on(run, step):
            message = f"The request of {step_name(step)} failed, and the run continued with a different one."
            yield reason_at(run, "model_answer_missing", message, step)


def _must_have_answer(run: Run, step: Step) -> bool:
    """Of a stream that fails, the loop keeps what came before; by itself it does not go on after a request that failed,
    but a client may make that again."""
    if not is_of_recorder(run):
        return False
    return (run.agent.entry_point or "").startswith("run_stream") or _goes_on(run, step)


def _goes_on(run: Run, step: Step) -> bool:
    return step.index < main_models(run)[-1][0].index and step.index not in repeated_requests(run)


def _missing_tool_answers(run: Run) -> Iterator[Reason]:
    for step in _tool_gaps(run):
        message = f"The answer of {step_name(step)} was not recorded."
        yield reason_at(run, "tool_answer_missing", message, step)


def _broken_off(run: Run) -> Iterator[Reason]:
    at = broke_off_at(run)
    if at is not None:
        open_steps = [step for step in run.steps if step.index == at]
        where = f"in {step_name(open_steps[0])}" if open_steps else f"after step {at - 1}"
        yield Reason(code="broke_off", message=f"The recording breaks off {where}: {_why(run)}.", step=at)


def _why(run: Run) -> str:
    lost = run.extra.get("recorder.lost")
    if isinstance(lost, str):
        return lost[:200]
    if was_stopped(run.error):
        return "the run was stopped from outside"
    waiting = next((step for step, call in run.tool_calls if call.outcome in WAITING), None)
    if waiting is not None:
        return f"{step_name(waiting)} waits for somebody"
    return "its spans end there" if run.source_format == SPANS else NOT_RECORDED


NOT_RECORDED = "how it went on was not recorded"


def _goes_on_after_words(run: Run) -> Iterator[Reason]:
    """The loop that replays ends with an answer in words. Spans tell of other loops too, and of several turns."""
    if not run.is_told_by_others:
        return
    for (step, call), (after, later) in pairwise(main_models(run)):
        if kinds_said(call) == {"text"} and later.history is not None and not _is_asked_again(later.history):
            message = f"The run continues after the text answer of {step_name(step)}; a replay ends there."
            yield Reason(code="later_turn", message=message, step=after.index)
            return


def _goes_on_unseen(run: Run) -> Iterator[Reason]:
    """Why an answer was not taken for the output, the next request alone says. A record that others wrote may tell its
    answers otherwise than they came."""
    for (step, call), (after, later) in pairwise(main_models(run) if is_of_recorder(run) else []):
        if later.history is None and may_be_taken(run, call):
            told = f"The answer of {step_name(step)} may have been the last"
            message = f"{told}; why the run continued is not known, because {step_name(after)} has no recorded request."
            yield reason_at(run, "model_request_missing", message, after)


def _is_asked_again(history: History) -> bool:
    """Whether the newest message says why the answer was refused; the loop then goes on."""
    return bool(seen_message(history.message, step=0).parts_of("retry-prompt", "retry-feedback"))


GapCheck = Callable[[Run], Iterator[Reason]]
GAP_CHECKS: tuple[GapCheck, ...] = (
    _broken_off,
    _missing_model_answers,
    _missing_tool_answers,
    openai_gaps,
    copy_gaps,
    return_gaps,
    saved_outcome_gaps,
    cut_values,
    call_step_gaps,
    review_gaps,
    outside_messages,
    course_gaps,
    record_gaps,
    gaps_beside_messages,
    model_http_gaps,
    retry_gaps,
    outcome_gaps,
    _goes_on_after_words,
    _goes_on_unseen,
    unreadable_messages,
    unreadable_parameters,
    unreadable_contents,
)


def _has_no_answer(step: Step, call: ModelCall) -> bool:
    return call.response is None and step.error is None


def _tool_gaps(run: Run) -> list[Step]:
    """Calls whose answer the replay will need: a later request went to the model without it.

    Calls that stand open at the end (for approval, or cut off) are no gaps, the replay ends there.
    A record without any model call has only calls, and each of them is one.
    """
    models = main_models(run)
    last = models[-1][0].index if models else len(run.steps) + 1
    return [
        step
        for step in main_steps(run)
        if step.index < last and isinstance(step.call, ToolCall) and _lacks_answer(run, step, step.call)
    ]


def _lacks_answer(run: Run, step: Step, call: ToolCall) -> bool:
    """What somebody said who denied a call before this run began stands nowhere else."""
    is_denied = run.decided.get(call.call_id or "") == "denied"
    return not is_settled(step, call) or (is_denied and call.result is None)
