"""The process of code replays: `main` is told LIFELINE and SETUP.

It talks as `pipe` says, and its requests and results are those of `child`. SETUP is JSON: `target` of the agent
(`package.module:attribute`), `limits` (`CodeLimits`), `folder` in which it may write, `hidden`, places that
cannot be read. It serves one replay and no other, for the team's code leaves traces in a process.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sessions_app.agents.loop import sub_agents
from sessions_app.agents.own_code.registry import CannotLoadAgent, load_team_agent
from sessions_app.agents.own_code.replaying import replay_with_code
from sessions_app.agents.process.child import attempt, result_body
from sessions_app.agents.process.code_fence import CodeLimits, fence_code
from sessions_app.agents.process.pipe import Pipe
from sessions_app.agents.process.world_off import Fence
from sessions_app.core.fork.order import read_order
from sessions_app.core.payload import JsonObject, JsonValue
from sessions_app.core.replay.observed import Result


def main() -> None:
    setup = json.loads(sys.argv[2])
    limits = CodeLimits(**setup["limits"])
    pipe = Pipe(lifeline=int(sys.argv[1]))
    fence = fence_code(limits, Path(setup["folder"]), setup["hidden"])
    os.dup2(2, 1)  # what is printed goes to the parent, which counts it and keeps nothing
    sys.stdin = io.StringIO()  # the pipe reads the real one
    pipe.say({"ready": True})
    requests = pipe.requests()
    request = next(requests)
    with sub_agents.every_run_frozen():
        body = _serve(request, setup["target"], fence, limits, pipe)
    pipe.say({"id": request["id"], "result": body})
    next(requests)


def _serve(request: JsonObject, target: str, fence: Fence, limits: CodeLimits, pipe: Pipe) -> JsonObject:
    of_tools: JsonObject = {}

    def replay(request: JsonObject, on_progress: Any, ask: Callable[[JsonObject], JsonValue]) -> Any:
        """The team's module is imported here, before there is a loop."""

        def asked(question: JsonObject) -> JsonValue:
            reply = ask(question)
            if question["what"] == "live_tool":
                _note_fence(of_tools, fence, dict(reply or {}))
            return reply

        return replay_with_code(request, load_team_agent(target), on_progress, asked)

    if read_order(request.get("order") or {}).tools.run and not fence.holds_all:
        words = f"Tools run only where the kernel enforces isolation. This machine has: {fence.words}."
        return result_body(Result(verdict="could_not_run", error=words), None, fence)
    result, record = attempt(request, pipe, replay, lambda error: crash_words(error, limits, fence))
    body = result_body(_as_crash(result, limits, fence), record, fence)
    return {**body, "facts": {**body["facts"], **of_tools}, "ran_code": True}


def _note_fence(facts: JsonObject, fence: Fence, reply: JsonObject) -> None:
    """Tools have a process and a fence of their own; what was refused there counts as well."""
    fence.attempts.extend(reply.get("refused") or ())
    if "fence" in reply:
        facts |= {"tool_fence": reply["fence"], "tool_isolation": reply["isolation"]}


def _as_crash(result: Result, limits: CodeLimits, fence: Fence) -> Result:
    """An error that only the replay's own limits make says nothing of the agent."""
    error = result.observations.error if result.observations else None
    kind = error.type if error else (result.error or "").partition(":")[0]
    words = _of_limit(kind, limits, fence)
    return result if words is None else Result(verdict="could_not_run", error=words, facts=result.facts)


def _of_limit(kind: str | None, limits: CodeLimits, fence: Fence) -> str | None:
    """What an exception of this name means here; None when it is the team's own."""
    if kind == "MemoryError":
        return f"crashed: memory limit {limits.memory_mb} MB"
    if kind == "WorldIsOff" and fence.attempts:
        return f"crashed: tried to leave the isolated replay ({', '.join(dict.fromkeys(fence.attempts))})"
    return None


def crash_words(error: BaseException, limits: CodeLimits, fence: Fence) -> str:
    if isinstance(error, SystemExit):
        return f"crashed: sys.exit({'' if error.code is None else error.code})"
    if isinstance(error, CannotLoadAgent):
        return f"could not be loaded: {error}"
    words = _of_limit(type(error).__name__, limits, fence)
    return words or f"crashed: {type(error).__name__}: {error}"
