"""The recording replay: the recorded answers through Pydantic AI's real loop, step by step checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import takewhile
from typing import Any

from pydantic import ValidationError
from pydantic_ai import capture_run_messages
from pydantic_ai.messages import ModelMessage
from pydantic_ai.run import AgentRunResultEvent
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import DeferredToolRequests
from pydantic_ai.usage import UsageLimits

from sessions_app.agents.loop.clock import PinnedClock
from sessions_app.agents.loop.library import dump_output, load_messages
from sessions_app.agents.loop.native_tools import is_tool_search, native_tools
from sessions_app.agents.loop.observer import Observer
from sessions_app.agents.loop.openai_observer import OpenAIObserver
from sessions_app.agents.loop.other_loops import FoundToolsObserver, OtherLoopObserver, UntoldToolsObserver
from sessions_app.agents.loop.outcomes import (
    FixtureNotFound,
    Paused,
    RanPastRecording,
    RecordedError,
    is_fault_of_product,
)
from sessions_app.agents.loop.rebuild import Start, rebuild_agent, recorded_start
from sessions_app.agents.loop.replay_model import ReplayModel
from sessions_app.agents.loop.saved_messages import SavedMessagesObserver
from sessions_app.agents.loop.stage import RecordedStage, Stage
from sessions_app.agents.loop.transcript import Transcript
from sessions_app.core.fork.stops import Stops
from sessions_app.core.history import History
from sessions_app.core.judge.openai_loop import ENDED_AT_TOOLS
from sessions_app.core.judge.reading import count
from sessions_app.core.judge.reasons import Reason
from sessions_app.core.judge.unreadable import UNREADABLE
from sessions_app.core.judge.verdict import Verdict, judge
from sessions_app.core.payload import Payload
from sessions_app.core.replay.changes_told import tells_of_changes
from sessions_app.core.replay.ending import cannot_begin, conclude, limit_facts, limit_place, sources_of
from sessions_app.core.replay.error_words import as_recorded
from sessions_app.core.replay.fixture_book import FixtureBook
from sessions_app.core.replay.hand_overs import is_of_another_loop, is_openai_agents
from sessions_app.core.replay.new_tools import are_new_tools_told
from sessions_app.core.replay.observed import Observations, Result
from sessions_app.core.replay.outputs import hides_output_tools
from sessions_app.core.replay.plan import ReplayPlan, make_plan
from sessions_app.core.replay.played import Ending, Played
from sessions_app.core.replay.proof import TAKEN
from sessions_app.core.replay.told_twice import other_instructions
from sessions_app.core.run import SAVED_MESSAGES, SPANS, USAGE_LIMITS, ErrorInfo, ModelCall, Run, broke_off_at

Progress = Callable[[int, int], None]


async def replay_recording(run: Run, on_progress: Progress, clock: PinnedClock, stops: Stops | None = None) -> Result:
    """Replay a run with the world off. A divergence is a result; only `could_not_run` carries an error."""
    judged = judge(run)
    if judged.verdict == "cold":
        return cannot_begin(judged)
    try:
        return await _replay(make_plan(readable(run, judged)), judged, on_progress, clock, stops or Stops())
    except ValidationError as error:
        return unreadable_from(judged, error)


def readable(run: Run, judged: Verdict) -> Run:
    """The recording up to what the library would refuse to load, and with it all messages of the run, but for what the
    next request says of the calls before it: in which words an output was refused."""
    step = next((reason.step for reason in judged.reasons if reason.code in UNREADABLE and reason.step), None)
    if step is None:
        return run
    following = next((each.call for each in run.steps[step - 1 :] if isinstance(each.call, ModelCall)), None)
    return replace(run, steps=run.steps[: step - 1], final=_heard(following.history) if following else None)


def _heard(history: History | None) -> History | None:
    message = history.message.value if history else None
    if history is None or not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return None
    single = [Payload.of_json({**message, "parts": [part]}) for part in message["parts"]]
    parts = [part for part, alone in zip(message["parts"], single, strict=True) if _is_read(alone)]
    return History(history.parent, Payload.of_json({**message, "parts": parts})) if parts else None


def _is_read(message: Payload) -> bool:
    try:
        return bool(load_messages([message]))
    except ValidationError:
        return False


def unreadable_from(judged: Verdict, error: ValidationError) -> Result:
    """Where the judge saw that the library would refuse something, the replay ends where it promised."""
    limit = judged.limit
    if limit is None or all(reason.code not in UNREADABLE for reason in judged.reasons):
        return Result(verdict="could_not_run", error=unreadable(error))
    return Result(verdict="unknown_from_step", divergence=limit_place(limit), facts={"limit": limit_facts(limit)})


async def _replay(plan: ReplayPlan, judged: Verdict, on_progress: Progress, clock: PinnedClock, stops: Stops) -> Result:
    transcript, book, ticker = (
        Transcript(plan.run),
        FixtureBook(plan.fixtures, plan.asked, plan.refused_outputs, plan.denied),
        Ticker(plan.total, on_progress),
    )

    def on_step(step: int) -> None:
        clock.move_to(plan.run.steps[step - 1].started_at)
        ticker.step()

    stage = RecordedStage(transcript, book, stops, on_step)
    model = replay_model(plan, stage)
    observer = observer_of(plan.run)(plan, model, stage, transcript, book)
    start = recorded_start(plan)
    ending, messages = await run_loop(rebuild_agent(plan, model, stage, observer, start), start, plan.run)
    last = plan.answers[min(model.cursor, len(plan.answers)) - 1].step if model.cursor else 1
    unused, left_over = plan.answers[model.cursor :], book.left_over
    has_rest = bool(unused or left_over)
    expected = None if has_rest else expected_end(plan, judged.limit, ending)
    final = transcript.end(expected, messages, step=last)
    observations = observations_of(transcript, final, ending)
    facts = {**_facts(transcript), "clock": clock.told}
    if ending.stopped is not None:
        stopped = ending.stopped.to_json()
        facts["sources"] = sources_of(replace(observations, requests=observations.requests[: model.cursor]))
        return Result(verdict="paused", facts=facts, observations=observations, stopped=stopped)
    played = played_by_rebuilt(plan, transcript, observations, ending)
    return conclude(replace(played, limit=judged.limit, unused=unused, left_over=left_over), facts)


def played_by_rebuilt(plan: ReplayPlan, transcript: Transcript, seen: Observations, ending: Ending) -> Played:
    """What an agent that was rebuilt from the recording did, and what of it came from there."""
    return Played(
        plan=plan,
        observations=seen,
        ending=ending,
        divergence=transcript.divergence,
        not_captured=frozenset(transcript.tally.not_captured or ()),
        rewritten=transcript.rewritten,
        taken_parameters=tuple(_taken_parameters(plan)),
        taken_words=tuple(_taken_words(plan)),
        has_taken_feedback=transcript.has_taken_feedback,
    )


def _taken_words(plan: ReplayPlan) -> Iterator[str]:
    instructions = _taken_instructions(plan)
    if instructions is not None:
        yield instructions
    if plan.run.source_format in SAVED_MESSAGES and any(
        tells_of_changes(answer.newest or {}) for answer in plan.answers
    ):
        yield f"what the model was told of other tools, instructions or settings was {TAKEN}"


def _taken_instructions(plan: ReplayPlan) -> str | None:
    """Those of the first request are the run's as well, and held against them."""
    made = sum("dynamic_instructions" in plan.run.steps[answer.step - 1].extra for answer in plan.answers[1:])
    if made:
        return f"the instructions of {count(made, 'request')} were made by code that does not run and {TAKEN}"
    others = other_instructions(plan.run)
    said = f"the instructions of {count(others, 'request')} are not those of the first and were {TAKEN}"
    return said if others else None


def _taken_parameters(plan: ReplayPlan) -> Iterator[str]:
    said = [answer.asked_with for answer in plan.answers]
    if any(each.get("output_tools") or each.get("output_object") for each in said):
        yield "the output schema"
    if any(map(hides_output_tools, said[:1])) and any(each.get("output_tools") for each in said):
        yield "from which request on the output tools are offered"
    if any(each.get("hosted_tools") or any(not is_tool_search(tool) for tool in native_tools(each)) for each in said):
        yield "the list of tools that run at the provider"
    if any(each.get("prompt") for each in said):
        yield "the stored prompt"


def observer_of(run: Run) -> type[Observer]:
    """The one of the loop that made the run."""
    if is_openai_agents(run):
        return OpenAIObserver
    return OtherLoopObserver if is_of_another_loop(run) else _of_library(run)


def _of_library(run: Run) -> type[Observer]:
    if run.source_format in SAVED_MESSAGES:
        return SavedMessagesObserver
    if not are_new_tools_told(run):
        return UntoldToolsObserver
    return FoundToolsObserver if run.source_format == SPANS else Observer


def replay_model(
    plan: ReplayPlan, stage: Stage, *, cursor: int = 0, name: str | None = None, settings: ModelSettings | None = None
) -> ReplayModel:
    return ReplayModel(
        plan.answers,
        name=(plan.run.model or "recorded") if name is None else name,
        system=plan.run.provider or "recorded",
        has_output_tool=any(call.is_output for _, call in plan.run.tool_calls) or _were_tools_sent(plan),
        stage=stage,
        cursor=cursor,
        settings=settings,
    )


def _were_tools_sent(plan: ReplayPlan) -> bool:
    """Whether a request says that its output comes by a tool: the run may have ended before any came."""
    asked = [answer.asked_with for answer in plan.answers]
    return any(each.get("output_mode") == "tool" or each.get("output_tools") for each in asked)


def observations_of(transcript: Transcript, final: History | None, ending: Ending) -> Observations:
    return Observations(
        requests=tuple(transcript.requests),
        calls=tuple(transcript.calls),
        final=final,
        output=ending.output,
        error=ending.error,
        open_calls=ending.open_calls,
    )


def _facts(transcript: Transcript) -> dict[str, Any]:
    tally = transcript.tally
    return {
        "fields_compared": tally.compared,
        "volatile_fields": tally.volatile,
        "not_captured": sorted(tally.not_captured or ()),
        "rewritten": [{"step": step, **each.to_json()} for step, each in transcript.rewritten.items()],
    }


def expected_end(plan: ReplayPlan, limit: Reason | None, ending: Ending) -> Any:
    """An early end is a verdict of its own; comparing the tail would only repeat it. So is one that code made which
    does not run, and one that another agent came to."""
    if limit is not None and limit.code in ENDED_AT_TOOLS:
        return plan.run.final if ending.ran_past == len(plan.answers) else None
    if limit is not None and limit.code == "other_course":
        return None
    is_whole = limit is None or (plan.run.error is None and broke_off_at(plan.run) is None and not _asks_again(plan))
    return plan.run.final if ending.is_regular and is_whole else None


def _asks_again(plan: ReplayPlan) -> bool:
    """The last message refuses the answer; who did that does not run in a replay."""
    newest = plan.run.final.message.value if plan.run.final else {}
    return any(part.get("part_kind") == "retry-feedback" for part in newest.get("parts") or [])


async def run_loop(agent: Any, start: Start, run: Run) -> tuple[Ending, list[ModelMessage]]:
    """Let the agent run to its end; how it ended, and the messages there were then."""
    with capture_run_messages() as messages:
        try:
            output, late = await _start_run(agent, start, run)
        except Paused as stop:
            return Ending(stopped=stop.stopped), _without_open_end(messages)
        except RanPastRecording as stop:
            return Ending(ran_past=stop.cursor), messages
        except FixtureNotFound as stop:
            return Ending(miss=stop.miss), messages
        except RecordedError as error:
            return Ending(error=error.error), messages
        except ValidationError:
            raise
        except Exception as error:
            if is_fault_of_product(error):
                raise
            raised = ErrorInfo(type=type(error).__name__, message=str(error))
            return Ending(error=as_recorded(raised, run.error)), messages
    is_open = bool(messages) and messages[-1].kind == "response"
    return _ended(output, run), [*messages, *late] if is_open else messages


def _without_open_end(messages: list[ModelMessage]) -> list[ModelMessage]:
    """A loop that is left among its tool calls has begun a request that holds nothing yet."""
    return messages if messages and messages[-1].parts else messages[:-1]


async def _start_run(agent: Any, start: Start, run: Run) -> tuple[Any, list[ModelMessage]]:
    """The output, and the messages that only the result of a stream holds: answers of tools beside its final text."""
    arguments = {
        "message_history": start.history or None,
        "deferred_tool_results": start.deferred,
        "usage_limits": _limits(run),
        "usage": start.usage,
    }
    if run.agent.entry_point == "run_stream":
        # Streaming is another algorithm: the first text that comes is final.
        async with agent.run_stream(start.prompt, **arguments) as streamed:
            output = await streamed.get_output()
            return output, requests_at_the_end(streamed.all_messages())
    if run.agent.entry_point == "run_stream_events":
        return await _run_with_events(agent, start, arguments), []
    return (await agent.run(start.prompt, **arguments)).output, []


def requests_at_the_end(messages: list[ModelMessage]) -> list[ModelMessage]:
    """What was added behind the last answer."""
    return list(takewhile(lambda message: message.kind == "request", reversed(messages)))[::-1]


async def _run_with_events(agent: Any, start: Start, arguments: dict[str, Any]) -> Any:
    """The algorithm of `run`, with streamed requests: an answer may break off in the middle."""
    async with agent.run_stream_events(start.prompt, **arguments) as events:
        async for event in events:
            if isinstance(event, AgentRunResultEvent):
                return event.result.output
    raise AssertionError("a stream of events ends with a result or an exception")


def _limits(run: Run) -> UsageLimits:
    """Those of the recorded run; without them nothing may end a replay early."""
    recorded = run.agent.usage_limits or {}
    limits: dict[str, Any] = {name: recorded.get(name) for name in USAGE_LIMITS}
    return UsageLimits(**limits)


def _ended(output: Any, run: Run) -> Ending:
    if not isinstance(output, DeferredToolRequests):
        return Ending(output=Payload.of(dump_output(output)))
    approvals = {call.tool_call_id: "unapproved" for call in output.approvals}
    # The OpenAI Agents SDK knows of approvals alone.
    outside = "unapproved" if is_openai_agents(run) else "deferred"
    return Ending(open_calls=approvals | {call.tool_call_id: outside for call in output.calls})


def unreadable(error: ValidationError) -> str:
    place = error.errors(include_input=False, include_url=False)[0]
    path = ".".join(str(part) for part in place["loc"])
    return f"Pydantic AI cannot read a recorded message: {path}: {place['msg']}"


class Ticker:
    """Counts answered steps and tells of each."""

    def __init__(self, total: int, on_progress: Progress) -> None:
        self._done = 0
        self._total = total
        self._on_progress = on_progress

    def step(self) -> None:
        self._done += 1
        self._on_progress(self._done, self._total)
