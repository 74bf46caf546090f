"""What a person puts in the place of a model and of tools, for the framework that the run was recorded with."""

from __future__ import annotations

import sys
from typing import Any

from replay_recorder.replaying.notes import checked
from replay_recorder.replaying.recording import Recording, Run, read_recording
from replay_recorder.replaying.stops import Stops

_OPENAI_AGENTS = "openai-agents"


def replay_model(
    run: Run, *, on_difference: str = "stop", url: str | None = None, key: str | None = None, stops: Stops | None = None
) -> Any:
    """A model that gives the recorded answers in order and never makes one up.

        with agent.override(model=replay_model("r_8821")):                      # Pydantic AI
            agent.run_sync(prompt)

        Runner.run_sync(agent, prompt, run_config=RunConfig(model=replay_model("r_8821")))    # OpenAI Agents SDK

    `run` is a native record, the path of one, or the id of a run, which is fetched from the server at `url` (else
    REPLAY_URL) with `key` (else REPLAY_KEY). A request that is not the recorded one raises `RequestDiffers`; with
    `on_difference="play_on"` it is given the recorded answer, and `notes` of the model says so. One more request than
    was recorded raises `RecordingExhausted`. A model serves one run.
    """
    recording = run if isinstance(run, Recording) else read_recording(run, url=url, key=key)
    return _doubles(recording).ReplayModel(recording, checked(on_difference), stops)


def frozen_tools(
    run: Run, *, on_difference: str = "stop", url: str | None = None, key: str | None = None, stops: Stops | None = None
) -> Any:
    """What keeps the bodies of tools from running and gives their recorded answers.

        agent.run_sync(prompt, capabilities=[frozen_tools("r_8821")])           # Pydantic AI

        Runner.run_sync(frozen_tools("r_8821")(agent), prompt, run_config=…)    # OpenAI Agents SDK: a copy of the agent

    Arguments as for `replay_model`. A call with other arguments than the recorded one raises `RequestDiffers`, or is
    given the recorded answer; one that was never recorded raises `NoAnswerRecorded`.
    """
    recording = run if isinstance(run, Recording) else read_recording(run, url=url, key=key)
    return _doubles(recording).FrozenTools(recording, checked(on_difference), stops)


def _doubles(recording: Recording) -> Any:
    """Only the framework that is needed is imported. A recording that names another one, as one that came as spans,
    serves the framework that is loaded."""
    is_loaded = recording.framework != "pydantic-ai" and "agents" in sys.modules and "pydantic_ai" not in sys.modules
    if recording.framework == _OPENAI_AGENTS or is_loaded:
        from replay_recorder.replaying import openai_agents

        return openai_agents
    from replay_recorder.replaying import pydantic_ai

    return pydantic_ai
