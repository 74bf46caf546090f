"""Things that were acted on before a job of theirs was over, as the run's other ones were."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from sessions_app.core.judge.anomalies.anomaly import Anomaly, Rules
from sessions_app.core.judge.anomalies.course.repeats import ID
from sessions_app.core.judge.anomalies.failed.failures import failed_steps
from sessions_app.core.judge.anomalies.reading.answer_words import SAYS_NOTHING, answer_of, is_named, owns_up, plain
from sessions_app.core.judge.anomalies.reading.lookups import looks_up
from sessions_app.core.judge.anomalies.reading.told_states import tells_unfinished
from sessions_app.core.judge.reading import argument_key, has_answer, leaves, own_tools, value_of
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step, ToolCall

_OTHERS = 2
"""Things that were acted on after their jobs were over: that many tell how it was meant."""


def acted_too_soon(run: Run, rules: Rules) -> Iterator[Anomaly]:
    answer = plain(answer_of(run))
    if not has_answer(run) or SAYS_NOTHING.search(answer) or owns_up(run.output) or _OPEN.search(answer):
        return
    for job, act in _acts_before_the_end(run):
        if not is_named(job.name.lower(), answer):
            message = (
                f"{act.name} went ahead while {job.look.name} last reported that {job.name} had not finished; "
                "the answer does not say so"
            )
            yield Anomaly(code="acted_too_soon", message=message, steps=(job.look.index, act.index))


@dataclass(kw_only=True, slots=True)
class _Job:
    """Something that one tool was asked about until it was over, or not so long."""

    name: str
    look: Step
    is_open: bool
    acts: dict[str, Step] = field(default_factory=dict)
    """By the tool: what was done, after the last look, to what the job was begun with."""


def _acts_before_the_end(run: Run) -> Iterator[tuple[_Job, Step]]:
    """Where the same tool acted on at least two others, whose jobs were over."""
    kinds: dict[str, list[_Job]] = defaultdict(list)
    for job in _jobs(run):
        kinds[job.look.name].append(job)
    for jobs in kinds.values():
        over: dict[str, int] = defaultdict(int)
        for name in (name for job in jobs if not job.is_open for name in job.acts):
            over[name] += 1
        for job in (job for job in jobs if job.is_open):
            yield from ((job, act) for name, act in list(job.acts.items())[:1] if over[name] >= _OTHERS)


def _jobs(run: Run) -> list[_Job]:
    """Each with its last look, and what was done then with the values that its id was given for."""
    jobs: dict[tuple[str, bytes], _Job] = {}
    begun_with: dict[str, set[str]] = defaultdict(set)
    concerned: dict[str, dict[tuple[str, bytes], None]] = defaultdict(dict)
    failed = failed_steps(run)
    for step, call in own_tools(run):
        values = _names(call.arguments)
        if looks_up(step, call):
            name = next((value for value in values if begun_with.get(value)), None)
            if name is not None and call.result is not None:
                same = call.tool_name, argument_key(call)
                jobs[same] = _Job(name=name, look=step, is_open=tells_unfinished(call))
                for value in {name, *begun_with[name]}:
                    concerned[value][same] = None
        elif step.index not in failed:
            own = [concerned[value] for value in values if 0 < len(concerned[value]) <= _MOST]
            for same in (same for each in own for same in each if not _ENDS.search(call.tool_name)):
                jobs[same].acts.setdefault(call.tool_name, step)
            for value in _ids_given(call) - values:
                begun_with[value] |= values if len(begun_with[value]) <= _MOST else set()
    return list(jobs.values())


_MOST = 10
"""A value that more jobs have names none of them."""
_ENDS = re.compile(r"cancel|stop|abort|kill|terminate|retry|restart|resume|wait|sleep|pause", re.IGNORECASE)
"""What may well be done to a job that is not over."""


def _names(payload: Payload | None) -> set[str]:
    """Values that may name something: words and numbers with a digit."""
    values = (str(item) for _, item in leaves(value_of(payload)) if not isinstance(item, bool))
    return {value for value in values if len(value) <= _NAME and re.search(r"\d", value)}


_NAME = 100


def _ids_given(call: ToolCall) -> set[str]:
    if call.result is None:
        return set()
    told = value_of(call.result)
    found = (match[0] for match in _ID.finditer(told[:_LINE])) if isinstance(told, str) else _names(call.result)
    return set(found)


_LINE = 300
"""Characters; more than that is a document."""
_ID = re.compile(rf"(?<![\w-])(?:{ID.pattern})(?![\w-])")
_OPEN = re.compile(
    r"(?<!\w)(?:running|pending|queued|waiting|processing|in progress|unfinished|incomplete|still)(?!\w)"
    r"|(?<![\d.,])\d{1,2}(?:[.,]\d+)? ?%"
)
