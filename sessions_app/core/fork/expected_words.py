"""Whether a fork ended as it was expected to, in words: the same on every page and in every report."""

from __future__ import annotations

from collections.abc import Sequence

from sessions_app.core.run import Step, StepSource

UNPROVEN: dict[StepSource, str] = {
    "recorded_for_another_request": "reusing old model answers",
    "by_hand": "using an answer written by hand",
}
"""Answers that do not follow from the change: an outcome that rests on one of them proves nothing about it."""

_BUT: dict[StepSource, str] = {
    "recorded_for_another_request": "old model answers were reused",
    "by_hand": "the answer was written by hand",
}
_ENDED = {True: "expectation met", False: "expectation not met", None: "read the outcome"}
_MET = {True: "met", False: "not met", None: "read the outcome"}


def unproven_source(made: Sequence[Step]) -> StepSource | None:
    """Of the steps that a fork made: which of `UNPROVEN` its outcome rests on. What somebody wrote counts where it is
    the last answer of the model, an old answer anywhere: what was done after it is old too. A rule is a
    change itself."""
    last: StepSource | None = next((step.source for step in reversed(made) if step.kind == "model"), None)
    if last == "by_hand":
        return last
    old: StepSource = "recorded_for_another_request"
    return old if any(step.source == old for step in made) else None


def ended_in_words(met: bool | None, source: StepSource | None) -> str:
    """`expectation met, reusing old model answers`."""
    return _ENDED[met] if met is None else with_source(_ENDED[met], source)


def met_in_words(met: bool | None, source: StepSource | None) -> str:
    """`met, reusing old model answers`."""
    return _MET[met] if met is None else with_source(_MET[met], source)


def with_source(words: str, source: StepSource | None) -> str:
    return words if source is None else f"{words}, {UNPROVEN[source]}"


def proves_nothing(source: StepSource) -> str:
    """Of a fork that ended as expected."""
    return f"{_ENDED[True]}, but {_BUT[source]}: it proves nothing about the agent"
