"""Every detector, what its code means, and what they find together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.answers.answers import error_words, no_answer
from sessions_app.core.judge.anomalies.answers.cut_answers import answer_cut
from sessions_app.core.judge.anomalies.answers.cut_json import cut_off_json
from sessions_app.core.judge.anomalies.course.claims import unmade_claims
from sessions_app.core.judge.anomalies.course.done_twice import done_twice
from sessions_app.core.judge.anomalies.course.left_out import left_out
from sessions_app.core.judge.anomalies.course.models import model_changed, other_model_answered
from sessions_app.core.judge.anomalies.course.repeats import duplicate_calls, many_tool_calls
from sessions_app.core.judge.anomalies.course.skipped_checks import skipped_checks, steps_left_out
from sessions_app.core.judge.anomalies.course.steps import (
    finish_order,
    slow_steps,
    spans_lost,
    spans_under_one_id,
    state_chain_broken,
)
from sessions_app.core.judge.anomalies.course.unread_pages import unread_pages
from sessions_app.core.judge.anomalies.failed.followed_instructions import instructions_followed
from sessions_app.core.judge.anomalies.failed.forbidding_states import writes_against_the_state
from sessions_app.core.judge.anomalies.failed.gone_past import failed_calls
from sessions_app.core.judge.anomalies.failed.nothing_found import (
    answers_without_a_source,
    empty_result_retried,
    empty_results_gone_past,
    one_empty_among_many,
)
from sessions_app.core.judge.anomalies.failed.overrides import overridden
from sessions_app.core.judge.anomalies.failed.refusals import refusals_gone_past, unfinished_gone_past
from sessions_app.core.judge.anomalies.failed.sub_agents import called_runs_gone_past, sub_agents_gone_past
from sessions_app.core.judge.anomalies.failed.told_warnings import warnings_gone_past
from sessions_app.core.judge.anomalies.failed.too_soon import acted_too_soon
from sessions_app.core.judge.anomalies.reading.languages import answers_in_a_known_language
from sessions_app.core.judge.anomalies.values.echoes import done_in_part, other_records
from sessions_app.core.judge.anomalies.values.listed_totals import (
    totals_of_calls,
    totals_of_the_answer,
    totals_of_tools,
)
from sessions_app.core.judge.anomalies.values.old_data import older_than_others
from sessions_app.core.judge.anomalies.values.one_of_many import one_of_many
from sessions_app.core.judge.anomalies.values.other_counts import other_counts
from sessions_app.core.judge.anomalies.values.other_dates import other_dates
from sessions_app.core.judge.anomalies.values.other_rows import other_rows
from sessions_app.core.judge.anomalies.values.other_shapes import other_shapes
from sessions_app.core.judge.anomalies.values.other_subjects import other_subjects
from sessions_app.core.judge.anomalies.values.other_values import other_values
from sessions_app.core.judge.anomalies.values.owners import other_identity, unscoped_calls, used_of_other
from sessions_app.core.judge.anomalies.values.receipts import other_receipts
from sessions_app.core.judge.anomalies.values.sums import sums_contradicted, total_contradicted
from sessions_app.core.judge.anomalies.values.unnamed_ids import acted_on_another, acted_on_unnamed
from sessions_app.core.run import Run
from sessions_app.core.shared_values import shared_values

_NONE: Mapping[str, str] = {}


@shared_values()
def find_anomalies(run: Run, rules: Rules = Rules(), called: Mapping[str, str] = _NONE) -> list[Anomaly]:
    """What went wrong stands before what may be as it was meant, and that before mere notes.

    `called` says by its id what went wrong in a run that this one called.
    """
    found = [each for detect in DETECTORS for each in detect(run, rules)]
    found += called_runs_gone_past(run, rules, called)
    silent = {*rules.off, *(() if answers_in_a_known_language(run) else _OF_WORDS)}
    found = [each for each in found if each.code not in silent]
    return sorted(_once_for_each(found), key=lambda each: (each.level != "warning", each.weight))


def _once_for_each(found: list[Anomaly]) -> list[Anomaly]:
    """A failure is not told again beside what its step did wrong."""
    warnings = [each for each in found if each.level == "warning"]
    told = {step for each in warnings if each.code not in _FAILURES for step in each.steps[:1]}
    again = {each for each in warnings if each.code in _FAILURES and told.issuperset(each.steps)}
    return [each for each in found if each not in again]


_FAILURES = frozenset({"call_failed", "error_swallowed"})
_OF_WORDS = frozenset(
    {
        "empty_result_unsaid",
        "refusal_unsaid",
        "unfinished_unsaid",
        "one_of_many",
        "warning_unsaid",
        "sub_agent_unsaid",
        "no_source",
        "done_twice",
        "override_unsaid",
        "acted_too_soon",
    }
)
"""What is found because the answer lacks words for it."""


Detector = Callable[[Run, Rules], Iterator[Anomaly]]


DETECTORS: tuple[Detector, ...] = (
    many_tool_calls,
    duplicate_calls,
    done_twice,
    error_words,
    no_answer,
    empty_result_retried,
    answer_cut,
    refusals_gone_past,
    unfinished_gone_past,
    acted_too_soon,
    overridden,
    writes_against_the_state,
    instructions_followed,
    one_of_many,
    other_values,
    other_records,
    done_in_part,
    other_receipts,
    other_counts,
    other_shapes,
    unmade_claims,
    left_out,
    skipped_checks,
    steps_left_out,
    other_rows,
    other_subjects,
    warnings_gone_past,
    older_than_others,
    sub_agents_gone_past,
    empty_results_gone_past,
    one_empty_among_many,
    answers_without_a_source,
    unread_pages,
    sums_contradicted,
    total_contradicted,
    totals_of_calls,
    totals_of_tools,
    totals_of_the_answer,
    cut_off_json,
    acted_on_unnamed,
    acted_on_another,
    other_dates,
    unscoped_calls,
    other_identity,
    used_of_other,
    failed_calls,
    model_changed,
    other_model_answered,
    state_chain_broken,
    spans_under_one_id,
    spans_lost,
    finish_order,
    slow_steps,
)


RULES: dict[str, str] = {
    "many_tool_calls": "The run made more tool calls than this; a note unless a call was repeated without a reason.",
    "duplicate_call": "A tool was called again with the same arguments; "
    "a note if the earlier call had failed, if the question or the answer mentions each call, "
    "or if nothing else was repeated than one lookup, once.",
    "done_twice": "A call was retried after it had failed, and a list that was read later shows that both took effect.",
    "asked_again": "A call that only reads was repeated, and its answer had changed or had not been final; a note.",
    "error_words": "The answer contains one of these words; a note.",
    "no_answer": "The run ended without an answer.",
    "empty_result_retried": "A call that found nothing was repeated with the same arguments, without a wait, "
    "and found nothing again.",
    "empty_result_unsaid": "A call found nothing, but the answer mentions what it searched for without saying so, "
    "or counts it among those that all told something.",
    "answer_cut": "A model's answer was cut off at its token limit and used as if it were complete.",
    "refusal_unsaid": "A tool refused, but the answer claims success.",
    "unfinished_unsaid": "A tool last reported that it had not finished, but the answer says that it is done.",
    "acted_too_soon": "A tool acted on something whose job was last seen unfinished, although for others the run "
    "waited until theirs was done; the answer does not say so.",
    "override_unsaid": "A refused call was repeated with an override, such as force, "
    "that nobody asked for and the answer does not mention.",
    "state_forbids": "A call that changes something did what an earlier answer had said cannot be done to this thing, "
    "such as cancelling a non-cancellable order; the answer does not say so.",
    "instruction_followed": "A call did what only a text from a tool asked for, such as a mail or a page: it used an "
    "address, an id or a tool that this text alone names.",
    "one_of_many": "In a long series of calls to one tool, one call left something out or did nothing; "
    "the answer mentions neither it nor a failure.",
    "other_value": "Of five or more calls to one tool, one returned a different value. The others returned what had "
    "been set or what the question asks for, and the answer states only their value.",
    "other_record": "A tool was called for one thing but returned the record of another, "
    "and a later call or the answer used data from that record.",
    "done_in_part": "A call that changes something returned a different number from the one it was called with, "
    "as when it hits a limit, but the answer states the number that was requested.",
    "other_receipt": "A call that changes something returned a different day or number from its argument, "
    "or moved the decimal point of a number; the answer states the original.",
    "other_count": "A call changed a different number of things from what had been counted before, "
    "and the answer states the number counted.",
    "other_shape": "Of eight or more calls to one tool that changes something, one returned a different kind of text "
    "from all the others, or of six or more one gave another state and less than they; the answer counts it with them; "
    "a note if no known word says that it was not done.",
    "claim_unmade": "The agent said that it had done something, but the tool for it was never called.",
    "left_out": "The run worked through a list but skipped one or two items, and the answer states the number of all.",
    "check_skipped": "Of four or more calls to one tool, all but one came after a check of the same thing; "
    "the answer does not say that a check is missing. "
    "Or the instructions say that another tool comes first, which was never called.",
    "other_row": "Calls worked through the rows of a list, and one of them used a value that is neither in its row "
    "nor anywhere before; the answer does not mention it.",
    "other_subject": "A call acted on one thing, but the reason in the answer is a value of another thing, "
    "on which no call acted.",
    "warning_unsaid": "A tool's data is out of date, as the tool says or its other calls show, "
    "and the answer does not say so; a note for other warnings of tools.",
    "sub_agent_unsaid": "A sub-agent failed or could not do its task, and the answer does not say so.",
    "no_source": "Searches found nothing, but the answer states a number or a rule that has no other source; "
    "a note if it only affirms something.",
    "page_unread": "A tool returned part of a list or a text and said that there is more, which was never read, "
    "but the answer treats it as complete or says that there is none.",
    "other_sum": "A call used a different sum from the one that a tool had returned, "
    "or from what the amounts it covers add up to.",
    "other_total": "The total in the answer, or one that a tool returned and that was used, "
    "is not the sum of the items listed with it, or a sum that the model wrote down with all its terms is wrong; "
    "a note if it is not the sum of the lines that a tool returned.",
    "unnamed_id": "A tool was called with an id that nobody had named, where the question names a different one "
    "or a tool had returned one with the same digits.",
    "other_id": "A call that changes something used a different id from the one in the question and in the answer.",
    "other_date": "A call that changes something used a different day from the one in the question and the answer, "
    "which another call used.",
    "cut_off_json": "A tool's answer starts as JSON and breaks off before its end.",
    "unscoped_call": "A tool that acts for a user or a tenant was called without one, although the run has one.",
    "other_identity": "A tool was called for a user or tenant that is neither the run's nor named in a question.",
    "used_of_other": "A tool returned a record of another user or tenant, and a later call used it.",
    "call_failed": "A call failed and was never repeated with success; a note where the answer tells of it, "
    "if a lookup found nothing and neither the question nor the answer is about that, "
    "or if the rules do not know the answer's language.",
    "error_swallowed": "A call failed and was never repeated with success, and the answer does not say so.",
    "model_changed": "The agent's loop switched to another model.",
    "other_model_answered": "The model that answered is not the one that was requested.",
    "state_chain_broken": "The state changed between two steps, and no step changed it.",
    "spans_under_one_id": "A span was sent twice with different contents, or gives something two values.",
    "spans_lost": "Spans around steps never arrived.",
    "finish_order": "Parallel calls finished in a different order from the one in which they were made; a note.",
    "slow_step": "A step took longer than this; a note.",
}
"""What each code of an anomaly means."""


NAMES: dict[str, str] = {
    "answer_cut": "Model answer cut off",
    "asked_again": "Repeated read",
    "call_failed": "Failed call",
    "claim_unmade": "Claimed but not done",
    "cut_off_json": "Truncated JSON",
    "done_in_part": "Partly done",
    "empty_result_unsaid": "Empty result not reported",
    "finish_order": "Parallel calls out of order",
    "instruction_followed": "Prompt injection followed",
    "left_out": "Item left out",
    "no_source": "Answer without a source",
    "one_of_many": "Failure in a series",
    "other_count": "Count does not match",
    "other_date": "Wrong date",
    "other_id": "Wrong id",
    "other_identity": "Wrong user or tenant",
    "other_model_answered": "Another model answered",
    "other_receipt": "Receipt does not match",
    "other_record": "Wrong record",
    "other_row": "Row not in the list",
    "other_shape": "Outlier result",
    "other_subject": "Reason from another record",
    "other_sum": "Sum does not match",
    "other_total": "Total does not match",
    "other_value": "Outlier value",
    "override_unsaid": "Forced past a refusal",
    "page_unread": "More pages not read",
    "refusal_unsaid": "Refusal not reported",
    "spans_lost": "Missing spans",
    "spans_under_one_id": "Contradictory span",
    "state_chain_broken": "Unexplained state change",
    "state_forbids": "Done against its state",
    "sub_agent_unsaid": "Sub-agent failure not reported",
    "unfinished_unsaid": "Unfinished work reported as done",
    "unnamed_id": "Id from nowhere",
    "unscoped_call": "Call without a user or tenant",
    "used_of_other": "Another user's data used",
    "warning_unsaid": "Warning not reported",
}
"""How a rule is called where its code is no phrase that people use."""


def name_of(code: str) -> str:
    """Of a rule: `Error swallowed`."""
    return NAMES.get(code) or code.replace("_", " ").capitalize()
