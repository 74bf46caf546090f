"""Sub-agents that said that they could not, and whether the answer says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.reading.answer_words import (
    SAYS_NOTHING,
    SENTENCE,
    error_words_in,
    owns_up,
    owns_up_in,
    plain,
    says_all,
    words_of,
)
from sessions_app.core.judge.anomalies.reading.vocabulary import (
    AGENT,
    HAD_TO_STOP,
    IN_THE_END,
    NO_ACCESS,
    TASK,
    WENT_ON,
)
from sessions_app.core.judge.reading import has_answer, object_of, text_of
from sessions_app.core.run import AgentCall, Run, Step, ToolCall


def sub_agents_gone_past(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A sub-agent failed or came to nothing, or stopped before all was done, and the answer speaks as if all were
    there."""
    inner = {step.parent for step in run.steps if isinstance(step.call, AgentCall)}
    own = [step for step in run.steps if step.index not in inner]
    failed = [(step, said) for step in own if (said := _failure(step)) is not None]
    if not failed and says_all(words_of(run.output)) and not HAD_TO_STOP.search(plain(words_of(run.output))):
        # One that is asked again goes on where the one before stopped.
        last = [step for step in own if _is_sub_agent(step)][-1:]
        failed = [(step, f"said: {said}") for step in last if (said := _stopped(step)) is not None]
    yield from _told(run, rules, failed)


def called_runs_gone_past(run: Run, rules: Rules, called: Mapping[str, str]) -> Iterator[Anomaly]:
    """The same of sub-agents that did not say so themselves: by their runs, what went wrong in these."""
    silent = [(step, step.call) for step in run.steps if isinstance(step.call, AgentCall) and _failure(step) is None]
    wrong = [(step, called.get(call.run_id or "")) for step, call in silent]
    yield from _told(run, rules, [(step, f"went wrong: {words}") for step, words in wrong if words])


def _told(run: Run, rules: Rules, failed: list[tuple[Step, str]]) -> Iterator[Anomaly]:
    if not failed or not has_answer(run) or _is_said(run, rules):
        return
    for step, said in failed:
        words = f"{_name_of(run, step)}, a sub-agent, {said}; the answer does not say so"
        yield Anomaly(code="sub_agent_unsaid", message=words, steps=(step.index,))


def _name_of(run: Run, step: Step) -> str:
    """One without a name has that of the tool which called it."""
    caller = run.steps[step.parent - 1] if step.parent else step
    return caller.name if step.name == step.kind and isinstance(caller.call, ToolCall) else step.name


def _failure(step: Step) -> str | None:
    if not isinstance(step.call, AgentCall | ToolCall) or not _is_sub_agent(step):
        return None
    if step.error is not None:
        return "failed" if isinstance(step.call, AgentCall) else None
    first = re.split(r"(?<=[.!?])\s|(?<=[。!?])", (text_of(step.call.result) or "").strip(), maxsplit=1)[0]
    return f"said: {first[:160].rstrip('.。')}" if _gives_up(plain(first)) else None


def _is_sub_agent(step: Step) -> bool:
    return isinstance(step.call, AgentCall) or (isinstance(step.call, ToolCall) and _is_an_agent(step.call))


def _stopped(step: Step) -> str | None:
    """The sentence that says that not all was done."""
    text = text_of(step.call.result) if isinstance(step.call, AgentCall | ToolCall) else None
    sentences = SENTENCE.split(text or "")
    at = next((at for at, each in enumerate(sentences) if HAD_TO_STOP.search(plain(each))), None)
    if at is None or any(WENT_ON.search(plain(each)) for each in sentences[at:]):
        return None
    return sentences[at].strip()[:160].rstrip(".。")


def _is_an_agent(call: ToolCall) -> bool:
    """A tool that is given a task and answers in sentences, by its name or by the name of its only argument."""
    asked = object_of(call.arguments)
    is_given_a_task = len(asked) == 1 and any(map(TASK.fullmatch, asked))
    return is_given_a_task or AGENT.search(call.tool_name) is not None


def _gives_up(said: str) -> bool:
    """To all of it: what has figures before has something, and what was tried again may have it."""
    found = NO_ACCESS.search(said)
    if found is None and (not owns_up_in(said) or re.match(r"[^,;:]*\d", said)):
        return False
    return IN_THE_END.search(said) is None


def _is_said(run: Run, rules: Rules) -> bool:
    says_nothing = SAYS_NOTHING.search(plain(words_of(run.output))) is not None
    return says_nothing or owns_up(run.output) or bool(error_words_in(run.output, rules))
