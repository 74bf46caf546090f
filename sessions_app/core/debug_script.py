"""A Python file for a developer: the team's agent under a downloaded recording, in a debugger."""

from __future__ import annotations

import json

from sessions_app.core.payload import JsonObject

_SETUP = "@SETUP@"


def debug_script(run_id: str, agent_target: str, breakpoints: list[JsonObject]) -> str:
    """The file's text. `agent_target` is `package.module:attribute`, `breakpoints` are those of an order
    (core/fork/order.py); without any it stops at every request to the model and every tool call."""
    setup = {"run_id": run_id, "agent": agent_target, "breakpoints": breakpoints}
    # As an ASCII literal: nothing in a run's id or a condition can end the text that it stands in.
    return _SCRIPT.replace(_SETUP, ascii(json.dumps(setup)))


_SCRIPT = '''\
"""Run an agent again under a recording, and stop in the debugger where it was asked for.

    python THIS_FILE RECORD.json [package.module:agent]

RECORD.json is the downloaded record of the run. Run it where the agent and its dependencies are, with a checkout of
the replay server on PYTHONPATH: it uses sessions_app.agents, and of the server's requirements only pydantic-ai-slim,
msgspec and time-machine. Your tools do not run, they give their recorded answers; the model is not asked. Everything
else of your code runs as it is, on this machine, without the fence that the server puts around it.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")
os.environ["REPLAY_RECORD"] = "off"

from pydantic_ai import models
from sessions_app.agents.clock import PinnedClock
from sessions_app.agents.own_agent import replay_with_own_agent
from sessions_app.agents.registry import load_agent
from sessions_app.agents.sub_agents import every_run_frozen
from sessions_app.core.fork.order import Order, read_breakpoints
from sessions_app.core.fork.stops import Stops
from sessions_app.core.formats.native import parse_native

SETUP = json.loads(@SETUP@)


class Debugger(Stops):
    """Calls breakpoint() where the replay would pause; `stop` is what is about to be answered."""

    def __init__(self, breakpoints):
        super().__init__(breakpoints)
        self.is_everywhere = not breakpoints

    def reach(self, stop):
        stopped = super().reach(stop)
        if stopped is not None or self.is_everywhere:
            print(f"\\nStop {self.at}: step {stop.step}, {stop.kind} {stop.name} {stop.arguments or ''}")
            breakpoint()
        return None


async def replay(run, own):
    clock = PinnedClock(run.started_at)
    try:
        return await replay_with_own_agent(
            run,
            own,
            order=Order(),
            ask=lambda question: None,
            on_progress=lambda done, total: None,
            clock=clock,
            stops=Debugger(read_breakpoints(SETUP["breakpoints"])),
        )
    finally:
        clock.release()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    run = parse_native(Path(sys.argv[1]).read_bytes())
    if run.run_id != SETUP["run_id"]:
        sys.exit(f"The record is of {run.run_id!r}, and this file is for {SETUP['run_id']!r}.")
    sys.path.insert(0, os.getcwd())
    models.ALLOW_MODEL_REQUESTS = False
    with every_run_frozen():
        own = load_agent(sys.argv[2] if len(sys.argv) > 2 else SETUP["agent"])
    result = asyncio.run(replay(run, own))
    print(f"\\n{result.verdict}{': ' + result.error if result.error else ''}")
    if result.divergence is not None:
        found = result.divergence
        print(f"step {found.step}, {found.path}\\n  recorded: {found.recorded}\\n  now:      {found.replayed}")


if __name__ == "__main__":
    main()
'''
