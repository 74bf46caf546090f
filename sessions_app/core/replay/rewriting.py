"""Requests that tell another past than the run had: code of the team's, such as a history processor, rewrote it.

A rebuilt replay has none of that code, so such a past is put in place as it was recorded. What can be held against the
loop's own messages is: the recorder says which messages were made anew and how many are gone, and all others must be
there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from sessions_app.core.clipping import shortened
from sessions_app.core.compare.strict import same_json
from sessions_app.core.history import History, messages
from sessions_app.core.judge.reading import count
from sessions_app.core.payload import JsonObject
from sessions_app.core.run import Run, Step, main_model_calls

_SHOWN = 3
"""Requests that a sentence names; facts hold all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewriting:
    """What became of the messages that were there before a request; the newest one is the loop's own."""

    made: tuple[int, ...] = ()
    """Positions of messages that were not there."""
    cut: int = 0
    """Messages that are gone."""

    @property
    def words(self) -> str:
        made = ", ".join(f"messages[{position}]" for position in self.made)
        gone = f"{count(self.cut, 'message')} gone" if self.cut else ""
        return ", ".join(part for part in (made and f"{made} made anew", gone) if part)

    def to_json(self) -> JsonObject:
        return {"made": list(self.made), "cut": self.cut}


TOLD = ("rewritten", "prompt_rewritten")
"""Fields of a model step in which the recorder tells it."""


def read_rewriting(step: Step) -> Rewriting | None:
    """As the recorder tells it of a model step; None for a request that goes on from the one before."""
    told = step.extra.get("rewritten")
    if not isinstance(told, dict):
        return None
    made, cut = told.get("made"), told.get("cut")
    positions = [each for each in made if type(each) is int] if isinstance(made, list) else []
    return Rewriting(made=tuple(positions), cut=cut if type(cut) is int else 0)


def has_prompt_of_code(run: Run) -> bool:
    """Whether the recorder tells that code made another prompt of the input, as templates do."""
    return any("prompt_rewritten" in step.extra for step, _ in main_model_calls(run)[:1])


def prompts_before_input(run: Run) -> int:
    """How many prompts the recorder counted before the input in the first request."""
    said = next((step.extra.get("prompts_before_input") for step, _ in main_model_calls(run)), None)
    return said if type(said) is int else 0


SENT_OTHERWISE = ("words_added", "words_left_out")
"""Fields of a model step in which the recorder tells that hooks sent other messages than the loop's, which alone are
recorded."""


def sent_otherwise(step: Step) -> frozenset[str]:
    return frozenset(name for name in SENT_OTHERWISE if step.extra.get(name) is True)


def unrecorded_words(run: Run) -> str | None:
    """Which requests were sent otherwise than recorded, so that nothing is shown of what the model was told."""
    steps = [str(step.index) for step in run.steps if sent_otherwise(step)]
    shown = ", ".join(steps[:_SHOWN]) + (f" and {count(len(steps) - _SHOWN, 'more step')}" if steps[_SHOWN:] else "")
    said = f"what was sent at step {shown} is not what the loop holds; only the latter was recorded" if steps else None
    in_place = "messages were changed after they had been recorded" if was_rewritten_in_place(run) else None
    return "; ".join(each for each in (said, in_place) if each is not None) or None


def was_rewritten_in_place(run: Run) -> bool:
    """Whether code changed messages that the recorder had written down: the record does not hold the change."""
    return run.extra.get("recorder.rewritten_in_place") is True


def made_otherwise(rewritten: Mapping[int, Rewriting], histories: Mapping[int, History]) -> str | None:
    """The first message that code made for two requests that follow on each other, and not alike: by its place, as
    nobody knows what the code would have made."""
    for (step, one), (later, other) in pairwise((step, each) for step, each in rewritten.items() if step in histories):
        before, after = messages(histories[step]), messages(histories[later])
        for at in sorted({*one.made} & {*other.made} & {*range(min(len(before), len(after)))}):
            if not same_json(before[at].value, after[at].value):
                return f"messages[{at}] of step {later} is not that of step {step}"
    return None


def in_words(rewritten: Mapping[int, Rewriting]) -> str:
    """By step; which messages of which requests say nothing about the loop."""
    said = [f"step {step}: {each.words}" for step, each in rewritten.items()]
    more = f"; and {count(len(said) - _SHOWN, 'more request')}" if len(said) > _SHOWN else ""
    shown = "; ".join(shortened(each) for each in said[:_SHOWN])
    return f"the history was rewritten by code that does not run in a replay ({shown}{more})"
