"""The billing desk with a count of what its tools did, told from inside of the process that it is replayed in.

As a target the agent tells it at the end of its output. As a program this is the process of recording replays, with the
same tools within reach, and tells it among their facts.
"""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai import Agent

from sessions_app.agents.loop import replaying
from sessions_app.agents.loop.recording_replay import Progress
from sessions_app.agents.own_code.gate import Ask
from sessions_app.agents.process import child
from sessions_app.agents.process.sandbox import ReplayChild
from sessions_app.core.payload import JsonObject
from sessions_app.core.replay.observed import Replayed
from sessions_app.examples import agents as registered_agents


class CountingChild(ReplayChild):
    module = "tests.agents.counting"


def tally() -> str:
    return f"[charged {len(registered_agents.charged)}, e-mailed {len(registered_agents.emailed)}]"


def billing_desk() -> Agent[None, str]:
    agent = registered_agents.billing_desk()

    @agent.output_validator
    def counted(output: str) -> str:
        return f"{output} {tally()}"

    return agent


def main() -> None:
    real = replaying.replay_requested

    async def replay_requested(request: JsonObject, on_progress: Progress, ask: Ask) -> Replayed:
        result, record = await real(request, on_progress, ask)
        return replace(result, facts={**result.facts, "tally": tally()}), record

    replaying.replay_requested = replay_requested
    child.main()
