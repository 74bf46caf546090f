"""Whether a run hung on the day and hour at which it ran."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sessions_app.core.factors.checks import Check, has_answer, indexes, searched
from sessions_app.core.judge.reading import count, join_words
from sessions_app.core.run import ModelCall, Retrieval, Run, Step, answered, asked, counted_steps

_DATED = re.compile(
    r"\b(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)|\b(?:now|today|tonight|yesterday|tomorrow)\b",
    re.IGNORECASE,
)


def clock(run: Run) -> Check:
    """A replay sees the recorded time, where there is one."""
    if run.started_at is None:
        words = "The run has no time that a replay's clock could be pinned to."
        return Check(title="A clock that is not pinned", sight="not_captured", words=words)
    words = f"Pinned in replays to the recorded time, {run.started_at.isoformat()}."
    return Check(title="A clock that is not pinned", sight="not_seen", words=words)


def dates(run: Run) -> Check:
    """What a model was told of the day counts too: an instruction may hold it."""
    title = "Dates, and words such as today"
    calls = [step for step in run.steps if not isinstance(step.call, ModelCall)]
    found = [step for step in calls if any(map(_DATED.search, _texts(step)))]
    if where := [*_dated_ends(run), *([f"arguments or answers of {count(len(found), 'step')}"] if found else [])]:
        return Check(title=title, sight="seen", words=f"In {join_words(where)}.", steps=indexes(found))
    bare = [step for step in calls if step.kind in ("tool", "retrieval") and not (asked(step) and has_answer(step))]
    if bare:
        words = f"{count(len(bare), 'step')} without arguments or without an answer to look in."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words="None in input, instructions, arguments and answers.")


def _dated_ends(run: Run) -> list[str]:
    said = {"the input": searched(run.input), "the instructions": run.instructions or ""}
    return [name for name, text in said.items() if _DATED.search(text)]


def _texts(step: Step) -> Iterator[str]:
    yield searched(asked(step))
    yield searched(answered(step))
    if isinstance(step.call, Retrieval):
        yield from (searched(chunk.content) for chunk in step.call.chunks or ())


def step_times(run: Run) -> Check:
    title = "Steps without a time"
    steps = counted_steps(run)
    bare = [step for step in steps if step.started_at is None]
    if bare or not steps:
        words = f"{len(bare)} of {count(len(steps), 'step')} without a time."
        return Check(title=title, sight="not_captured", words=words, steps=indexes(bare))
    return Check(title=title, sight="not_seen", words="Every step has its time.")


CHECKS = (clock, dates, step_times)
