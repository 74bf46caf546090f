"""What was kept out of a replay, in words that claim only what was measured.

A replay's facts hold `fence`, and `tool_fence` when live tools ran, which have a process of their own:

    {"kernel": ["namespaces", "read-only root", "seccomp"], "held": ["network", "local sockets", "disk", "programs"]}

`held` is what native code in that process tried to reach and could not.
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
    counted = [f"{refused} attempt{'' if refused == 1 else 's'} refused"] if refused else []
    if not held:
        return "; ".join([HOOK_ONLY, *counted])
    claims = [f"0 {'other ' if is_live else ''}network calls"] if "network" in held else []
    claims += ["0 writes"] if "disk" in held & in_tools else []
    told = [f"{claim if is_world_off(facts) else ''}{', '.join(claims)}"] if claims else []
    return "; ".join([*told, *counted, *_left_open(held, EVERYTHING), *_left_open_to_tools(facts)])


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
