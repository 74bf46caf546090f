"""Values of which the recorder could write down only a part: they lay too deep or were too much for a record."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.reading import own_tools, step_name
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import Payload
from sessions_app.core.run import Run

_MARKS = tuple(f'"\N{HORIZONTAL ELLIPSIS} {why} to record"'.encode() for why in ("nested too deeply", "too much"))
"""What the recorder writes in the place of what it leaves out."""


def cut_values(run: Run) -> Iterator[Reason]:
    for step, call in own_tools(run):
        name = next(
            (name for name, value in (("arguments", call.arguments), ("answer", call.result)) if _is_cut(value)), None
        )
        if name is not None:
            message = f"The {name} of {step_name(step)} went beyond what a record can hold and was cut short."
            yield reason_at(run, "value_cut", message, step)
            return


def _is_cut(value: Payload | None) -> bool:
    return value is not None and value.is_json and any(mark in value.content for mark in _MARKS)
