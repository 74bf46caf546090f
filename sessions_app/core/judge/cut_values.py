"""Values of which the recorder could write down only a part: they lay too deep or were too much for a record."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.reading import main_models, own_tools, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run, Step

_MARKS = tuple(f'"\N{HORIZONTAL ELLIPSIS} {why} to record"'.encode() for why in ("nested too deeply", "too much"))
"""What the recorder writes in the place of what it leaves out."""


def cut_values(run: Run) -> Iterator[Reason]:
    """The first; a message holds what a tool answered some levels deeper than its step does."""
    found = sorted(_cut(run), key=lambda each: each[0].index)
    for step, what in found[:1]:
        message = f"{what} of {step_name(step)} went beyond what a record can hold and was cut short."
        yield reason_at(run, "value_cut", message, step)


def _cut(run: Run) -> Iterator[tuple[Step, str]]:
    for step, call in own_tools(run):
        for what, value in (("The arguments", call.arguments), ("The answer", call.result)):
            if is_cut(value):
                yield step, what
    for step, asked in main_models(run):
        if asked.history is not None and is_cut(asked.history.message):
            yield step, "The request"


def is_cut(value: Payload | None) -> bool:
    """Whether it holds a mark of the recorder's."""
    return value is not None and value.is_json and any(mark in value.content for mark in _MARKS)
