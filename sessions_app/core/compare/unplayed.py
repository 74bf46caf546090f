"""A run beside its replay: which steps the replay did not play, so that nothing can be said of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sessions_app.core.compare.json_diff import MISSING, Difference
from sessions_app.core.run import Run, Step
from sessions_app.core.unplayed import loop_steps

NOT_PLAYED: Final = Difference(
    path="step", left=MISSING, right=MISSING, status="not_comparable", note="not played: read from the recording"
)


def unplayed_between(left: Run, right: Run) -> Callable[[Step | None, Step | None], bool]:
    """Whether the replay of the two did not play the step that they share, or that one of them alone has."""
    if not (_is_replay_of(left, right) or _is_replay_of(right, left)):
        return lambda one, other: False
    loop = {id(step) for run in (left, right) for step in loop_steps(run)}
    return lambda one, other: (
        all(id(step) not in loop for step in (one, other) if step) and not _is_observed(one, other)
    )


def _is_replay_of(run: Run, recorded: Run) -> bool:
    return run.origin == "replay" and run.parent is not None and run.parent.run_id == recorded.run_id


def _is_observed(one: Step | None, other: Step | None) -> bool:
    """Whether both sides have it, and it ran: inside a tool that ran on a person's machine. Work that is no step of an
    agent's is copied, and claims nothing."""
    return one is not None and other is not None and (one.kind == "other" or "own_code" in (one.source, other.source))
