"""Where a loop asked for what the recording does not hold: one more answer, or the answer of another call."""

from __future__ import annotations

from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.call_places import place_without_step
from sessions_app.core.replay.fixture_book import FixtureMiss, is_same_call, recorded_arguments
from sessions_app.core.replay.observed import Divergence
from sessions_app.core.replay.plan import PlannedAnswer, ReplayPlan
from sessions_app.core.replay.played import Played, Trouble
from sessions_app.core.run import ToolCall


def ran_past(plan: ReplayPlan, cursor: int) -> Trouble:
    """The step at which an answer was wanted that is not there."""
    is_recorded = cursor < len(plan.answers)
    step = plan.answers[cursor].step if is_recorded else len(plan.run.steps) + 1
    asked = Divergence(step=step, path="response", recorded=None, replayed="another model request")
    return Trouble(verdict="ran_past_recording", divergence=asked, facts={})


def answered_last(played: Played) -> PlannedAnswer | None:
    """The recorded answer that the loop was given last."""
    steps = {request.step for request in played.observations.requests if request.response is not None}
    return next((answer for answer in reversed(played.plan.answers) if answer.step in steps), None)


def missed(plan: ReplayPlan, miss: FixtureMiss, *, behind: PlannedAnswer | None) -> Trouble:
    step = _step_of_call(plan, miss, behind=behind)
    path, recorded, replayed = _denied(plan, step, miss) or missed_field(miss)
    found = Divergence(step=step, path=path, recorded=recorded, replayed=replayed)
    return Trouble(
        verdict="fixture_missing", divergence=found, facts=missed_facts(miss) | _not_played(plan, step, miss)
    )


def decided_otherwise(played: Played, miss: FixtureMiss) -> Trouble | None:
    """A call that was denied then is made, and one before it that was made then is not: whoever decides on the calls of
    an answer decided otherwise of that one first."""
    behind = answered_last(played)
    step = _step_of_call(played.plan, miss, behind=behind)
    if behind is None or _denied(played.plan, step, miss) is None:
        return None
    before = (each for each in played.left_over if each.parent == behind.step and each.step < step)
    first = next(before, None)
    if first is None:
        return None
    found = Divergence(step=first.step, path="outcome", recorded=first.call.outcome, replayed="not called")
    return Trouble(verdict="diverged", divergence=found, facts={})


def _not_played(plan: ReplayPlan, step: int, miss: FixtureMiss) -> JsonObject:
    """Agents that ran in this call then, and are not played inside of this replay: nothing is known to differ."""
    then: list[JsonValue] = [each.name for each in plan.run.steps if (each.kind, each.parent) == ("agent", step)]
    return {"agents_not_played": then} if then and miss.is_of_agent else {}


def missed_facts(miss: FixtureMiss) -> JsonObject:
    """What was asked for that has no answer, and the recorded calls that come nearest."""
    nearest = [{"step": f.step, "arguments": recorded_arguments(f.call.arguments)} for f in miss.nearest]
    asked: JsonObject = {"tool": miss.tool_name, "arguments": miss.arguments, "call_id": miss.call_id}
    if miss.request is not None:
        asked["http"] = miss.request.to_json()
    return {"asked_for": asked, "nearest": nearest}


_Field = tuple[str, JsonValue, JsonValue]


def _denied(plan: ReplayPlan, step: int, miss: FixtureMiss) -> _Field | None:
    """The call was made that the recording says was not allowed."""
    call = plan.run.steps[step - 1].call if step <= len(plan.run.steps) else None
    is_denied = isinstance(call, ToolCall) and call.call_id == miss.call_id and call.outcome == "denied"
    return ("outcome", "denied", None) if is_denied else None


def missed_field(miss: FixtureMiss) -> _Field:
    """In what the call differs from the nearest recorded one; its answer, where it differs in nothing."""
    if miss.request is not None:
        found = miss.request.difference
        return found.path, found.recorded, found.rebuilt
    if miss.is_of_agent:
        return "response", None, miss.tool_name
    if miss.is_recorded_call:
        return "result", None, miss.arguments
    if not miss.nearest:
        return "arguments", None, miss.arguments
    nearest = miss.nearest[0].call
    if nearest.tool_name != miss.tool_name:
        return "tool_name", nearest.tool_name, miss.tool_name
    if is_same_call(nearest, miss.arguments):
        return "result", None, miss.arguments
    return "arguments", recorded_arguments(nearest.arguments), miss.arguments


def _step_of_call(plan: ReplayPlan, miss: FixtureMiss, *, behind: PlannedAnswer | None) -> int:
    """Where the call stands in the recording, `behind` the answer that asked for it; the place where it would stand,
    where it has no step. What a run was resumed with is called before it asks the model."""
    first = 0 if behind is None else behind.step
    calls = [(step, call) for step, call in plan.run.tool_calls if step.index > first]
    own = [step for step, call in calls if miss.call_id is not None and call.call_id == miss.call_id]
    # The library makes an id for a call that was recorded without one.
    made = [step for step, call in calls if step.parent == first and call.call_id is None and _is_of(miss, call)]
    if own or made:
        return (own or made)[0].index
    if behind is None:
        return min((answer.step for answer in plan.answers), default=1)
    is_asked = miss.call_id is not None and miss.call_id in behind.asked
    return place_without_step(plan.run, behind.step, behind.asked, miss.call_id) if is_asked else behind.step + 1


def _is_of(miss: FixtureMiss, call: ToolCall) -> bool:
    return call.tool_name == miss.tool_name and is_same_call(call, miss.arguments)


# --- the outcome -------------------------------------------------------------------------------
