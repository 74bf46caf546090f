"""Runs a person's agent with recorded answers, and writes down what it did as for any other run."""

from __future__ import annotations

import asyncio
import bdb
import dataclasses
import json
import logging
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

from replay_recorder.guard import logger
from replay_recorder.hooks import hook_frameworks
from replay_recorder.recorder import activate, active, deactivate
from replay_recorder.replaying.errors import ReplayEnded
from replay_recorder.replaying.inner_agents import by_call
from replay_recorder.replaying.notes import AnotherRequest, OnDifference
from replay_recorder.replaying.own_agent import OwnAgent, is_openai_agents
from replay_recorder.replaying.recording import Recording
from replay_recorder.replaying.stops import Stops
from replay_recorder.replaying.tool_http import AnsweredHttp, LiveHttp, Refuse, ToolHttp, refused_here
from replay_recorder.replaying.turns import Turns
from replay_recorder.settings import Settings
from replay_recorder.writing.assembly import assemble

Tools = Literal["frozen", "run"]
Http = Literal["recorded", "live"]
_MAX_TURNS = re.compile(r"Max turns \((\d+)\) exceeded")


class NothingObserved(Exception):
    """The agent never began; the text says why."""


@dataclasses.dataclass(frozen=True)
class Replay:
    """What to play, and how."""

    recording: Recording
    own: OwnAgent
    tools: Tools = "frozen"
    http: Http = "recorded"
    """What answers the requests of tools that run."""
    on_difference: OnDifference = "stop"
    stops: Stops = dataclasses.field(default_factory=Stops)
    input: str | None = None
    """In place of the recorded prompt."""
    decisions: dict[int, bool] = dataclasses.field(default_factory=dict)
    """By the step of a call that waited for a person: whether it is approved, in place of what was decided then."""
    refuse: Refuse = refused_here
    """What becomes of a request that is sent outside of a tool's call."""
    inner: Mapping[str, Recording] = dataclasses.field(default_factory=dict)
    """The recordings of agents that ran as tools, by the id of their run."""
    code: dict[str, Any] | None = None
    """Which commit runs, for a process that may not ask git."""
    notes: list[AnotherRequest] = dataclasses.field(default_factory=list)
    """Takes the requests to the model that were not the recorded ones and were given the recorded answer."""


def observe(replay: Replay) -> bytes:
    """The run as a native record. What the agent raises is part of it. Raises `NothingObserved`, `bdb.BdbQuit` where
    somebody left the debugger, `ValueError` where HTTP cannot be answered, and `CannotLoadAgent` where the agent has no
    dependencies to begin with."""
    replay = dataclasses.replace(replay, own=replay.own.begun_with(replay.recording.initial_state))
    work = _openai_agents if is_openai_agents(replay.own.agent) else _pydantic_ai
    http = _http(replay)
    with tempfile.TemporaryDirectory() as folder, _recording_to(Path(folder), replay):
        raised: BaseException | None = None
        try:
            with nullcontext() if http is None else http.in_the_clients():
                asyncio.run(work(replay, http))
        except (bdb.BdbQuit, NothingObserved):
            raise
        except ReplayEnded as error:
            raised = error
        except Exception as error:
            if isinstance(error.__cause__, bdb.BdbQuit):
                raise error.__cause__ from None  # the OpenAI Agents SDK puts it into other words
            raised = error
        deactivate()
        return _kept_decisions(replay, _record_in(Path(folder), raised))


def _kept_decisions(replay: Replay, record: bytes) -> bytes:
    """The record, where no code decided on a call after the replay had: the library takes the later word."""
    if not replay.decisions:
        return record
    calls = {call.step: call.call_id for call in replay.recording.calls}
    decisions = {calls[step]: is_approved for step, is_approved in replay.decisions.items()}
    for step in json.loads(record).get("steps") or []:
        if decisions.get(step.get("call_id"), step.get("outcome") != "denied") != (step.get("outcome") != "denied"):
            raise NothingObserved(
                f"Your code decided on the call of {step.get('tool_name')} after the replay had: its handler of "
                "deferred calls answers for calls that it is not asked about. Let it answer for those in "
                "`requests.approvals` alone."
            )
    return record


def _http(replay: Replay) -> ToolHttp | None:
    if replay.tools != "run":
        return None
    return LiveHttp(replay.recording) if replay.http == "live" else AnsweredHttp(replay.recording, replay.refuse)


@contextmanager
def _recording_to(folder: Path, replay: Replay) -> Iterator[None]:
    """With the settings that the agent's own code gave to the recorder, but for where recordings go, and with snapshots
    where the recording has them."""
    recorder = active()
    settings = Settings() if recorder is None else recorder.settings
    level = logger.level
    logger.setLevel(logging.ERROR)  # that recordings stay in the folder is what is wanted here
    state = replay.own.state or settings.state
    every = replay.recording.snapshot_every or settings.snapshot_every
    http = settings.http or (replay.tools, replay.http) == ("run", "live")
    kept: dict[str, Any] = {"enabled": True, "sample": 1.0, "state": state, "snapshot_every": every, "http": http}
    activate(dataclasses.replace(settings, url=None, key=None, spool=folder, **kept), replay.code)
    hook_frameworks()
    try:
        yield
    finally:
        deactivate()
        logger.setLevel(level)


def _record_in(folder: Path, raised: BaseException | None) -> bytes:
    """The run that began first: others ran inside of it."""
    files = sorted((folder / "ready").glob("*.run"))
    if not files:
        reason = "" if raised is None else f": {type(raised).__name__}: {raised}"
        raise NothingObserved(f"The agent did not begin{reason or '.'}")
    return assemble(files[0].read_bytes())


# --- Pydantic AI -------------------------------------------------------------------------------


async def _pydantic_ai(replay: Replay, http: ToolHttp | None) -> None:
    from replay_recorder.replaying import pydantic_ai as doubles
    from replay_recorder.replaying.other_models import other_models_refused
    from replay_recorder.replaying.pydantic_decisions import DecidedByHand, decided_otherwise

    recording, own = replay.recording, replay.own
    name, settings = doubles.model_of(own.agent, own.arguments)
    decisions = decided_otherwise(recording, replay.decisions)
    prompt, started = doubles.recorded_start(recording, decisions)
    model = doubles.ReplayModel(recording, replay.on_difference, replay.stops, name=name, settings=settings)
    model.notes = replay.notes
    tools: list[Any] = [doubles.FrozenTools(recording, replay.on_difference, replay.stops, is_observed=True)]
    if replay.tools != "frozen":
        turns = Turns(recording)
        tools = [doubles.RunningTools(replay.stops, turns, http), doubles.LateAnswers(turns)]
    arguments = {
        **started,
        **own.arguments,
        "model": model,
        "capabilities": [*(own.arguments.get("capabilities") or ()), DecidedByHand(decisions), *tools],
        "deps": own.deps,
    }
    with other_models_refused(recording) as refused:
        try:
            await _run(own.agent, prompt if replay.input is None else replay.input, arguments, _entry(recording))
        finally:
            if refused.reasons:  # whatever the agent's code made of it
                raise NothingObserved(refused.reasons[0])


async def _run(agent: Any, prompt: Any, arguments: dict[str, Any], entry: str | None) -> None:
    """As the recorded run was started: streaming is another algorithm."""
    if entry == "run_stream":
        async with agent.run_stream(prompt, **arguments) as streamed:
            await streamed.get_output()
    elif entry == "run_stream_events":
        async with agent.run_stream_events(prompt, **arguments) as events:
            async for _ in events:
                pass
    else:
        await agent.run(prompt, **arguments)


def _entry(recording: Recording) -> str | None:
    entry: str | None = (recording.record.get("agent") or {}).get("entry_point")
    return entry


# --- OpenAI Agents SDK -------------------------------------------------------------------------


async def _openai_agents(replay: Replay, http: ToolHttp | None) -> None:
    from agents import RunConfig, Runner

    from replay_recorder.replaying import openai_agents as doubles
    from replay_recorder.replaying.openai_continued import is_continued, state_before

    recording, own = replay.recording, replay.own
    items, started = doubles.recorded_start(recording)
    arguments = {**own.arguments, **started, **_turns(recording)}
    config = arguments.get("run_config") or RunConfig()
    model = doubles.ReplayModel(recording, replay.on_difference, replay.stops, own=config.model)
    model.notes = replay.notes
    # Replays are not uploaded as traces.
    arguments["run_config"] = dataclasses.replace(config, model=model, tracing_disabled=True)
    if own.deps is not None:
        arguments["context"] = own.deps
    agent = own.agent
    if replay.tools == "frozen":
        agent = doubles.FrozenTools(recording, replay.on_difference, replay.stops)(agent)
    else:
        agent = doubles.RunningTools(replay.stops, http, _inner_by_call(replay))(agent)
    asked = items if replay.input is None else replay.input
    if is_continued(recording):
        _refuse_prompt(replay)
        with _unrecorded():
            asked = await state_before(recording, own.agent, agent, replay.decisions, arguments)
    elif replay.decisions:
        raise ValueError("This run was not continued with approvals: there is no decision to change.")
    with doubles.inner_runs_answered():
        if _entry(recording) == "run_streamed":
            async for _ in Runner.run_streamed(agent, asked, **arguments).stream_events():
                pass
        else:
            await Runner.run(agent, asked, **arguments)


def _inner_by_call(replay: Replay) -> dict[str, list[Recording]]:
    try:
        return by_call(replay.recording, replay.inner)
    except ValueError as error:
        raise NothingObserved(str(error)) from None


def _refuse_prompt(replay: Replay) -> None:
    if replay.input is not None:
        raise ValueError("This run went on from a state, and has no prompt of its own to change.")


@contextmanager
def _unrecorded() -> Iterator[None]:
    """What is played in here is no part of the replay."""
    recorder = active()
    deactivate()
    try:
        yield
    finally:
        if recorder is not None:
            activate(recorder.settings, recorder.code)


def _turns(recording: Recording) -> dict[str, int]:
    """The limit that ended the recorded run; a limit that was not reached is not recorded."""
    found = _MAX_TURNS.search(str((recording.record.get("error") or {}).get("message")))
    return {"max_turns": int(found.group(1))} if found else {}
