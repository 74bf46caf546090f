"""What somebody decided on the calls of a graph that waited, held against what became of them.

A graph is resumed with the decisions of LangChain's `HumanInTheLoopMiddleware` (`{"type": "approve"}`,
`{"type": "edit", "edited_action": …}`, `{"type": "reject", "message": …}`), one for each call that it put before
somebody, in the order in which they were asked for. Other calls of the same answer have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sessions_app.core.compare.strict import same_json
from sessions_app.core.judge.reading import (
    as_object,
    first_requests,
    main_models,
    object_of,
    objects_in,
    seen_messages,
    step_name,
)
from sessions_app.core.judge.reasons import Reason, reason_at
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.ran_with import APPROVED
from sessions_app.core.replay.fixture_book import recorded_arguments
from sessions_app.core.run import GRAPHS, Run, Step, ToolCall


def review_gaps(run: Run) -> Iterator[Reason]:
    decisions = _decisions(run)
    if not decisions or not main_models(run):
        return
    found = (
        _decided_oddly(decisions),
        _approved_otherwise(run, decisions),
        _rejected_otherwise(run, decisions),
        _decided_on_others(run, decisions),
    )
    message = next(filter(None, found), None)
    if message is not None:
        yield reason_at(run, "call_contradicted", message, run.steps[0])


def _decisions(run: Run) -> list[JsonObject]:
    if run.source_format != "native" or run.agent.framework not in GRAPHS:
        return []
    return objects_in(as_object(object_of(run.input).get("resume")).get("decisions"))


def _decided_oddly(decisions: list[JsonObject]) -> str | None:
    """Words to the model stand beside a refusal alone; another kind of decision ends the run."""
    for each in decisions:
        if each.get("type") not in _KINDS or (each.get("message") is not None and each["type"] not in _SPOKEN):
            return "The input decides on a call in a way that the middleware does not know."
    return None


_SPOKEN = ("reject", "respond")
_KINDS = ("approve", "edit", *_SPOKEN)


def _resumed(run: Run) -> list[tuple[Step, ToolCall]]:
    """Calls that were made before the model was asked again."""
    first = main_models(run)[0][0].index
    return [(step, call) for step, call in run.tool_calls if step.parent is None and step.index < first]


def _approved_otherwise(run: Run, decisions: list[JsonObject]) -> str | None:
    actions = [as_object(each.get("edited_action")) for each in decisions if each.get("type") == "edit"]
    edits = [action.get("args") for action in actions]
    for step, _ in _resumed(run):
        approved = step.extra.get(APPROVED)
        if approved is not None and not _is_among(approved, edits):
            return f"S{step_name(step)[1:]} was approved with other arguments than the input says."
    given = [_given(step, call) for step, call in _resumed(run)]
    if any(not _is_among(edit, given) for edit in edits):
        return "The input says that a call was approved with arguments with which none was made."
    named = {step.extra.get("approved_tool", call.tool_name) for step, call in _resumed(run)}
    if any(action.get("name", each) not in named for action in actions for each in named):
        return "The input has a tool run in a call's place that none of the calls ran."
    return None


def _given(step: Step, call: ToolCall) -> JsonValue:
    approved = step.extra.get(APPROVED)
    return recorded_arguments(call.arguments) if approved is None else approved


def _is_among(value: JsonValue, others: list[JsonValue]) -> bool:
    return any(same_json(value, other) for other in others)


def _rejected_otherwise(run: Run, decisions: list[JsonObject]) -> str | None:
    told = [str(part.get("content")) for seen in first_requests(run) for part in seen.parts_of("tool-return")]
    words = [each.get("message") for each in decisions if each.get("type") == "reject"]
    unsaid = (each for each in words if isinstance(each, str) and not any(each in text for text in told))
    return None if next(unsaid, None) is None else "The input rejects a call in words that the model was not told."


def _decided_on_others(run: Run, decisions: list[JsonObject]) -> str | None:
    """Nothing says which calls were put before somebody, but that those came of their decisions in order, and that the
    others ran as they were. A sub-agent that waited has calls of its own."""
    calls = _reviewed(run)
    words = [each["message"] for each in decisions if isinstance(each.get("message"), str)]
    reached = {0}
    for call in calls or ():
        decided = {at + 1 for at in reached if at < len(decisions) and _came_of(decisions[at], call, words)}
        reached = decided | reached if call.ran_as_it_was(words) else decided
    if calls is None or len(decisions) in reached:
        return None
    return "The input decides otherwise, in another order or on more calls than those that were waiting were decided."


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reviewed:
    """A call of the answer at which the graph waited."""

    name: JsonValue
    step: Step | None
    given: JsonValue
    """None where it has no step."""
    told: str | None
    """What the model was told of it, as far as the record says."""

    def ran_as_it_was(self, words: list[str]) -> bool:
        is_edited = self.step is not None and not self.step.extra.keys().isdisjoint((APPROVED, "approved_tool"))
        return not is_edited and (self.told is None or (_REJECTED not in self.told and self.told not in words))


_REJECTED = "User rejected the tool call"


def _came_of(decision: JsonObject, call: _Reviewed, words: list[str]) -> bool:
    match decision["type"]:
        case "approve":
            return call.ran_as_it_was(words)
        case "edit":
            action = as_object(decision.get("edited_action"))
            is_same_tool = action.get("name", call.name) == call.name
            return call.step is not None and is_same_tool and same_json(action.get("args"), call.given)
    return call.told is None or str(decision.get("message") or _REJECTED) in call.told


def _reviewed(run: Run) -> list[_Reviewed] | None:
    steps = {call.call_id: (step, call) for step, call in _resumed(run)}
    answers = [seen for seen in seen_messages(run) if seen.step == 0 and seen.message.get("kind") == "response"]
    if not answers or {step.index for step, _ in steps.values()} & {step.parent for step in run.steps}:
        return None
    returns = [part for seen in first_requests(run) for part in seen.parts_of("tool-return")]
    told = {part.get("tool_call_id"): part.get("content") for part in returns}
    return [_review(part, steps.get(part.get("tool_call_id")), told) for part in answers[-1].parts_of("tool-call")]


def _review(part: JsonObject, made: tuple[Step, ToolCall] | None, told: dict[JsonValue, JsonValue]) -> _Reviewed:
    words = told.get(part.get("tool_call_id"))
    said = words if isinstance(words, str) else None
    if made is None:
        return _Reviewed(name=part.get("tool_name"), step=None, given=None, told=said)
    step, call = made
    result = call.result.as_text() if call.result is not None else said
    name = step.extra.get("approved_tool", call.tool_name)
    return _Reviewed(name=name, step=step, given=_given(step, call), told=result)
