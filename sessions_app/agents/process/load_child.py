"""Loads registered agents to see whether a replay could: `python -m …process.load_child LIFELINE SETUP`.

SETUP is that of `code_child`. A request holds `targets`; each has an answer as soon as it was loaded, with `target` and
`problem`, None when it is an agent. The world is off as in a replay, for this imports the team's code too.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

from sessions_app.agents.process.code_child import crash_words
from sessions_app.agents.process.code_fence import CodeLimits, fence_code
from sessions_app.agents.process.loading import loading_for_good
from sessions_app.agents.process.pipe import Pipe
from sessions_app.agents.process.world_off import Fence


def main() -> None:
    setup = json.loads(sys.argv[2])
    with loading_for_good():
        from sessions_app.agents.loop import sub_agents  # the library loads before the world goes off

    limits = CodeLimits(**setup["limits"])
    pipe = Pipe(lifeline=int(sys.argv[1]))
    fence = fence_code(limits, Path(setup["folder"]), setup["hidden"])
    os.dup2(2, 1)
    sys.stdin = io.StringIO()
    pipe.say({"ready": True})
    for request in pipe.requests():
        with sub_agents.every_run_frozen():
            for target in request["targets"]:
                pipe.say({"target": target, "problem": _problem(target, limits, fence)})


def _problem(target: str, limits: CodeLimits, fence: Fence) -> str | None:
    from sessions_app.agents.own_code.registry import load_team_agent

    fence.attempts.clear()
    try:
        load_team_agent(target)
    except BaseException as error:
        return crash_words(error, limits, fence)
    return None


if __name__ == "__main__":
    main()
