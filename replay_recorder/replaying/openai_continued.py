"""Runs of the OpenAI Agents SDK that went on from a state in which calls waited for a person.

A recording holds the conversation that such a run went on from, and not the SDK's state. That is made again: the agent
of today is played up to the place where it waits, with the recorded answers of its model and its tools.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Set
from typing import Any, NoReturn

from agents import Agent, Runner, RunState
from agents.exceptions import AgentsException, UserError

from replay_recorder.replaying.openai_agents import FrozenTools, ReplayModel
from replay_recorder.replaying.openai_items import rows_of_messages
from replay_recorder.replaying.recording import Json, RecordedAnswer, RecordedCall, Recording, read_arguments


def is_continued(recording: Recording) -> bool:
    """Whether the run went on from a state. Of one that asked no model, nothing that it went on from was recorded."""
    began_anew = recording.input is not None or recording.record.get("input_items") or recording.answers
    return bool(recording.record.get("deferred")) or not began_anew


async def state_before(
    recording: Recording, agent: Agent[Any], going_on: Agent[Any], decisions: Mapping[int, bool], arguments: Json
) -> RunState[Any, Any]:
    """The state from which the run went on, for `going_on`, with each waiting call decided as it was then, but for
    `decisions`, which are by the step of a call. `agent` is played up to there, and no tool of it runs.

    `arguments` are those of the run itself. Raises `ValueError` where the state cannot be made.
    """
    asked, earlier = _earlier(recording)
    decided = _decided(recording, decisions)
    waiting = await _played_up_to(decided.keys(), agent, asked, earlier, arguments)
    state = await _of_another_agent(waiting, going_on, recording)
    for item in state.get_interruptions():
        call_id = _call_id(item)
        for_good = _went_on_like_it(recording, item.tool_name, decided)
        if decided[call_id]:
            state.approve(item, always_approve=for_good)
        else:
            state.reject(item, for_good, rejection_message=_words_of_denial(recording, call_id))
    return state


async def _of_another_agent(state: RunState[Any, Any], agent: Agent[Any], recording: Recording) -> RunState[Any, Any]:
    """A state holds the tools of its agent; stored and read again, it has those of another one."""
    stored = state.to_json(context_serializer=lambda context: {})
    try:
        return await RunState.from_json(agent, stored, context_override={})
    except UserError as error:
        raise ValueError(
            f"{recording.run_id} went on from a state in which another agent was at work, and the SDK does not find "
            f"that agent again ({error}). List it in `handoffs` as it is, or as `handoff(agent)`."
        ) from error


def _went_on_like_it(recording: Recording, tool: str | None, decided: Container[str | None]) -> bool:
    """Whether later calls of this tool did not wait: then the decision was one for good."""
    later = [call for call in recording.calls if call.name == tool and call.call_id not in decided]
    return bool(later) and all(call.outcome != "unapproved" for call in later)


def _decided(recording: Recording, decisions: Mapping[int, bool]) -> dict[str | None, bool]:
    """Whether each call that waited is approved."""
    outcomes: Json = recording.record.get("deferred") or {}
    by_step = {call.step: call.call_id for call in recording.calls if call.call_id in outcomes}
    for step in decisions.keys() - by_step.keys():
        raise ValueError(f"The recording shows no approval decision for step {step} when this run was continued.")
    then: dict[str | None, bool] = {call_id: outcome != "denied" for call_id, outcome in outcomes.items()}
    return then | {by_step[step]: is_approved for step, is_approved in decisions.items()}


def _words_of_denial(recording: Recording, call_id: str | None) -> str | None:
    """As they were recorded; None for a call that was not denied then."""
    denied = (call for call in recording.calls if call.call_id == call_id and call.outcome == "denied")
    return next((str(call.result) for call in denied), None)


# --- what was recorded of the run before -----------------------------------------------------------


def _earlier(recording: Recording) -> tuple[list[Json], Recording]:
    """The items that the last turn began with, and that turn as a recording of its own."""
    prior = recording.prior
    begun = max((place for place, message in enumerate(prior, 1) if _has(message, "user-prompt")), default=0)
    if not begun or not any(message["kind"] == "response" for message in prior[begun:]):
        raise ValueError(
            f"{recording.run_id} went on from a state that waited for a person, and its recording does not hold the "
            "conversation up to there: it asked no model, or the provider keeps the conversation. Replay the run "
            "before it, which waits there."
        )
    answers = [_answer(message) for message in prior[begun:] if message["kind"] == "response"]
    returned = {part["tool_call_id"]: part.get("content") for part in _parts(prior[begun:], "tool-return")}
    calls = [_call(part, returned) for part in _parts(prior[begun:], "tool-call") if part["tool_call_id"] in returned]
    return rows_of_messages(prior[:begun]), dataclasses.replace(recording, answers=answers, calls=calls)


def _has(message: Json, kind: str) -> bool:
    return any(part["part_kind"] == kind for part in message.get("parts") or [])


def _parts(messages: list[Json], kind: str) -> list[Json]:
    return [part for message in messages for part in message.get("parts") or [] if part["part_kind"] == kind]


def _answer(message: Json) -> RecordedAnswer:
    """What was asked for it belongs to the run before, and is compared there."""
    return RecordedAnswer(step=0, messages=None, parameters=None, settings=None, response=message, error=None)


def _call(part: Json, returned: Json) -> RecordedCall:
    call_id = part["tool_call_id"]
    return RecordedCall(
        step=0,
        name=part["tool_name"],
        call_id=call_id,
        arguments=read_arguments(part.get("args")),
        result=returned[call_id],
        has_result=True,
        outcome="success",
        error=None,
        retry={},
    )


# --- up to where it waits --------------------------------------------------------------------------


async def _played_up_to(
    waiting: Set[str | None], agent: Agent[Any], asked: Any, earlier: Recording, arguments: Json
) -> RunState[Any, Any]:
    config = dataclasses.replace(arguments["run_config"], model=ReplayModel(earlier))
    more = {"max_turns": None, **arguments, "run_config": config}
    frozen = FrozenTools(earlier)(agent)
    try:
        result = await Runner.run(frozen, asked, **more)
        while decided := [item for item in result.interruptions if _call_id(item) not in waiting]:
            # Decided before the run that is replayed: what it came to is in the conversation.
            state = result.to_state()
            for item in decided:
                state.approve(item)
            result = await Runner.run(frozen, state, **more)
    except AgentsException as error:
        _does_not_wait(earlier, waiting, error)
    if {_call_id(item) for item in result.interruptions} != waiting:
        _does_not_wait(earlier, waiting, None)
    return result.to_state()


def _call_id(item: Any) -> str | None:
    raw = item.raw_item
    found: str | None = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
    return found


def _does_not_wait(earlier: Recording, waiting: Set[str | None], error: Exception | None) -> NoReturn:
    """Also where the call that waits is one of another agent, inside of a tool."""
    names = {part["tool_call_id"]: part["tool_name"] for part in _parts(earlier.prior, "tool-call")}
    calls = ", ".join(f"{names.get(call_id, 'a call')} ({call_id})" for call_id in waiting)
    raise ValueError(
        f"{earlier.run_id} went on from a state in which {calls} waited for a person, and your agent of today does not "
        "wait there. Replay the run before it: that shows where they part. Where the tool is an agent and waited "
        "inside, its state was not recorded, and this run cannot be replayed."
    ) from error
