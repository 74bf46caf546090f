"""What checks look at: a run as plain data, whoever made it and whatever it was read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = Any
"""A JSON value as `json.loads` gives it."""


_KINDS = {"write": True, "read": False}


def changes_something(tool_kind: Json) -> bool | None:
    """What a step says of its tool (`tool_kind`); None where it does not say."""
    return _KINDS.get(str(tool_kind))


def cost_of(answers: Iterable[Json]) -> float | None:
    """Dollars of all model calls, as their answers say (`usage.cost`); no table of prices is asked. None where one of
    them does not say."""
    costs = [_cost(answer) for answer in answers]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def _cost(answer: Json) -> float | None:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    cost = usage.get("cost") if isinstance(usage, dict) else None
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None


STOPS = ("RequestDiffers", "NoAnswerRecorded", "RecordingExhausted", "RequestNotRecorded")
"""Exceptions by which a replay ends where the recording knows no answer: the agent has not failed."""


OF_ANOTHER_REQUEST = "the answer was recorded for another request, and what the model says to this one is not known"
"""Of a run that was given a recorded answer where its own request was not the recorded one: whatever it answers then is
not what the agent comes to."""


def of_another_from(step: int) -> str:
    """Why what the model chose to do is not known from this step on."""
    return f"from step {step} on, the model's answers were recorded for other requests"


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool."""

    step: int
    """Index of the step, from 1."""
    tool: str
    arguments: Json
    """What the tool was called with, by hooks and approvals too. Parsed where they are JSON, else the text; None when
    they were not captured."""
    result: Json
    """Likewise."""
    returned: Json = None
    """What the tool returned, where the model was told a text made of it."""
    error: str | None = None
    """What the call failed with."""
    is_write: bool | None = None
    """Whether the tool changes something; None where the recording does not say."""
    user_id: str | None = None
    """For whom it ran; None where the recording does not say what reached the tool."""
    tenant_id: str | None = None
    is_as_asked: bool = True
    """Whether `arguments` are what the model wrote."""

    @property
    def answers(self) -> Iterator[Json]:
        """What it answered, in each form that is known."""
        return (answer for answer in (self.result, self.returned) if answer is not None)


def given_arguments(asked: Json, step: Mapping[str, Any]) -> Json:
    """What a tool itself was called with: hooks, and whoever approves a call, may change what the model `asked` for. A
    step has it where it is something else, without what could not be read."""
    given = step.get("ran_with", step.get("approved_arguments"))
    if not isinstance(given, dict):
        return asked
    unread = (step.get("ran_with_unknown") or {}).get("arguments") or ()
    return {**{name: asked[name] for name in unread if isinstance(asked, dict) and name in asked}, **given}


@dataclass(frozen=True)
class Trace:
    """One run."""

    run_id: str
    has_ended: bool
    """Whether it came to the end of its work. What has not happened in a run that was stopped, or that an error ended,
    might still have happened."""
    has_failed: bool = False
    """Whether an error ended it."""
    why_not_ended: str = "the run did not finish"
    calls: tuple[ToolUse, ...] = ()
    """Of the agent's own tools, in their order."""
    steps: int = 0
    """Steps of the agent's own loop: model, tool, retrieval and agent steps."""
    output: Json = None
    """Parsed where it is JSON, else the text; None where the run gave none."""
    output_text: str | None = None
    """The output as it was written."""
    why_answer_unknown: str | None = None
    """Of a run that ended, with an answer that code was to make which did not run, or that was recorded for another
    request."""
    error: str | None = None
    """What the run ended with, where it failed."""
    user_id: str | None = None
    tenant_id: str | None = None
    known_answers: tuple[Json, ...] = ()
    """What tools answered in the scene: it says whose values are, also where the run itself does not."""
    cost_usd: float | None = None
    """What all model calls cost; None where one of them does not say."""
    state_after: Callable[[int | None], Json] | None = None
    """The state behind a step, and at the end for None; raises `LookupError` with words where it is not known.
    None when no state was recorded."""
    until_another: Trace | None = None
    """The run up to the first answer of the model that was recorded for another request; None where there is none."""

    def calls_of(self, tool: str) -> list[ToolUse]:
        return [call for call in self.calls if call.tool == tool]

    @property
    def chosen(self) -> Trace:
        """The run as far as what the model chose is known."""
        return self.until_another or self

    def is_of_another(self, call: ToolUse) -> bool:
        """Whether an answer to another request asked for it in just these words."""
        return call.is_as_asked and call not in self.chosen.calls

    @property
    def answers(self) -> Iterator[Json]:
        """What tools answered."""
        return (answer for call in self.calls for answer in call.answers)
