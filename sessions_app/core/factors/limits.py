"""Whether a run met a limit of rate: it was refused, told to wait, cut short, or tried again."""

from __future__ import annotations

import re

from sessions_app.core.factors.checks import RATE_STATUSES, Check, has_answer, indexes, outward, searched, statuses
from sessions_app.core.finish_reasons import is_cut
from sessions_app.core.judge.anomalies.answers.cut_json import is_cut_json
from sessions_app.core.judge.reading import count, own_tools, text_of
from sessions_app.core.run import ModelCall, Run, Step, answered

_LIMITED = re.compile(
    r"rate[ _-]?limit|too many requests|\bthrottl|quota exceeded|retry[ _-]after"
    r"|\b(?:http|status|error|code)\W{0,3}429\b",
    re.IGNORECASE,
)


def overload(run: Run) -> Check:
    return statuses(run, "HTTP 429, 503, 529", RATE_STATUSES)


def told_to_wait(run: Run) -> Check:
    title = "Retry-After, or words that suggest a limit"
    found = [step for step in outward(run) if _is_told_to_wait(step)]
    if found:
        words = f"In the answers to {count(len(found), 'step')}."
        return Check(title=title, sight="seen", words=words, steps=indexes(found))
    bare = [step for step in outward(run) if not has_answer(step) and step.error is None and step.http is None]
    if bare or not run.steps:
        words = f"{count(len(bare), 'call')} without an answer, an error or headers to look in."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words="None in answers, errors and headers that were recorded.")


def _is_told_to_wait(step: Step) -> bool:
    if step.http is not None and any(name.lower() == "retry-after" for name, _ in step.http.response_headers):
        return True
    return any(_LIMITED.search(text) for text in _got_back(step))


def _got_back(step: Step) -> list[str]:
    """What a model says of limits is its subject, and no refusal."""
    said = [] if isinstance(step.call, ModelCall) else [searched(answered(step))]
    if step.error is not None:
        said.append(f"{step.error.type} {step.error.message}")
    return said + ([searched(step.http.response_body)] if _is_refused(step) and step.http else [])


def _is_refused(step: Step) -> bool:
    return step.http is not None and (step.http.status or 0) >= 400


def cut_answers(run: Run) -> Check:
    title = "Truncated answers"
    if cut := [step for step in run.steps if _is_cut(step)]:
        return Check(title=title, sight="seen", words=f"{count(len(cut), 'answer')} cut off.", steps=indexes(cut))
    bare = [step for step in outward(run) if not _has_known_end(step)]
    if bare or not run.steps:
        words = f"How the answer ended was not recorded on {count(len(bare), 'call')}."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words="Every answer was complete.")


def _is_cut(step: Step) -> bool:
    if isinstance(step.call, ModelCall):
        return is_cut(step.call.finish_reason)
    body = step.http.response_body if step.http else None
    return any(is_cut_json(text) for text in map(text_of, (answered(step), body)) if text)


def _has_known_end(step: Step) -> bool:
    if isinstance(step.call, ModelCall):
        return step.call.finish_reason is not None
    return has_answer(step) or step.error is not None


def retries(run: Run) -> Check:
    title = "Retried calls"
    tools = own_tools(run)
    found = [s for s, call in tools if call.retry or call.outcome == "retried" or "retry_of" in s.extra]
    if found:
        words = f"{len(found)} of {count(len(tools), 'tool call')}."
        return Check(title=title, sight="seen", words=words, steps=indexes(found))
    if bare := [step for step, call in tools if call.outcome is None]:
        words = f"{len(bare)} of {count(len(tools), 'tool call')} without an outcome."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words=f"None of {count(len(tools), 'tool call')}.")


CHECKS = (overload, told_to_wait, cut_answers, retries)
