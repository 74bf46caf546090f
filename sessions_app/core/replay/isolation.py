"""What was kept out of a replay, in words that claim only what was measured.

A replay's facts hold `fence`, and `tool_fence` when live tools ran, which have a process of their own:

    {"kernel": ["namespaces", "read-only root", "seccomp"], "held": ["network", "local sockets", "disk", "programs"]}

`held` is what native code in that process tried to reach and could not. `refused` are the audit events of attempts that
Python code made and that were refused, the first of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from sessions_app.core.payload import JsonObject

Reach = Literal["network", "local sockets", "disk", "programs"]
EVERYTHING: tuple[Reach, ...] = ("network", "local sockets", "disk", "programs")
ALL_BUT_SOCKETS: tuple[Reach, ...] = ("disk", "programs")
"""What is kept from a live tool."""
OWN_MACHINE = "ran on the person's own machine, without a seal"
"""Of a replay that was observed elsewhere; what it reached there, nobody counted."""
HOOK_ONLY = "audit hook only: native code is not fenced"
_ATTEMPTS: dict[str, str] = {
    "socket.connect": "opening a network connection",
    "socket.bind": "listening on the network",
    "socket.sendto": "sending to the network",
    "socket.sendmsg": "sending to the network",
    "socket.getaddrinfo": "looking up an address on the network",
    "socket.gethostbyname": "looking up an address on the network",
    "socket.gethostbyaddr": "looking up an address on the network",
    "socket.getnameinfo": "looking up an address on the network",
    "syslog.openlog": "writing to the system log",
    "syslog.syslog": "writing to the system log",
    "subprocess.Popen": "starting a program",
    "os.system": "starting a program",
    "os.exec": "starting a program",
    "os.posix_spawn": "starting a program",
    "os.spawn": "starting a program",
    "os.fork": "starting a process",
    "os.forkpty": "starting a process",
    "os.kill": "sending a signal to a process",
    "os.killpg": "sending a signal to a process",
    "open": "writing a file",
    "sqlite3.connect": "opening a database file",
}
_NAMES: dict[str, str] = {"network": "the network", "disk": "the disk", "programs": "other programs"}


def fence_in_words(kernel: Sequence[str], held: Collection[str], kept_from: Sequence[Reach] = EVERYTHING) -> str:
    """`namespaces, read-only root, seccomp and audit hook`; also what does not hold."""
    if not held:
        return HOOK_ONLY
    return "; ".join([_listed([*kernel, "audit hook"]), *_left_open(held, kept_from)])


def world_in_words(facts: JsonObject, *, is_live: bool = False, refused: int = 0, claim: str = "") -> str:
    """`0 network calls, 0 writes`, as far as the kernel kept native code from them. `claim` comes first where
    it was kept from everything.

    `is_live` says that a tool or a model was asked, which is told elsewhere; `refused` are attempts that were counted.
    """
    if is_own_machine(facts):
        return OWN_MACHINE
    held = _held(facts.get("fence"))
    in_tools = _held(facts["tool_fence"]) if facts.get("tool_fence") else held
    counted = [refused_in_words(facts, refused)] if refused else []
    if not held:
        return "; ".join([HOOK_ONLY, *counted])
    claims = [f"0 {'other ' if is_live else ''}network calls"] if "network" in held else []
    claims += ["0 writes"] if "disk" in held & in_tools else []
    told = [f"{claim if is_world_off(facts) else ''}{', '.join(claims)}"] if claims else []
    return "; ".join([*told, *counted, *_left_open(held, EVERYTHING), *_left_open_to_tools(facts)])


def refused_in_words(facts: JsonObject, refused: int) -> str:
    """`2 attempts refused: opening a network connection, writing a file`; empty where there were none."""
    if not refused:
        return ""
    named = dict.fromkeys(_ATTEMPTS.get(event, f"changing files ({event})") for event in facts.get("refused") or ())
    counted = f"{refused} attempt{'' if refused == 1 else 's'} refused"
    return f"{counted}: {', '.join(named)}" if named else counted


def is_world_off(facts: JsonObject) -> bool:
    """Whether native code, too, was kept from everything outside."""
    return _held(facts.get("fence")).issuperset(EVERYTHING)


def is_fenced(facts: JsonObject) -> bool:
    """Whether it was kept from anything at all."""
    return bool(_held(facts.get("fence")))


def is_own_machine(facts: JsonObject) -> bool:
    """Whether it ran on a person's own machine, where nothing was fenced and nothing counted."""
    return facts.get("isolation") == OWN_MACHINE


def _held(fence: JsonObject | None) -> frozenset[str]:
    return frozenset((fence or {}).get("held") or ())


def _left_open(held: Collection[str], kept_from: Sequence[Reach], whose: str = "") -> list[str]:
    within = [_NAMES.get(reach, reach) for reach in kept_from if reach not in held]
    return [f"native code{whose} is not kept from {_listed(within)}"] if within else []


def _left_open_to_tools(facts: JsonObject) -> list[str]:
    fence = facts.get("tool_fence")
    return _left_open(_held(fence), ALL_BUT_SOCKETS, " of live tools") if fence else []


def _listed(words: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
