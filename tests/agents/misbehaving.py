"""Team code that goes wrong in every way, while it is imported or while its agent runs. Attributes are targets."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from sessions_app.examples.agents import order_desk
from tests.recorder.scenarios import Scripted


def _agent_that(misbehaves: Callable[[], Any]) -> Any:
    """It does so where its instructions are made, which is in the middle of a run."""
    agent = order_desk()

    @agent.instructions
    def instructions() -> str:
        misbehaves()
        return ""

    return agent


def _segfault() -> None:
    ctypes.string_at(0)


def _loop() -> None:
    while True:
        pass


def _hold_the_interpreter() -> None:
    re.match(r"(a+)+$", "a" * 60 + "b")


def _keep_all_processors_busy() -> None:
    """Hashing lets go of the interpreter."""
    for _ in range(8):
        threading.Thread(target=lambda: [hashlib.sha256(bytes(50_000_000)) for _ in range(10_000)], daemon=True).start()
    threading.Event().wait()


def _ask_somebody() -> None:
    input()


def _eat_memory() -> None:
    kept = []
    while True:
        kept.append(bytearray(10_000_000))


def _print_a_lot() -> None:
    for _ in range(1000):
        print("x" * 1_000_000)


def _print_to_stderr() -> None:
    for _ in range(1000):
        os.write(2, b"x" * 1_000_000)


def _fork() -> None:
    os.fork()


def _run_a_program() -> None:
    subprocess.run(["true"], check=True)


def _connect() -> None:
    socket.create_connection(("127.0.0.1", 9), 1)


def _write_outside() -> None:
    Path(__file__).with_suffix(".written").write_text("x")


KEY = "sk-proj-" + "Ab3dEf6hIj9kLm2n" * 3


def _complain() -> None:
    raise RuntimeError(f"401 from the backend: password=correct-horse-7 and key {KEY}")


complaining = functools.partial(_agent_that, _complain)
segfault = functools.partial(_agent_that, _segfault)
endless = functools.partial(_agent_that, _loop)
endless_in_c = functools.partial(_agent_that, _hold_the_interpreter)
busy = functools.partial(_agent_that, _keep_all_processors_busy)
asking = functools.partial(_agent_that, _ask_somebody)
memory = functools.partial(_agent_that, _eat_memory)
leaving = functools.partial(_agent_that, lambda: sys.exit(3))
leaving_at_once = functools.partial(_agent_that, lambda: os._exit(3))
printing = functools.partial(_agent_that, _print_a_lot)
printing_to_stderr = functools.partial(_agent_that, _print_to_stderr)
forking = functools.partial(_agent_that, _fork)
running_programs = functools.partial(_agent_that, _run_a_program)
connecting = functools.partial(_agent_that, _connect)
writing = functools.partial(_agent_that, _write_outside)


def _looking_that(misbehaves: Callable[[], Any]) -> Any:
    """It does so in its tool."""
    agent: Agent[None, str] = Agent(Scripted(), instructions="You look around.", name="looking")

    @agent.tool_plain(metadata={"replay": "read"})
    def look() -> dict[str, Any]:
        """Look around, in a thread as all sync tools do."""
        misbehaves()
        return {}

    return agent


segfault_in_a_tool = functools.partial(_looking_that, _segfault)
leaving_in_a_tool = functools.partial(_looking_that, lambda: sys.exit(3))
writing_in_a_tool = functools.partial(_looking_that, _write_outside)
memory_in_a_tool = functools.partial(_looking_that, _eat_memory)


def segfault_at_import() -> Any:
    _segfault()


def leaving_at_import() -> Any:
    sys.exit("no key")


def raising_at_import() -> Any:
    raise RuntimeError("OPENAI_API_KEY is not set")


def no_agent() -> Any:
    return "agent"


def running_an_agent_at_import() -> Any:
    agent = order_desk()
    agent.run_sync("hello")
    return agent
