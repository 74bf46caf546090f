"""The incidents of the examples, through the API of a real instance: forked, answered by hand, run by own code, paused.

Each test begins with what went wrong and ends with what would have happened.
"""

import json
import os
import signal
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from replay_web.supervisor.processes import wait_gone
from tests.agents.forking import REFUSAL
from tests.instances import PATIENCE, Instance, instance_in, open_folder, start_instance, wait_for_worker

OVER = {"done", "failed", "cancelled", "crashed", "paused"}
WORDS = {"hypothesis": "It does not know what nothing found means.", "expect": {"contains": "don't have"}}


@dataclass(frozen=True)
class Api:
    instance: Instance

    def get(self, path: str) -> dict[str, Any]:
        return self._call(path, None)

    def post(self, path: str, body: object = None) -> dict[str, Any]:
        return self._call(path, json.dumps(body or {}).encode())

    def _call(self, path: str, body: bytes | None) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.instance.api_key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.instance.url}/api/v1/{path}", data=body, headers=headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return dict(json.load(answer))

    def wait(self, replay_id: str) -> dict[str, Any]:
        """The replay once it waits for nobody but us."""
        until = time.monotonic() + PATIENCE
        while (replay := self.get(f"replays/{replay_id}"))["state"] not in OVER:
            assert time.monotonic() < until, replay
            time.sleep(0.1)
        return replay

    def fork(self, run_id: str, at: int | str, *changes: object, **more: object) -> dict[str, Any]:
        body = {"at_step": at, "changes": changes, **WORDS, **more}
        return self.wait(self.post(f"runs/{run_id}/forks", body)["replay_id"])

    def replay(self, run_id: str, **wanted: object) -> dict[str, Any]:
        return self.wait(self.post(f"runs/{run_id}/replays", wanted)["replay_id"])

    def steps(self, run_id: str) -> list[tuple[str, str]]:
        return [(step["kind"], step["source"]) for step in self.get(f"runs/{run_id}/steps")["items"]]


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with open_folder() as folder, instance_in(folder) as instance:
        wait_for_worker(instance)
        yield Api(instance)


def test_the_endless_search_ends_by_rule_and_by_own_code(api: Api):
    rule = {"kind": "rule", "when": "docs is empty", "answer": {"text": REFUSAL}}
    by_rule = api.fork("run_xyz789", "step_1", rule)
    by_code = api.fork("run_xyz789", "step_1", {"kind": "agent", "value": "v2_with_empty_check"})
    replayed = api.replay("run_xyz789", mode="code", agent="v2_with_empty_check")

    for fork in (by_rule, by_code, replayed):
        assert (fork["state"], fork["verdict"], fork["live_calls"]) == ("done", "diverged", 0)
        assert api.get(f"runs/{fork['run_id']}")["output"] == REFUSAL
    assert by_rule["facts"]["steps_after"] == by_code["facts"]["steps_after"] == 2
    assert api.steps(by_rule["run_id"])[-1] == ("model", "rule")
    assert api.steps(by_code["run_id"])[-1] == api.steps(replayed["run_id"])[-1] == ("model", "own_code")
    assert by_rule["expectation"]["met"] is True
    listed = {item["run_id"]: item["steps"] for item in api.get("runs/run_xyz789/forks")["items"]}
    assert {listed[fork["run_id"]] for fork in (by_rule, by_code, replayed)} == {3}
    assert api.get("runs/run_xyz789")["tool_calls"] == 20, "the original is as it was"


def test_the_order_of_somebody_else_is_asked_for_with_the_user(api: Api):
    assert api.replay("r_8821")["verdict"] == "reproduced"
    call = {"name": "lookup_order", "arguments": {"query": "my order", "user_id": "u_7710"}}
    asks = {"kind": "model_answer", "step": 2, "value": {"tool_calls": [call]}}

    fork = api.fork("r_8821", 2, asks)

    assert (fork["verdict"], fork["divergence"]["path"]) == ("unknown_from_step", "args.user_id")
    near = fork["stopped_at"]["nearest"][0]
    assert (near["run_id"], near["step"], near["differs"]) == ("r_8821", 3, ["args.user_id"])
    assert api.steps(fork["run_id"])[-1] == ("tool", "unknown")

    api.post(f"replays/{fork['replay_id']}/answers", {"value": [{"order": "#4398", "status": "processing"}]})
    fork = api.wait(fork["replay_id"])
    assert (fork["verdict"], fork["stopped_at"]["kind"]) == ("unknown_from_step", "model")

    api.post(f"replays/{fork['replay_id']}/answers", {"answer": {"text": "Order #4398 is processing."}})
    fork = api.wait(fork["replay_id"])
    assert fork["verdict"] == "diverged"
    assert api.get(f"runs/{fork['run_id']}")["output"] == "Order #4398 is processing."


def test_the_attempt_with_other_data_did_not_reproduce(api: Api):
    """The same question a day later: the data moved, and the tool knows of one order only."""
    order = [{"order": "#4398", "user_id": "u_7710", "item": "Travel kettle", "status": "processing"}]

    naive = api.fork("r_8821", 3, {"kind": "tool_result", "step": 3, "value": order}, expect={"contains": "#4421"})

    assert naive["verdict"] == "unknown_from_step"
    api.post(f"replays/{naive['replay_id']}/answers", {"answer": {"text": "Order #4398 is processing."}})
    naive = api.wait(naive["replay_id"])
    assert (naive["verdict"], naive["expectation"]["met"]) == ("diverged", False)


def test_nothing_is_an_answer_too(api: Api):
    fork = api.fork("r_8821", 3, {"kind": "tool_result", "step": 3, "value": None})

    assert api.get(f"runs/{fork['run_id']}/steps")["items"][2]["result"] is None
    assert api.steps(fork["run_id"])[2] == ("tool", "by_hand")


def test_the_repaired_order_desk_refuses_and_writes_nothing(api: Api):
    replay = api.replay("cancel_5521", mode="code", agent="order_desk_fixed")

    assert (replay["verdict"], replay["divergence"]["step"], replay["live_calls"]) == ("diverged", 4, 0)
    assert "not eligible" in replay["divergence"]["replayed"]
    assert api.replay("cancel_5521", mode="code", agent="order_desk")["verdict"] == "reproduced"


def test_a_paused_replay_outlives_every_process():
    with open_folder() as folder:
        api = Api(start_instance(folder / "home"))
        replay_id = api.replay("cancel_5521", breakpoints=[{"tool": "cancel_order"}])["replay_id"]
        paused = api.get(f"replays/{replay_id}")
        assert (paused["state"], paused["stopped_at"]["step"]) == ("paused", 4)
        pids = [*api.instance.pids(), api.instance.process.pid]
        for pid in pids:
            with suppress(ProcessLookupError):  # some end with another
                os.kill(pid, signal.SIGKILL)
        api.instance.process.wait()
        assert wait_gone(pids, 5)

        with instance_in(folder) as again:
            api = Api(again)
            assert api.get(f"replays/{replay_id}")["stopped_at"] == paused["stopped_at"]
            api.post(f"replays/{replay_id}/continue")
            replay = api.wait(replay_id)
            whole = api.replay("cancel_5521")

    assert (replay["state"], replay["verdict"]) == (whole["state"], whole["verdict"]) == ("done", "reproduced")
    assert replay["facts"]["fields_compared"] == whole["facts"]["fields_compared"]
