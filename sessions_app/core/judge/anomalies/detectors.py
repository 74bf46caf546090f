"""Every detector, what its code means, and what they find together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.answers import error_words, no_answer
from sessions_app.core.judge.anomalies.cut_answers import answer_cut
from sessions_app.core.judge.anomalies.cut_json import cut_off_json
from sessions_app.core.judge.anomalies.done_twice import done_twice
from sessions_app.core.judge.anomalies.echoes import done_in_part, other_records
from sessions_app.core.judge.anomalies.gone_past import failed_calls
from sessions_app.core.judge.anomalies.languages import answers_in_a_known_language
from sessions_app.core.judge.anomalies.listed_totals import totals_of_calls, totals_of_the_answer
from sessions_app.core.judge.anomalies.models import model_changed, other_model_answered
from sessions_app.core.judge.anomalies.nothing_found import (
    answers_without_a_source,
    empty_result_retried,
    empty_results_gone_past,
)
from sessions_app.core.judge.anomalies.old_data import older_than_others
from sessions_app.core.judge.anomalies.one_of_many import one_of_many
from sessions_app.core.judge.anomalies.other_dates import other_dates
from sessions_app.core.judge.anomalies.other_rows import other_rows
from sessions_app.core.judge.anomalies.other_subjects import other_subjects
from sessions_app.core.judge.anomalies.other_values import other_values
from sessions_app.core.judge.anomalies.overrides import overridden
from sessions_app.core.judge.anomalies.owners import other_identity, unscoped_calls, used_of_other
from sessions_app.core.judge.anomalies.refusals import refusals_gone_past, unfinished_gone_past
from sessions_app.core.judge.anomalies.repeats import duplicate_calls, many_tool_calls
from sessions_app.core.judge.anomalies.skipped_checks import skipped_checks
from sessions_app.core.judge.anomalies.steps import (
    finish_order,
    slow_steps,
    spans_lost,
    spans_under_one_id,
    state_chain_broken,
)
from sessions_app.core.judge.anomalies.sub_agents import called_runs_gone_past, sub_agents_gone_past
from sessions_app.core.judge.anomalies.sums import sums_contradicted, total_contradicted
from sessions_app.core.judge.anomalies.told_warnings import warnings_gone_past
from sessions_app.core.judge.anomalies.too_soon import acted_too_soon
from sessions_app.core.judge.anomalies.unnamed_ids import acted_on_another, acted_on_unnamed
from sessions_app.core.judge.anomalies.unread_pages import unread_pages
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
    return sorted(found, key=lambda each: (each.level != "warning", each.weight))


_OF_WORDS = frozenset(
    {
        "empty_result_unsaid",
        "refusal_unsaid",
        "unfinished_unsaid",
        "one_of_many",
        "warning_unsaid",
        "sub_agent_unsaid",
        "no_source",
        "page_unread",
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
    one_of_many,
    other_values,
    other_records,
    done_in_part,
    skipped_checks,
    other_rows,
    other_subjects,
    warnings_gone_past,
    older_than_others,
    sub_agents_gone_past,
    empty_results_gone_past,
    answers_without_a_source,
    unread_pages,
    sums_contradicted,
    total_contradicted,
    totals_of_calls,
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
    "many_tool_calls": "The run made more tool calls than this; a note.",
    "duplicate_call": "A tool was called again with the same arguments; "
    "a note where the call before had failed, or the question or the answer speaks of each.",
    "done_twice": "A call was made again after it had failed, and a list that was read later holds what both did.",
    "asked_again": "A call that reads was made again, and its answer had changed or had been unfinished; a note.",
    "error_words": "The answer holds one of these words; a note.",
    "no_answer": "The run ended without an answer.",
    "empty_result_retried": "A call that found nothing was made again with the same arguments, "
    "without a wait, and found nothing again.",
    "empty_result_unsaid": "A call found nothing, and the answer speaks of what was asked for without saying so.",
    "answer_cut": "A model's answer was cut off at its limit of tokens, and was used as if it were whole.",
    "refusal_unsaid": "A tool answered that it refused, and the answer speaks of success.",
    "unfinished_unsaid": "A tool last answered that it had not finished, and the answer says that it is done.",
    "acted_too_soon": "Something was acted on while a job of it was last seen unfinished, "
    "where the same was done to others after theirs; the answer does not say so.",
    "override_unsaid": "A refused call was made again with an override such as force, "
    "which nobody had asked for and the answer does not speak of.",
    "one_of_many": "In a long series of calls of one tool, one left something out or did nothing; "
    "the answer names neither it nor a failure.",
    "other_value": "Of five or more calls of one tool, one returned another value than all the others, "
    "although theirs had been set for it or is what the question asks for; the answer states theirs and not this one.",
    "other_record": "A tool was called for one thing and returned the record of another, "
    "and a later call or the answer used what only that record holds.",
    "done_in_part": "A call that does something returned another number than it was called with, "
    "as at a limit, and the answer states the one that was asked for.",
    "check_skipped": "Of four or more calls of one tool, all but one came after a check of the same thing; "
    "the answer does not say that the check is missing.",
    "other_row": "Calls carried out the rows of a list, and one of them has a value that is neither in its row nor "
    "told anywhere else; the answer does not speak of it.",
    "other_subject": "A call acted on one thing, and the answer gives as its reason a value that was read of another, "
    "on which nothing acted.",
    "warning_unsaid": "A tool's answer is out of date, as it says itself or beside those of the tool's other calls, "
    "and the run's answer does not say so; a note for other warnings of tools.",
    "sub_agent_unsaid": "A sub-agent failed or came to nothing, and the answer does not say so.",
    "no_source": "Searches found nothing, and the answer states a number or a rule that nothing else told; "
    "a note where it affirms something else.",
    "page_unread": "A tool gave a part of a list or of a text and said that there is more, which nobody read, "
    "and the answer speaks of all, or says that there is none.",
    "other_sum": "A call went on with another sum than a tool had told, or than the amounts of what it lists come to.",
    "other_total": "The total in the answer is not the sum of what it lists; a note where it is not that of the lines "
    "that a tool gave.",
    "unnamed_id": "A tool was called with an id that nobody had named, where the question names another one, "
    "or a tool gave one of the same digits.",
    "other_id": "A tool that does something was called with another id than the question names, "
    "and the answer speaks of the one of the question.",
    "other_date": "A tool that does something was called with another day than the one that question and answer name, "
    "which a call beside it has.",
    "cut_off_json": "A tool's answer begins as JSON and stops before its end.",
    "unscoped_call": "A tool that acts for a user or a tenant was called without one, in a run that knows them.",
    "other_identity": "A tool was called for another user or tenant than the run's, and no question names that one.",
    "used_of_other": "A tool returned a record of another user or tenant, and a later call used it.",
    "call_failed": "A call failed and was not made again with success; the answer says so. "
    "A note where only a part of a batch failed, or where the answer is in a language that the rules do not know.",
    "error_swallowed": "A call failed and was not made again with success; the answer does not say so.",
    "model_changed": "The agent's loop changed to another model.",
    "other_model_answered": "Another model answered than the one that was asked.",
    "state_chain_broken": "The state changed between two steps, and not by one of them.",
    "spans_under_one_id": "Two spans came with one id and different contents.",
    "spans_lost": "Spans around steps never came.",
    "finish_order": "Parallel calls finished in another order than they were made; a note.",
    "slow_step": "A step took longer than this; a note.",
}
"""What each code of an anomaly means."""
