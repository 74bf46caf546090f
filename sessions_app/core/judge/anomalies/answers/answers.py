"""The answer: none, or with words of an error."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.judge.anomalies.reading.answer_words import error_words_in, plain, words_of
from sessions_app.core.judge.reading import (
    has_answer,
    join_words,
    own_tools,
)
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step


def error_words(run: Run, rules: Rules) -> Iterator[Anomaly]:
    """A hint where the answer speaks of the run's own work; one that speaks of a failure that happened is honest."""
    words = [word for word in error_words_in(run.output, rules) if _is_of_own_work(word, run.output)]
    if not words or failed_steps(run):
        return
    last = tuple(step.index for step, _ in run.model_calls[-1:])
    for word in words:
        message = f"Possible error in output: contains '{word}'"
        yield Anomaly(code="error_words", message=message, steps=last, level="info")


_OF_OTHERS = frozenset(Rules().error_words)
"""These are said of what an answer is about too, as in "error rate 2 %"; a team's own words count as they stand."""


_SUBJECT = (
    r"(?<!\w)(?:i|we)(?:'m|'re|'ve| am| are| was| were| have| had)?"
    r"(?: (?:so|very|really|also|still|got|hit|met|made|an|some|the|internal|unexpected))* "
)


_SYMPATHY = r"(?! to hear| for your| about your| that your?\b)"
"""Said of what happened to the person who asks."""


_ALONE = r"(?=\s*(?:$|[,;!.\n]|:(?!\s*(?:\d|no\b|none\b)))|\s+(?:to|that|about|for|but|i|we)\b)"


def _is_of_own_work(word: str, output: Payload | None) -> bool:
    """ "I failed", or at the start of a sentence "Unable to …" and "Error: …"."""
    if word not in _OF_OTHERS:
        return True
    spelled = re.escape(plain(word))
    own = rf"(?:{_SUBJECT}{spelled}(?!\w)|(?:^|[.!?:]\s+|\n\s*){spelled}{_ALONE}){_SYMPATHY}"
    return re.search(own, plain(words_of(output))) is not None


def no_answer(run: Run, rules: Rules) -> Iterator[Anomaly]:
    if run.status == "running" or has_answer(run) or _is_stopped(run):
        return
    last = tuple(step.index for step in run.steps[-1:])
    yield Anomaly(code="no_answer", message=_ending_in_words(run), steps=last)


def _is_stopped(run: Run) -> bool:
    """A run that a fork or a replay made and did not end: what made it says where it stopped, and why."""
    return run.origin != "recorded" and run.status == "cut_off"


def _ending_in_words(run: Run) -> str:
    ending = _ending(run)
    return f"Ended without an answer: {ending}" if ending else "Recording cut off without an answer"


def _ending(run: Run) -> str:
    """Nothing where the recording says no more than that it stops."""
    open_calls = [step.name for step in _open_at_end(run)]
    if run.status == "cut_off" and open_calls:
        return f"{join_words(list(dict.fromkeys(open_calls)))} never returned"
    if run.status == "ok":
        # What failed on the way did not end it.
        return "no output was recorded" if run.output is None else "the output is empty"
    said = run.error or next((s.error for s in reversed(run.steps) if s.error), None)
    words = ": ".join(w for w in (said.type, said.message) if w) if said else ""
    return words or _STATUS_WORDS[run.status]


_STATUS_WORDS = {
    "error": "an error ended the run",
    "cut_off": "",
    "running": "still running",
}


def _open_at_end(run: Run) -> list[Step]:
    last = max((step.index for step, _ in run.model_calls), default=0)
    return [s for s, call in own_tools(run) if s.index > last and call.result is None and not s.error]
