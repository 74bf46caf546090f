"""The examples send to a server as people run it, and it replays what they sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.api.test_real_server import ask, wait_for_replay
from tests.examples.running import run_example
from tests.instances import Instance


def sent_run(folder: Path, instance: Instance, command: str) -> str:
    """The id of the run that an example sent."""
    ran = run_example(folder, command, REPLAY_URL=instance.url, REPLAY_KEY=instance.api_key)
    run_id, _, where = ran.lines[-1].partition(":")[2].strip().partition(", ")
    assert (where, ran.recordings) == ("sent", []), ran
    return run_id


def answer(instance: Instance, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    return dict(json.loads(ask(instance, method, f"/api/v1/{path}", body)[1]))


@pytest.mark.parametrize("command", ["order_bot.py", "order_bot.py --fixed", "docs_bot.py", "docs_bot.py --fixed"])
def test_a_bot_is_recorded_and_its_run_is_reproduced(tmp_path: Path, running_instance: Instance, command: str):
    run_id = sent_run(tmp_path, running_instance, command)

    run = answer(running_instance, "GET", f"runs/{run_id}")
    queued = answer(running_instance, "POST", f"runs/{run_id}/replays", b"{}")
    replay = wait_for_replay(running_instance, queued["replay_id"])

    assert run["verdict"]["verdict"] == "replayable"
    assert (replay["state"], replay["verdict"], replay["live_calls"]) == ("done", "reproduced", 0)


def test_the_server_shows_how_the_order_changes(tmp_path: Path, running_instance: Instance):
    run_id = sent_run(tmp_path, running_instance, "order_bot.py")

    steps = answer(running_instance, "GET", f"runs/{run_id}/steps")["items"]

    (changed,) = [step for step in steps if "~orders" in step["state_changes"]]
    before, after = (changed[state]["orders"]["ORD-5521"]["status"] for state in ("input_state", "output_state"))
    assert (before, after) == ("delivered", "cancelled")


def test_the_server_tells_the_loop_of_the_docs_bot(tmp_path: Path, running_instance: Instance):
    run_id = sent_run(tmp_path, running_instance, "docs_bot.py")

    run = answer(running_instance, "GET", f"runs/{run_id}")

    assert "search_docs called 20 × with the same arguments" in run["story"]


def test_a_wrong_key_is_not_called_sent(tmp_path: Path, running_instance: Instance):
    ran = run_example(tmp_path, "order_bot.py", REPLAY_URL=running_instance.url, REPLAY_KEY="rpk_wrong")

    assert ran.lines[-1].partition(", ")[2].startswith("replay-recorder inspect /")
    assert len(ran.recordings) == 1


def test_spans_of_a_real_exporter_arrive_as_a_run_with_both_attempts(tmp_path: Path, running_instance: Instance):
    ran = run_example(
        tmp_path, "opentelemetry_spans.py", REPLAY_URL=running_instance.url, REPLAY_KEY=running_instance.api_key
    )

    found = answer(running_instance, "GET", "sessions?q=model:scripted-1")["items"]
    # The bots that record themselves use the same model.
    (run,) = [run for session in found for run in session["runs"] if (run["model_calls"], run["tool_calls"]) == (1, 2)]
    steps = answer(running_instance, "GET", f"runs/{run['run_id']}/steps")["items"]
    failed, again = [step for step in steps if step["kind"] == "tool"]
    (model,) = [step for step in steps if step["kind"] == "model"]
    assert (ran.status, run["status"], run["session_id"][:4]) == (0, "ok", "run_")
    assert [step["name"] for step in steps if step["kind"] == "other"] == ["retrieve_docs", "rerank", "generate"]
    assert (failed["error"]["type"], again["error"], len(again["result"])) == ("TimeoutError", None, 2)
    assert (model["tokens"]["output"], failed["call_id"]) == (8, again["call_id"])
