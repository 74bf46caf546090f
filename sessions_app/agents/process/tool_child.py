"""The process in which live tools of one replay run: `main` is told LIFELINE and SETUP.

SETUP is that of `code_child`. A request holds the `question` of `live_tools`, and its answer says also which `fence`
held in here and what was `refused`. Of all processes of a replay it alone has a network; of the team's code it runs the
module and the function that make the agent, and the tool.
"""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

from sessions_app.agents.loop import sub_agents
from sessions_app.agents.own_code import live_tools
from sessions_app.agents.own_code.registry import load_team_agent
from sessions_app.agents.process.code_fence import CodeLimits, fence_code
from sessions_app.agents.process.pipe import Pipe
from sessions_app.agents.process.world_off import Fence
from sessions_app.core.payload import JsonObject


def main() -> None:
    setup = json.loads(sys.argv[2])
    limits = CodeLimits(**setup["limits"])
    pipe = Pipe(lifeline=int(sys.argv[1]))
    fence = fence_code(limits, Path(setup["folder"]), setup["hidden"], has_network=True)
    os.dup2(2, 1)  # what is printed goes to the parent, which counts it and keeps nothing
    sys.stdin = io.StringIO()  # the pipe reads the real one
    pipe.say({"ready": True})
    own: Any = None
    for request in pipe.requests():
        if own is None:
            with sub_agents.every_run_frozen():
                own = _loaded(setup["target"])
        pipe.say({"id": request["id"], "result": _answered(own, request["question"], fence)})


def _loaded(target: str) -> Any:
    """Or the words that say why it cannot be."""
    try:
        return load_team_agent(target)
    except BaseException as error:
        return f"crashed: {type(error).__name__}: {error}"


def _answered(own: Any, question: JsonObject, fence: Fence) -> JsonObject:
    fence.attempts.clear()
    answer = {"cannot": own} if isinstance(own, str) else live_tools.run_tool(own, question)
    return {**answer, "fence": fence.to_json(), "isolation": fence.words, "refused": list(fence.attempts)}
