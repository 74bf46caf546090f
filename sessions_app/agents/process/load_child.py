"""Loads registered agents to see whether a replay could: `main` is told LIFELINE and SETUP.

SETUP is that of `code_child`. A request holds `targets`; each has an answer as soon as it was loaded, with `target`,
`problem`, None when it is an agent, and `reads_state`. The world is off as in a replay, for this imports the team's
code too.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from sessions_app.agents.loop import sub_agents
from sessions_app.agents.own_code.registry import load_team_agent
from sessions_app.agents.process.code_child import crash_words
from sessions_app.agents.process.code_fence import CodeLimits, fence_code
from sessions_app.agents.process.pipe import Pipe
from sessions_app.agents.process.world_off import Fence
from sessions_app.core.payload import JsonObject


def main() -> None:
    setup = json.loads(sys.argv[2])
    limits = CodeLimits(**setup["limits"])
    pipe = Pipe(lifeline=int(sys.argv[1]))
    fence = fence_code(limits, Path(setup["folder"]), setup["hidden"])
    os.dup2(2, 1)
    sys.stdin = io.StringIO()
    pipe.say({"ready": True})
    for request in pipe.requests():
        with sub_agents.every_run_frozen():
            for target in request["targets"]:
                pipe.say({"target": target, **_loaded(target, limits, fence)})


def _loaded(target: str, limits: CodeLimits, fence: Fence) -> JsonObject:
    fence.attempts.clear()
    try:
        own = load_team_agent(target)
    except BaseException as error:
        return {"problem": crash_words(error, limits, fence), "reads_state": None}
    return {"problem": None, "reads_state": own.deps_of_state is not None}
