"""What is said of a fence: nothing that was not measured."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest

from sessions_app.agents.process.world_off import NETWORK, PROGRAMS
from sessions_app.core.replay.isolation import (
    EVERYTHING,
    HOOK_ONLY,
    fence_in_words,
    is_fenced,
    is_world_off,
    refused_in_words,
    world_in_words,
)

KERNEL = ["namespaces", "read-only root", "seccomp"]


def facts(*held: str, **more: Any) -> dict[str, Any]:
    return {"fence": {"kernel": KERNEL if held else [], "held": list(held)}, **more}


def tools(*held: str) -> dict[str, Any]:
    return {"kernel": [], "held": list(held)}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (facts(*EVERYTHING), "0 network calls, 0 writes"),
        (facts(), HOOK_ONLY),
        ({}, HOOK_ONLY),
        (
            facts("network", "disk"),
            "0 network calls, 0 writes; native code is not kept from local sockets and other programs",
        ),
        (facts("network", "local sockets", "programs"), "0 network calls; native code is not kept from the disk"),
        (
            facts("programs"),
            "native code is not kept from the network, local sockets and the disk",
        ),
        (facts(*EVERYTHING, tool_fence=tools("disk", "programs")), "0 network calls, 0 writes"),
        (
            facts(*EVERYTHING, tool_fence=tools("programs")),
            "0 network calls; native code of live tools is not kept from the disk",
        ),
    ],
)
def test_only_what_holds_is_claimed(found: dict[str, Any], words: str):
    assert world_in_words(found) == words


@pytest.mark.parametrize("count", range(len(EVERYTHING) + 1))
def test_no_claim_stands_without_its_measurement(count: int):
    for held in combinations(EVERYTHING, count):
        words = world_in_words(facts(*held))
        assert ("network calls" in words) == ("network" in held)
        assert ("writes" in words) == ("disk" in held)
        assert ("not kept" in words or words == HOOK_ONLY) == (set(held) != set(EVERYTHING))


def test_attempts_and_live_calls_are_told_beside_the_claim():
    words = world_in_words(facts(*EVERYTHING), is_live=True, refused=2, claim="world off: ")

    assert words == "world off: 0 other network calls, 0 writes; 2 attempts refused"
    assert world_in_words(facts(), refused=1, claim="world off: ") == f"{HOOK_ONLY}; 1 attempt refused"


def test_refused_attempts_are_named_once_each():
    found = facts(refused=["socket.connect", "open", "open", "subprocess.Popen", "os.mkdir"])

    assert refused_in_words(found, 5) == (
        "5 attempts refused: opening a network connection, writing a file, starting a program, "
        "changing files (os.mkdir)"
    )
    assert refused_in_words(found, 0) == ""


def test_every_attempt_that_a_replay_refuses_has_words():
    for event in [*NETWORK, *PROGRAMS, "open"]:
        assert "changing files" not in refused_in_words({"refused": [event]}, 1)


@pytest.mark.parametrize("count", range(len(EVERYTHING) + 1))
def test_the_world_is_called_off_only_where_nothing_was_open(count: int):
    for held in combinations(EVERYTHING, count):
        words = world_in_words(facts(*held), claim="world off: ")
        assert words.startswith("world off: ") is is_world_off(facts(*held)) is (set(held) == set(EVERYTHING))
        assert is_fenced(facts(*held)) is bool(held)
    assert not is_world_off({})


def test_a_fence_is_named_with_what_it_leaves_open():
    assert fence_in_words(KERNEL, EVERYTHING) == "namespaces, read-only root, seccomp and audit hook"
    assert fence_in_words(["network namespace"], ["network"]) == (
        "network namespace and audit hook; native code is not kept from local sockets, the disk and other programs"
    )
    assert fence_in_words([], []) == HOOK_ONLY
