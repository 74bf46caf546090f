"""Sub-agents that said that they could not, and whether the answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    error_words_in,
    owns_up,
    plain,
    words_of,
)
from sessions_app.core.judge.reading import has_answer, text_of
from sessions_app.core.run import AgentCall, Run, Step


def sub_agents_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A sub-agent failed or came to nothing, and the answer speaks as if all were there."""
    yield from _told(run, rules, [(step, said) for step in run.steps if (said := _failure(step)) is not None])


def called_runs_gone_past(run: Run, rules: Rules, called: Mapping[str, str]) -> Iterator[Anomaly]:
    """The same of sub-agents that did not say so themselves: by their runs, what went wrong in these."""
    silent = [(step, step.call) for step in run.steps if isinstance(step.call, AgentCall) and _failure(step) is None]
    wrong = [(step, called.get(call.run_id or "")) for step, call in silent]
    yield from _told(run, rules, [(step, f"went wrong: {words}") for step, words in wrong if words])


def _told(run: Run, rules: Rules, failed: list[tuple[Step, str]]) -> Iterator[Anomaly]:
    if not failed or not has_answer(run) or _is_said(run, rules):
        return
    for step, said in failed:
        words = f"{step.name}, a sub-agent, {said}; the answer does not say so"
        yield Anomaly(code="sub_agent_unsaid", message=words, steps=(step.index,))


def _failure(step: Step) -> str | None:
    if not isinstance(step.call, AgentCall):
        return None
    if step.error is not None:
        return "failed"
    first = re.split(r"(?<=[.!?])\s", (text_of(step.call.result) or "").strip(), maxsplit=1)[0]
    return f"said: {first[:160].rstrip('.')}" if first and owns_up(step.call.result) else None


def _is_said(run: Run, rules: Rules) -> bool:
    says_nothing = SAYS_NOTHING.search(plain(words_of(run.output))) is not None
    return says_nothing or owns_up(run.output) or bool(error_words_in(run.output, rules))
