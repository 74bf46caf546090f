"""Agents of the OpenAI Agents SDK in the sealed process of the server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sessions_app.core.compare.runs import compare_runs
from sessions_app.core.formats.native import parse_native
from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.core.replay.proof import PROVEN
from sessions_app.services.replay_results import steps_answered
from tests.agents import sdk_agents
from tests.agents.code_talking import replay_in_child
from tests.agents.unsealed_child import UnsealedChild

RUN = {"tools": {"run": True}}
PLAY_ON = {"on_difference": "play_on"}
CANCELLED, REFUSED = "Order ORD-5521 cancelled.", "Order ORD-5521 cannot be cancelled: it is delivered."
REPRODUCED = ("reproduced", None, None)
FIXED = ("diverged", 4, "result")


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    return sdk_agents.recorded()


def replayed(name: str, record: dict[str, Any], order: dict[str, Any]) -> dict[str, Any]:
    return replay_in_child(f"tests.agents.sdk_agents:{name}", record, order=order)


def place(told: dict[str, Any]) -> tuple[Any, ...]:
    found = told["divergence"] or {}
    return told["verdict"], found.get("step"), found.get("path")


@pytest.mark.parametrize(
    ("name", "order", "ended"),
    [
        ("desk", {}, REPRODUCED),
        ("desk", RUN, REPRODUCED),
        ("fixed", RUN, FIXED),
        ("fixed", RUN | PLAY_ON, FIXED),
        ("fixed", {}, REPRODUCED),  # frozen tools do not run
        ("strict", {}, ("diverged", 1, "messages[0].instructions")),
    ],
)
def test_an_agent_of_the_sdk_is_replayed_behind_the_fence(record, name: str, order: dict[str, Any], ended: Any):
    told = replayed(name, record, order)

    assert (place(told), told["error"]) == (ended, None)
    assert (told["live_calls"], told["refused_calls"]) == (0, 0)
    assert told["facts"]["fence"]["held"] == ["network", "local sockets", "disk", "programs"]
    assert told["facts"]["clock"] == record["started_at"].replace("Z", "+00:00")


def test_a_fix_shows_both_answers(record):
    found = replayed("fixed", record, RUN)["divergence"]

    assert (found["recorded"], found["replayed"]) == (CANCELLED, REFUSED)


OUTPUT, INPUT = "guardrails.output[0]", "guardrails.input[0]"


@pytest.mark.parametrize(
    ("was", "now", "path"),
    [
        ("guarded", "guarded", None),
        ("guarded", "guarded_at_start", OUTPUT),
        ("guarded_at_start", "guarded", OUTPUT),
        ("guarded_at_start", "desk", INPUT),
        ("desk", "guarded_at_start", INPUT),
    ],
)
def test_a_guardrail_that_one_side_alone_has_is_a_difference(was: str, now: str, path: str | None):
    record = sdk_agents.recorded(getattr(sdk_agents, was))

    told = replayed(now, record, {})

    assert (told["verdict"], (told["divergence"] or {}).get("path")) == ("diverged" if path else "reproduced", path)
    parts = told["facts"]["proof"]
    assert parts["outcome"]["state"] == ("not_proven" if path else "proven")
    assert parts["requests"]["state"] == "proven"
    recorded, made = parse_native(json.dumps(record).encode()), parse_native(told["record"].encode())
    compared = compare_runs(replace(recorded, code=made.code), made)  # each process has imported packages of its own
    assert (compared.divergence.path if compared.divergence else None) == path


def test_a_message_that_a_hook_changed_in_its_place_is_found_at_the_request():
    told = replayed("changing_the_past", sdk_agents.recorded(), RUN)

    assert (place(told), told["error"]) == (("diverged", 3, "messages[0].parts[0].content"), None)


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("asking", REPRODUCED),
        ("asking_otherwise", ("diverged", 2, "result")),
        ("asking_with_other_tool", ("diverged", 2, "result")),
    ],
)
def test_an_agent_as_tool_runs_with_the_answers_of_its_own_run(name: str, ended: Any):
    outer, inner = sdk_agents.recorded_with_inner()

    told = replay_in_child(f"tests.agents.sdk_agents:{name}", outer, order=RUN, inner={inner["run_id"]: inner})

    assert (place(told), told["error"]) == (ended, None)


@pytest.mark.parametrize(
    ("was", "now", "ended"),
    [
        ("asking_within", "asking_within", REPRODUCED),
        ("asking_within", "asking_within_otherwise", ("diverged", 2, "result")),
        ("asking_within", "asking_within_in_other_words", ("diverged", 2, "result")),
        ("asking_within", "asking_within_twice", ("diverged", 2, "result")),
        ("asking_within", "asking_nobody_within", ("diverged", 2, "result")),
        ("asking_within_twice", "asking_within_twice", REPRODUCED),
        ("asking_within_twice", "asking_within", ("diverged", 2, "result")),
        ("asking_nobody_within", "asking_within", ("diverged", 2, "result")),
        ("asking_with_config", "asking_with_config", REPRODUCED),
        ("asking_behind_handoff", "asking_behind_handoff", REPRODUCED),
    ],
)
def test_so_does_an_agent_wherever_a_tool_runs_it(was: str, now: str, ended: Any):
    outer, *inner = sdk_agents.recorded_with_inner(getattr(sdk_agents, was))

    told = replay_in_child(
        f"tests.agents.sdk_agents:{now}", outer, order=RUN, inner={each["run_id"]: each for each in inner}
    )

    assert (place(told), told["error"]) == (ended, None)


def test_an_agent_as_tool_without_its_own_recording_is_refused_in_words():
    outer, inner = sdk_agents.recorded_with_inner()

    told = replayed("asking", outer, RUN)

    assert (told["verdict"], told["error"]) == (
        "could_not_run",
        "Step 2: ask runs an agent, and the recording of its own run is missing. Replay this run with frozen tools, "
        f"and the agent's own run, {inner['run_id']}, by itself.",
    )


def test_its_state_is_given_taken_and_compared():
    record = sdk_agents.recorded_with_state()

    same, kept = (replayed(name, record, RUN) for name in ("with_orders", "with_orders_kept"))

    assert place(same) == REPRODUCED
    assert same["facts"]["proof"]["state"] == PROVEN.to_json()
    assert place(kept) == ("diverged", 8, 'state.orders["ORD-5521"]')  # the snapshot behind the call


def test_a_streamed_run_is_replayed_as_one():
    record = sdk_agents.recorded_streamed()

    assert place(replayed("desk", record, RUN)) == REPRODUCED
    assert place(replayed("fixed", record, RUN)) == FIXED


@pytest.mark.parametrize(
    ("make", "tools", "breakpoint", "stop"),
    [
        (sdk_agents.recorded, RUN, {"tool": "cancel_order"}, ("tool", 4, "cancel_order", 4)),
        (sdk_agents.recorded_streamed, {}, {"tool": "cancel_order"}, ("tool", 4, "cancel_order", 4)),
        (sdk_agents.recorded_streamed, RUN, {"step": 3}, ("model", 3, "model", 3)),
        (sdk_agents.recorded, {}, {"when": 'args.order_id = "ORD-5521"'}, ("tool", 2, "lookup_order", 2)),
    ],
)
def test_it_pauses_where_it_is_told_to(make: Any, tools: dict[str, Any], breakpoint: dict[str, Any], stop: Any):
    told = replayed("desk", make(), {**tools, "breakpoints": [breakpoint]})

    stopped = told["stopped"]
    assert told["verdict"] == "paused"
    assert (stopped["kind"], stopped["step"], stopped["name"], stopped["at"]) == stop
    assert told["divergence"] is None
    assert steps_answered(told["facts"]) == stopped["step"] - 1


def test_a_tool_that_reaches_for_the_world_is_told_in_words(record):
    told = replayed("calling", record, RUN)

    assert told["error"] == "crashed: tried to leave the isolated replay (socket.getaddrinfo)"
    assert told["refused_calls"] > 0


def test_code_that_ends_its_process_is_told_in_words(record):
    assert replayed("leaving", record, {})["error"] == "crashed: sys.exit(3)"


@pytest.mark.parametrize("order", [{"tools": {"live": ["lookup_order"]}}, {"at_step": 1, "on_difference": "live"}])
def test_what_it_cannot_do_it_says(record, order: dict[str, Any]):
    told = replayed("desk", record, order)

    assert (told["verdict"], told["error"]) == ("could_not_run", NOT_WITH_SDK)


def test_tools_do_not_run_where_the_kernel_keeps_nothing_out(record):
    told = replay_in_child("tests.agents.sdk_agents:desk", record, order=RUN, child_type=UnsealedChild)

    assert told["verdict"] == "could_not_run"
    assert "Tools run only where the kernel enforces isolation" in told["error"]
