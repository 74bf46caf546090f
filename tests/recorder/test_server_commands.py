"""`replay-recorder list, show, replay, wait, diff, report`: with an address and a key alone, against a real server."""

import json
import subprocess
import sys
import time

import pytest

from replay_recorder import server_commands
from replay_recorder.cli import main
from replay_recorder.delivery.api_client import ApiClient
from replay_recorder.delivery.http_client import Client, Later
from replay_recorder.settings import VERSION
from sessions_app.api.examples import RECORD
from tests.api.test_real_server import send
from tests.recorder.local_server import Answer, local_server

FINISHED = {
    "replay_id": "rp_1",
    "run_of": "r",
    "state": "done",
    "verdict": "reproduced",
    "fork_id": None,
    "progress": {"done": 3, "total": 3},
    "divergence": None,
    "error": None,
}


@pytest.fixture(scope="module")
def instance(running_instance):
    for run_id, answer in (("command-a", "It is sunny."), ("command-b", "It rains.")):
        steps = [*RECORD["steps"][:2], {**RECORD["steps"][2], "response": {"kind": "response", "parts": [
            {"part_kind": "text", "content": answer}]}}]  # fmt: skip
        send(running_instance, json.dumps({**RECORD, "run_id": run_id, "output": answer, "steps": steps}).encode())
    return running_instance


@pytest.fixture
def command(instance, monkeypatch, capsys):
    """The exit code and what was printed."""
    monkeypatch.setenv("REPLAY_URL", instance.url)
    monkeypatch.setenv("REPLAY_KEY", instance.api_key)

    def run(*arguments):
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_runs_are_listed_and_found(command):
    code, out, _ = command("list")
    assert code == 0
    assert "command-a" in out
    code, out, _ = command("list", "--json", "--limit", "1")
    assert len(json.loads(out)) == 1
    assert command("list", "-q", "tool:nothing-of-this-name")[1] == ""
    code, _, err = command("list", "-q", "steps:many")
    assert code == 2
    assert "answers 400" in err


@pytest.mark.parametrize(("what", "ending"), [("replays", "reproduced"), ("sessions", "  1 run")])
def test_other_lists(command, what, ending):
    command("replay", "command-a")

    code, out, _ = command("list", what)

    assert code == 0
    assert out.splitlines()[0].endswith(ending)


def test_a_run_is_shown(command):
    code, out, _ = command("show", "command-a")

    assert code == 0
    assert out.splitlines()[0] == "command-a: ok, replayable"
    assert "It is sunny." in out
    assert json.loads(command("show", "command-a", "--json")[1])["run_id"] == "command-a"
    assert command("show", "nothing")[0] == 2


def test_a_run_is_replayed_by_the_server_and_waited_for(command):
    code, out, _ = command("replay", "command-a")
    assert code == 0
    assert "verdict: reproduced" in out
    replay_id = out.split()[0]
    assert command("wait", replay_id)[:2] == (0, out)
    assert command("show", replay_id)[:2] == (0, out)
    assert json.loads(command("wait", replay_id, "--json")[1])["verdict"] == "reproduced"


def test_one_request_key_is_one_replay(command):
    asked = [json.loads(command("replay", "command-a", "--request-key", "ci-1", "--json")[1]) for _ in range(2)]

    assert asked[0]["replay_id"] == asked[1]["replay_id"]


def test_an_agent_of_the_server_that_asks_otherwise_is_a_difference(command):
    code, out, err = command("replay", "command-a", "--agent", "order_desk")

    assert code == 1, err
    assert "First difference" in out
    assert command("replay", "command-a", "--agent", "nobody")[0] == 2


@pytest.mark.parametrize("option", [["--break", "2"], ["--input", "x"], ["--http", "live"], ["--tools", "run"]])
def test_what_only_an_own_machine_can_do_is_refused_on_the_server(command, option):
    code, out, err = command("replay", "command-a", *option)

    assert (code, out) == (2, "")
    assert option[0] in err


def test_an_expired_key_is_said_to_be_one(instance, capsys):
    """By the command, and by the recorder, which keeps what it could not send."""
    manager = ApiClient(instance.url, instance.connection["my_project_api_key"])
    old = manager.post("keys", body={"name": "ci", "scope": "full"})
    manager.post("keys", str(old["key_id"]), "rotate", body={"overlap_hours": 0})

    assert main(["list", "--url", instance.url, "--key", old["api_key"]]) == 2
    assert "answers 401: This key expired on 20" in capsys.readouterr().err
    outcome = Client(instance.url, old["api_key"]).post(json.dumps(RECORD).encode(), timeout=30)
    assert isinstance(outcome, Later)
    assert "401: This key expired on 20" in outcome.reason


def test_runs_are_compared(command):
    code, out, _ = command("diff", "command-a", "command-b")
    assert code == 1
    assert "First difference" in out
    assert "It rains." in out
    code, out, _ = command("diff", "command-a", "command-a", "--json")
    assert (code, json.loads(out)["identical"]) == (0, True)
    assert command("diff", "command-a", "nothing")[0] == 2


@pytest.mark.parametrize(("form", "begins"), [("txt", ""), ("md", "#"), ("json", "{"), ("html", "<!doctype html>")])
def test_a_report_is_printed(command, form, begins):
    code, out, _ = command("report", "command-a", "--format", form)

    assert code == 0
    assert out.lstrip().lower().startswith(begins)
    assert "command-a" in out


def test_a_report_of_one_replay_is_printed(command):
    replay_id = json.loads(command("replay", "command-a", "--json")[1])["replay_id"]
    code, out, err = command("report", replay_id, "--format", "md")

    assert (code, err) == (0, "")
    assert f"/replays/{replay_id}" in out
    assert command("report", "rp_nothing")[0] == 2


def test_the_command_stands_alone(instance):
    """In a process that has the recorder and nothing else."""
    alone = "import sys; sys.path.insert(0, '.'); from replay_recorder.cli import leave; leave()"
    asked = [sys.executable, "-I", "-S", "-c", alone]  # -S: no installed package is found
    version = subprocess.run([*asked, "--version"], capture_output=True, text=True, check=True)
    assert version.stdout == f"replay-recorder {VERSION}\n"
    key = ["--url", instance.url, "--key", instance.api_key]
    shown = subprocess.run([*asked, "show", "command-a", *key], capture_output=True, text=True, check=True)
    assert shown.stdout.startswith("command-a: ok")


# --- servers that are slow, busy or away -----------------------------------------------------------


def wait_at(server, *more):
    return main(["wait", "rp_1", "--url", server.url, "--key", "k", *more])


def answered(status=200, headers=None, **fields):
    return Answer(status=status, headers=headers or {}, body=json.dumps({**FINISHED, **fields}).encode())


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, 0),
        ({"verdict": "diverged"}, 1),
        ({"verdict": "diverged", "fork_id": "f"}, 0),
        ({"verdict": "unknown_from_step", "fork_id": "f"}, 1),
        ({"state": "paused", "verdict": None}, 1),
        ({"state": "failed", "verdict": "could_not_run"}, 2),
        ({"state": "cancelled", "verdict": "cancelled"}, 2),
        ({"state": "crashed", "verdict": None}, 2),
    ],
)
def test_the_exit_code_says_how_it_ended(fields, code):
    with local_server() as server:
        server.answer("/api/v1/replays/rp_1", answered(**fields))

        assert wait_at(server) == code


def test_what_goes_on_is_asked_for_again(capsys):
    with local_server() as server:
        server.answer("/api/v1/replays/rp_1", answered(state="queued"), answered(state="running"), answered())

        assert wait_at(server) == 0
        assert [each.path for each in server.received] == ["/api/v1/replays/rp_1?wait=30.0"] * 3


def test_what_does_not_end_is_a_code_of_its_own():
    with local_server() as server:
        server.answer("/api/v1/replays/rp_1", answered(state="running", verdict=None))
        began = time.monotonic()

        assert wait_at(server, "--timeout", "0.2") == 3
        assert time.monotonic() - began < 5


def test_a_busy_server_is_asked_again_after_what_it_says(monkeypatch):
    slept = []
    monkeypatch.setattr("replay_recorder.delivery.api_client.time.sleep", slept.append)
    busy = Answer(status=429, headers={"Retry-After": "7"}, body=b'{"error": {"message": "busy"}}')
    with local_server() as server:
        server.answer("/api/v1/replays/rp_1", busy, busy, answered())

        assert wait_at(server) == 0
    assert slept == [7.0, 7.0]


def test_without_an_address_and_without_a_server_it_says_so(monkeypatch, capsys):
    monkeypatch.delenv("REPLAY_URL", raising=False)

    assert main(["list"]) == 2
    assert "--url" in capsys.readouterr().err
    assert main(["list", "--url", "http://127.0.0.1:1"]) == 2
    assert "cannot be reached" in capsys.readouterr().err


def test_recorded_text_does_not_steer_the_terminal(capsys):
    with local_server() as server:
        server.answer("/api/v1/replays/rp_1", answered(error="\x1b[2Jgone"))
        wait_at(server)

    assert "\x1b" not in capsys.readouterr().out


def test_every_command_is_known_by_name():
    assert {"list", "show", "wait", "diff", "report"} == set(server_commands.NAMES)


@pytest.mark.parametrize(
    ("verdict", "found", "is_shown"),
    [
        ("unknown_from_step", {"step": 3, "path": "steps[3]", "recorded": None, "replayed": None}, False),
        ("unknown_from_step", {"step": 3, "path": "output", "recorded": "a", "replayed": None}, True),
        ("diverged", {"step": 3, "path": "messages[2]", "recorded": None, "replayed": None}, True),
        ("reproduced", None, False),
    ],
)
def test_where_a_recording_ends_no_difference_is_shown(verdict, found, is_shown):
    told = {"replay_id": "p1", "run_of": "r1", "state": "done", "verdict": verdict, "divergence": found, "error": None}
    replay = {**told, "progress": {"done": 2, "total": 2}, "stopped": None, "url": "http://localhost/"}

    lines = "\n".join(server_commands._replay_lines(replay))

    assert ("First difference" in lines) is is_shown
