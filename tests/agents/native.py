"""Team code that goes around Python: what it reaches by native calls is told in the agent's instructions.

Where to reach is in the environment: NATIVE_PORT, NATIVE_SOCKET, NATIVE_FILE, NATIVE_SECRET. With NATIVE_LIBRARY the
calls are those of `native.c`, else libc's by ctypes.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
from typing import Any

from pydantic_ai import Agent

from sessions_app.core.formats.native import encode_native
from tests.agents.own_agents import recorded_run
from tests.recorder.scenarios import Play, Scripted, call, says

SAID = "Natively reached: "


def reached() -> dict[str, Any]:
    """By the names in which a replay's facts speak of them."""
    made = ctypes.PyDLL(os.environ["NATIVE_LIBRARY"]) if "NATIVE_LIBRARY" in os.environ else _ByHand()
    return {
        "network": bool(made.reach_network(int(os.environ["NATIVE_PORT"]))),
        "local sockets": bool(made.reach_local_socket(os.fsencode(os.environ["NATIVE_SOCKET"]))),
        "disk": bool(made.reach_disk(os.fsencode(os.environ["NATIVE_FILE"]))),
        "programs": bool(made.reach_programs()),
        "secret": _read(os.environ["NATIVE_SECRET"]),
    }


def connected() -> bool:
    """To the port of live tools."""
    return _ByHand().reach_network(int(os.environ["NATIVE_LIVE_PORT"]))


class _ByHand:
    def __init__(self) -> None:
        self._libc = ctypes.PyDLL(None)

    def reach_network(self, port: int) -> bool:
        where = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port) + bytes((127, 0, 0, 1)) + bytes(8)
        return self._connects(socket.AF_INET, where)

    def reach_local_socket(self, path: bytes) -> bool:
        return self._connects(socket.AF_UNIX, struct.pack("=H", socket.AF_UNIX) + path + b"\0")

    def _connects(self, family: int, where: bytes) -> bool:
        made = self._libc.socket(family, socket.SOCK_STREAM, 0)
        if made < 0:
            return False
        is_connected = self._libc.connect(made, where, len(where)) == 0
        self._libc.close(made)
        return bool(is_connected)

    def reach_disk(self, path: bytes) -> bool:
        made = self._libc.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        if made >= 0:
            self._libc.close(made)
        return bool(made >= 0)

    def reach_programs(self) -> bool:
        made, status = self._libc.fork(), ctypes.c_int(1)
        if made == 0:
            self._libc.execve(b"/bin/true", (ctypes.c_char_p * 2)(b"true", None), (ctypes.c_char_p * 1)(None))
            self._libc._exit(1)
        if made < 0:
            return False
        self._libc.waitpid(made, ctypes.byref(status), 0)
        return status.value == 0


def _read(path: str) -> str | None:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return None


def agent(*script: Any, is_recording: bool = False) -> Agent[None, str]:
    made: Agent[None, str] = Agent(Scripted(*script), name="native")

    @made.instructions
    def instructions() -> str:
        return "" if is_recording else f"{SAID}{json.dumps(reached())}"

    @made.tool_plain(metadata={"replay": "read"})
    def look() -> bool:
        """Look."""
        return True if is_recording else connected()

    return made


def recorded_record() -> dict[str, Any]:
    run = recorded_run(lambda: Play(agent(says(call("look", {}, "l")), says("Done."), is_recording=True), "Look"))
    return dict(json.loads(encode_native(run)))
