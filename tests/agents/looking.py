"""An agent that tells what its code can see and do: its tool by itself, a check before it at the end of the run."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.tools import RunContext

from sessions_app.core.formats.native import encode_native
from tests.agents.own_agents import recorded_run
from tests.recorder.scenarios import Play, Scripted, call, says

SEEN: dict[str, Any] = {}


def _reach() -> str:
    """A socket that is bound has reached the world, as far as the fence is concerned."""
    try:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
    except Exception as error:
        return type(error).__name__
    return "reached"


def _write(size: int) -> str:
    file = Path(os.environ["TMPDIR"], "kept")
    try:
        file.write_bytes(b"x" * size)
        (file.parent / "folder").mkdir(exist_ok=True)
        file.rename(file.parent / "folder" / "moved")
    except Exception as error:
        return type(error).__name__
    return "kept"


def agent(*script: Any, is_recording: bool = False) -> Agent[None, str]:
    made: Agent[None, str] = Agent(Scripted(*script), instructions="You look around.", name="looking")

    def check(ctx: RunContext[Any]) -> None:
        if not is_recording:
            SEEN.update(environment=dict(os.environ), in_the_check=_reach())
            SEEN.update(wrote=_write(10), too_much=_write(70_000_000))

    @made.tool_plain(args_validator=check, metadata={"replay": "read"})
    def look() -> dict[str, Any]:
        """Look around, in a thread as all sync tools do."""
        return {"in_the_tool": _reach(), "checked": bool(SEEN)}

    @made.output_validator
    def told(output: str) -> str:
        return output if is_recording else json.dumps(SEEN)

    return made


def recorded_record() -> dict[str, Any]:
    run = recorded_run(lambda: Play(agent(says(call("look", {}, "l")), says("Done."), is_recording=True), "Look"))
    return dict(json.loads(encode_native(run)))
