"""Whether a fork ended as it was expected to, in words: the same on every page and in every report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, StepSource, ToolCall

Unproven = StepSource | Literal["no_difference", "code_not_run"]
UNPROVEN: dict[Unproven, str] = {
    "recorded_for_another_request": " (reusing old model answers)",
    "by_hand": " (outcome written by hand)",
    "rule": " (outcome given by a rule)",
    "no_difference": "; same outcome as the original",
}
"""Why an outcome does not follow from the change and proves nothing about it: the answers that it rests on, or that it
is that of the recording."""

_BUT: dict[Unproven, str] = {
    "recorded_for_another_request": "old model answers were reused",
    "by_hand": "the outcome was written by hand",
    "rule": "a rule gave the outcome",
    "no_difference": "the outcome is the original one",
}
OF_CODE_NOT_RUN = "the outcome depends on code that did not run"
_NOT_JUDGED = f"not judged: {OF_CODE_NOT_RUN}"
_ENDED = {True: "expectation met", False: "expectation not met", None: "read the outcome"}
_MET = {True: "met", False: "not met", None: "read the outcome"}


def unproven_source(made: Run, new: Sequence[Step]) -> Unproven | None:
    """Which of `UNPROVEN` the outcome of a fork rests on; `new` are the steps that it made. What the order itself says
    counts where it is the outcome, an old answer anywhere: what was done after it is old too."""
    last = _outcome_source(made, new)
    if last in ("by_hand", "rule"):
        return last
    old: StepSource = "recorded_for_another_request"
    return old if any(step.source == old for step in new) else None


def _outcome_source(made: Run, new: Sequence[Step]) -> StepSource | None:
    """Of the call whose exception ended the run, else of the model's last answer."""
    crash = next((step.source for step in new if _is_crash(step)), None) if made.error else None
    return crash or next((step.source for step in reversed(new) if step.kind == "model"), None)


def _is_crash(step: Step) -> bool:
    return isinstance(step.call, ToolCall) and step.call.outcome == "crashed"


def ended_in_words(met: bool | None, source: Unproven | None) -> str:
    """`expectation met (reusing old model answers)`."""
    if source == "code_not_run":
        return f"expectation {_NOT_JUDGED}"
    return _ENDED[met] if met is None else with_source(_ENDED[met], source)


def judged_in_words(met: bool | None, source: Unproven | None) -> str:
    """`expectation met`, without the reason why that proves nothing."""
    return "expectation not judged" if source == "code_not_run" else _ENDED[met]


def met_in_words(met: bool | None, source: Unproven | None) -> str:
    """`met (reusing old model answers)`."""
    if source == "code_not_run":
        return _NOT_JUDGED
    return _MET[met] if met is None else with_source(_MET[met], source)


def why_unproven(source: Unproven) -> str:
    """A clause of its own: `the outcome was written by hand`."""
    return "it depends on code that did not run" if source == "code_not_run" else _BUT[source]


def with_source(words: str, source: Unproven | None) -> str:
    return words if source is None else f"{words}{UNPROVEN[source]}"


def met_but_proves_nothing(source: Unproven) -> str:
    """Of a fork that ended as expected."""
    return f"{_ENDED[True]}, but {proves_nothing(source)}".capitalize()


def unproven_json(source: Unproven | None) -> JsonObject | None:
    """Why the outcome proves nothing, whether it is the expected one or not; None where it follows from the change."""
    if source is None:
        return None
    sentence = _NOT_JUDGED if source == "code_not_run" else proves_nothing(source)
    return {"code": source, "sentence": sentence.capitalize()}


def proves_nothing(source: Unproven) -> str:
    """Of any fork whose outcome does not follow from its change."""
    return f"{_BUT[source]}: it proves nothing about the agent"
