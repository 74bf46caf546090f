"""Which agent of the OpenAI Agents SDK made a step: it changes by a handoff and by nothing else, and is named in many
places."""

from __future__ import annotations

from collections.abc import Iterator

from sessions_app.core.judge.reading import as_object, object_of, step_name
from sessions_app.core.judge.reasons import Reason, reason_at, reason_at_end
from sessions_app.core.payload import JsonValue
from sessions_app.core.run import ModelCall, Run, Step, ToolCall, main_steps


def agent_gaps(run: Run) -> Iterator[Reason]:
    """The first model step of an agent that nobody handed over to. Where no handoff was recorded at all, nothing says
    how agents changed."""
    if run.source_format != "native" or not any(map(_hands_over, run.steps)):
        return
    agent: str | None = None
    handoff: Step | None = None
    for step in main_steps(run):
        handoff = step if _hands_over(step) else handoff
        own = step.extra.get("agent")
        if not isinstance(step.call, ModelCall) or not isinstance(own, str):
            continue
        due = agent if handoff is None else _target(handoff)
        if due is not None and own != due:
            yield _reason(run, step, handoff, own, due)
            return
        agent, handoff = own, None


def last_agent_gap(run: Run) -> Iterator[Reason]:
    """The run says once more which agent it ended with; a handoff behind the last answer may have changed it."""
    steps, said = main_steps(run), run.extra.get("last_agent")
    last = max((at for at, step in enumerate(steps) if isinstance(step.call, ModelCall)), default=len(steps))
    agents = [step.extra.get("agent") for step in steps[last : last + 1]]
    known = [*agents, *(_target(step) for step in steps[last:] if _hands_over(step))]
    if run.source_format == "native" and isinstance(said, str) and any(agents) and said not in known:
        message = f"The run says that it ended with {said}; the agent of its last answer was {agents[0]}."
        yield reason_at_end(run, "agent_contradicted", message)


def agent_name_gap(run: Run) -> Iterator[Reason]:
    """Agents are named once more by the run, by steps of calls and by handoffs."""
    for place, said, step in _named_again(run):
        own = step.extra.get("agent")
        if isinstance(said, str) and isinstance(own, str) and said != own:
            message = f"{place} names {said} as its agent; {step_name(step)} is of {own}."
            yield reason_at_end(run, "agent_contradicted", message)
            return


def _named_again(run: Run) -> Iterator[tuple[str, JsonValue, Step]]:
    """Places, the agent that each names, and a step of this agent. Of a run that goes on the agent may have changed
    before."""
    steps = main_steps(run)
    at, first = next(((at, step) for at, step in enumerate(steps) if isinstance(step.call, ModelCall)), (0, None))
    if first is not None and run.deferred is None:
        yield "The run", run.agent.name, first
    if first is not None and not any(map(_hands_over, steps[:at])):
        yield from ((f"S{step_name(step)[1:]}", step.extra.get("agent"), first) for step in steps[:at])
    for step in run.steps:
        asker = None if step.parent is None else run.steps[step.parent - 1]
        if asker is not None and isinstance(asker.call, ModelCall):
            yield f"S{step_name(step)[1:]}", step.extra.get("agent"), asker
        yield f"The handoff of {step_name(step)}", as_object(step.extra.get("handoff")).get("from"), step


def _hands_over(step: Step) -> bool:
    """Of several handoffs the SDK takes the first and says of the others that they were ignored."""
    said = step.extra.get("handoff")
    return isinstance(said, dict) and not said.get("ignored")


def _target(handoff: Step) -> str | None:
    said = handoff.extra.get("handoff")
    target = said.get("to") if isinstance(said, dict) else None
    return target if isinstance(target, str) else None


def _reason(run: Run, step: Step, handoff: Step | None, own: str, due: str) -> Reason:
    """What the handoff answered names the agent once more."""
    if handoff is not None and isinstance(handoff.call, ToolCall):
        answer = object_of(handoff.call.result).get("assistant")
        if answer == own:
            message = (
                f"The handoff of {step_name(handoff)} goes to {due}; its answer and the steps after it name {own}."
            )
            return reason_at(run, "agent_contradicted", message, handoff)
    message = f"S{step_name(step)[1:]} is said to be of {own}; the agent there was {due}."
    return reason_at(run, "agent_contradicted", message, step)
