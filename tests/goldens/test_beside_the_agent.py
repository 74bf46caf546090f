"""Goldens where the agent is: the recorder's command against a real server, and exported folders under pytest alone."""

from __future__ import annotations

import copy
import io
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from replay_goldens.playing import golden_of, play
from replay_goldens.trace import OF_ANOTHER_REQUEST, of_another_from
from replay_recorder.cli import main
from replay_recorder.replaying import golden_command
from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.examples import agents as registered_agents
from sessions_app.models import GoldenRun, Replay
from tests.builders import make_client, make_key, make_project, post_run
from tests.examples.running import NO_NETWORK
from tests.instances import clean_environment
from tests.web.records import EXAMPLES

pytestmark = pytest.mark.django_db(transaction=True)
AGENTS = "sessions_app.examples.agents"
STORIES = {
    # scene: checks, mode, the agent that was recorded, the repaired one
    "cancel_bug": (
        [{"kind": "result", "tool": "cancel_order", "contains": "not eligible"}],
        "code_and_tools",
        "order_desk",
        "order_desk_repaired",
    ),
    "run_xyz789": (
        [
            {"kind": "at_most_calls", "tool": "search_docs", "n": 3},
            {"kind": "output", "contains_any": ["don't have", "no documents"]},
        ],
        "code",
        None,
        "v2_with_empty_check",
    ),
}


@pytest.fixture(autouse=True)
def own_world(monkeypatch):
    """The tools of the example agents run in this process: what they change is put back."""
    monkeypatch.setattr(registered_agents, "orders", copy.deepcopy(registered_agents.orders))
    monkeypatch.setattr(registered_agents, "cancelled", [])


@pytest.fixture
def client(live_server, monkeypatch):
    key = make_key(make_project())
    monkeypatch.setenv("REPLAY_URL", live_server.url)
    monkeypatch.setenv("REPLAY_KEY", key)
    return make_client(key)


def keep(client, story, **fields):
    checks, mode, _, _ = STORIES[story]
    scene = (EXAMPLES / f"{story}.json").read_bytes()
    run_id = post_run(client, scene).json()["run_id"]
    body = {"name": story, "run_id": run_id, "checks": checks, "replay": {"mode": mode, "on_difference": "play_on"}}
    answer = client.post("/api/v1/goldens", json.dumps({**body, **fields}), content_type="application/json")
    assert answer.status_code == 201, answer.content
    return answer.json()


def run(*arguments):
    return main(["goldens", "run", "--yes", *arguments])


def test_a_repair_passes_and_what_was_recorded_fails(client, capsys, tmp_path):
    golden = keep(client, "cancel_bug")
    junit, markdown = tmp_path / "junit.xml", tmp_path / "goldens.md"

    assert run("--agent", f"{AGENTS}:order_desk", "--junit", str(junit), "--markdown", str(markdown)) == 1
    assert "Failed  cancel_bug: Expected: an answer of cancel_order contains" in capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert f"]({os.environ['REPLAY_URL']}/p/shop/golden-runs/" in markdown.read_text()

    assert run("--agent", f"{AGENTS}:order_desk_repaired", "--label", "v2") == 0
    assert "1 of 1 golden run passed" in capsys.readouterr().out
    body = client.get(f"/api/v1/goldens/{golden['golden_id']}").json()
    assert (len(body["fails_on"]), len(body["passes_on"]), body["warnings"]) == (2, 1, [])
    assert {run.batch.label for run in GoldenRun.objects.select_related("batch")} == {"", "v2"}


def test_an_unchanged_agent_whose_tools_were_marked_since_passes_as_on_the_server(client):
    """The recording has no marks; the agent says of one tool that it only reads."""
    checks = [{"kind": "at_most_calls", "tool": "lookup_order", "n": 1}, {"kind": "ends_within", "n": 5}]
    for mode in ("code", "code_and_tools"):
        golden = keep(client, "cancel_bug", checks=checks, replay={"mode": mode})
        assert run("--golden", golden["golden_id"], "--agent", f"{AGENTS}:order_desk") == 0
    found = {replay.mode: replay.divergence for replay in Replay.objects.all()}
    assert found == {"code": None, "code_and_tools": None}


def test_an_agent_that_ends_a_loop_itself_passes(client):
    keep(client, "run_xyz789")

    assert run("--agent", f"{AGENTS}:v2_with_empty_check") == 0


def test_without_ids_only_goldens_of_agents_of_this_name_run(client, capsys):
    golden = keep(client, "run_xyz789")

    assert run("--agent", f"{AGENTS}:order_desk") == 3
    assert not Replay.objects.exists()
    assert run("--golden", golden["golden_id"], "--agent", f"{AGENTS}:order_desk") == 2  # it has no search_docs


def test_goldens_that_run_no_code_are_left_to_the_server(client):
    keep(client, "cancel_bug", replay={"mode": "recording"})

    assert run("--agent", f"{AGENTS}:order_desk") == 3


def test_what_cannot_run_says_so(client, capsys):
    keep(client, "cancel_bug")

    assert run("--agent", "examples.nowhere:agent") == 2
    assert run("--golden", "gd_nothing", "--agent", f"{AGENTS}:order_desk") == 2
    assert "There is no golden gd_nothing on the server." in capsys.readouterr().err
    assert main(["goldens", "run", "--agent", f"{AGENTS}:order_desk"]) == 2  # nobody said that its tools may run


BROKEN = """
import sys
from sessions_app.examples.agents import order_desk


def make():
    agent = order_desk()

    @agent.instructions
    def also():
        BODY

    return agent
"""


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("raise RuntimeError('down')", 1, "It ended with an error: RuntimeError: down"),
        ("sys.exit(0)", 2, "ended the process"),
    ],
)
def test_code_that_breaks_does_not_pass(client, tmp_path, body, code, words):
    """In a process of its own, which a thread of the agent's must not keep alive."""
    (tmp_path / "broken.py").write_text(BROKEN.replace("BODY", body))
    keep(client, "cancel_bug", checks=[{"kind": "ends_within", "n": 9}, {"kind": "no_write", "tools": ["refund"]}])
    command = [sys.executable, "-m", "replay_recorder", "goldens", "run", "--yes", "--agent", "broken:make"]
    places = os.pathsep.join((str(PROJECT_ROOT), str(tmp_path)))

    ran = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": places}, cwd=tmp_path, capture_output=True, text=True, timeout=120
    )

    assert ran.returncode == code, ran.stdout + ran.stderr
    assert words in ran.stdout


def test_a_golden_in_quarantine_runs_and_does_not_count(client):
    golden = keep(client, "cancel_bug")
    put_into_quarantine(client, golden)

    assert run("--agent", f"{AGENTS}:order_desk") == 3
    assert GoldenRun.objects.get().result == "fail"


def put_into_quarantine(client, golden):
    address = f"/api/v1/goldens/{golden['golden_id']}/quarantine"
    client.post(address, json.dumps({"reason": "known"}), content_type="application/json")


def test_what_could_not_run_stands_in_every_report(client, tmp_path, monkeypatch, capsys):
    (tmp_path / "leaving.py").write_text(BROKEN.replace("BODY", "sys.exit(3)"))
    monkeypatch.syspath_prepend(tmp_path)
    golden = keep(client, "cancel_bug")
    junit = tmp_path / "junit.xml"

    assert run("--agent", "leaving:make", "--junit", str(junit), "--label", "v2", "--deploy") == 2

    said = "Could not run  cancel_bug: Could not run: the agent's code ended the process with 3"
    assert said in capsys.readouterr().out
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")
    [found] = GoldenRun.objects.select_related("replay", "batch")
    assert (found.result, found.batch.label, found.replay.state) == ("could_not_run", "v2", "failed")

    resumed = client.post(f"/api/v1/golden-batches/{found.batch.golden_batch_id}/resume").json()
    assert resumed["result"] == "could_not_run"  # it is this machine's

    put_into_quarantine(client, golden)
    assert run("--agent", "leaving:make") == 3


def test_git_is_asked_once_for_all_goldens(client, monkeypatch):
    commits_of_today = iter([{"commit": "a1b2c3"}])
    monkeypatch.setattr(golden_command, "commit_facts", lambda: next(commits_of_today))
    monkeypatch.setattr(subprocess, "run", lambda command, **options: pytest.fail(f"started {command}"))
    keep(client, "cancel_bug")
    keep(client, "cancel_bug", checks=[{"kind": "arguments", "tool": "cancel_order", "path": "", "contains": "5521"}])

    assert run("--agent", f"{AGENTS}:order_desk_repaired") == 0
    found = [replay.produced_run.commit for replay in Replay.objects.select_related("produced_run")]
    assert found == ["a1b2c3", "a1b2c3"]


# --- exported ----------------------------------------------------------------------------------


def exported(client, golden, folder):
    answer = client.get(f"/api/v1/goldens/{golden['golden_id']}/export")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        archive.extractall(folder)


def run_pytest(folder, agent):
    """As a team's own tests: with the plugin, no server, no key, no network, and nothing of this project's settings."""
    environment = clean_environment(PYTHONPATH=f"{PROJECT_ROOT}{os.pathsep}{NO_NETWORK}")
    environment = {name: value for name, value in environment.items() if not name.startswith("REPLAY_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "replay_goldens.pytest_plugin", "-p", "no:django"]
    return subprocess.run(
        [*command, "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder), "--golden-agent", agent],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("story", STORIES)
def test_an_exported_golden_fails_on_the_bad_agent_and_passes_on_the_repaired_one(story, client, tmp_path):
    _, _, bad, good = STORIES[story]
    exported(client, keep(client, story), tmp_path)

    passed = run_pytest(tmp_path, f"{AGENTS}:{good}")
    assert passed.returncode == 0, passed.stdout + passed.stderr
    if bad is not None:
        failed = run_pytest(tmp_path, f"{AGENTS}:{bad}")
        assert failed.returncode == 1, failed.stdout + failed.stderr
        assert "FAIL an answer of cancel_order contains “not eligible”" in failed.stdout


OF_CHOICE = [
    {"kind": "ends_within", "n": 5},
    {"kind": "at_most_calls", "tool": "cancel_order", "n": 1},
    {"kind": "tool_order", "tools": ["lookup_order", "cancel_order"]},
]
UNKNOWN = [
    OF_ANOTHER_REQUEST,
    f"it made 4 steps so far; {of_another_from(5)}",
    f"cancel_order was called 1 time so far; {of_another_from(5)}",
]


def test_an_answer_that_was_recorded_for_another_request_is_not_judged(client, capsys, tmp_path):
    """The repaired tool says something else, and what the model says and does then is not known. Control: the agent of
    then makes the very requests that the answers were recorded for."""
    golden = keep(client, "cancel_bug", checks=[{"kind": "output", "contains": "cancelled"}, *OF_CHOICE])
    exported(client, golden, tmp_path)
    recorded, repaired = f"{AGENTS}:order_desk", f"{AGENTS}:order_desk_repaired"

    assert run("--golden", golden["golden_id"], "--agent", repaired) == 3
    said = f"the answer contains “cancelled”; {OF_ANOTHER_REQUEST}"
    assert f"Not judged: {said}" in capsys.readouterr().out
    made = GoldenRun.objects.get()
    row = client.get(f"/api/v1/golden-runs/{made.golden_run_id}").json()
    assert (row["result"], row["words"]) == ("nothing_covered", f"Not judged: {said}")
    assert client.get(f"/api/v1/goldens/{golden['golden_id']}").json()["passes_on"] == ["cancel_5521"]
    tested = run_pytest(tmp_path, repaired)
    assert tested.returncode == 1, tested.stdout + tested.stderr
    assert f"?    the answer contains “cancelled”: {OF_ANOTHER_REQUEST}" in tested.stdout
    assert f"?    ends within 5 steps: it made 4 steps so far; {of_another_from(5)}" in tested.stdout
    assert [check["seen"] for check in row["checks"] if check["passed"] is None] == UNKNOWN

    assert run("--golden", golden["golden_id"], "--agent", recorded) == 0
    assert run_pytest(tmp_path, recorded).returncode == 0


def test_an_exported_golden_without_an_agent_says_what_is_missing(client, tmp_path):
    exported(client, keep(client, "cancel_bug"), tmp_path)

    assert "Say whose code runs: --golden-agent module:attribute" in run_pytest(tmp_path, "").stdout


def test_code_that_breaks_does_not_pass_in_an_exported_golden(tmp_path, monkeypatch):
    """Its only check has held by then. Control: the same golden with an agent that does not break."""
    body = "also.asked = getattr(also, 'asked', 0) + 1; assert also.asked < 3, 'down'"
    (tmp_path / "breaks_off.py").write_text(BROKEN.replace("BODY", body))
    monkeypatch.syspath_prepend(tmp_path)
    golden = golden_of("cancel_5521", PROJECT_ROOT / "examples" / "goldens")
    golden = replace(golden, checks=[{"kind": "result", "tool": "lookup_order", "contains": "delivered"}])

    broken = play(golden, agent="breaks_off:make")

    assert play(golden).passed
    assert ([each.seen.passed for each in broken.judged], broken.passed) == ([True], False)
    assert "FAIL It ended with an error: AssertionError: down" in str(broken)


def test_playing_an_exported_golden_starts_no_program(monkeypatch):
    """A hundred of them would ask git for the commit a hundred times."""
    monkeypatch.setattr(subprocess, "run", lambda command, **options: pytest.fail(f"started {command}"))

    assert play(golden_of("cancel_5521", PROJECT_ROOT / "examples" / "goldens")).passed


OF_ONES_OWN = """
from pathlib import Path

from replay_goldens.events import events_beside
from replay_recorder import ToolReplayer

load_events = events_beside(__file__)


def test_empty_docs_no_loop():
    \"\"\"Test that agent doesn't loop when docs are empty.\"\"\"
    # Replay the original bad run
    events = load_events("run_xyz789")
    # Should not have more than 3 search attempts
    search_count = sum(1 for e in events if e.tool_name == "search_docs")
    assert search_count <= 3, f"Agent looped {search_count} times"
    # Should refuse when docs are empty
    final_answer = events[-1].output_state.get("answer", "")
    assert "don't have" in final_answer.lower() or "no documents" in final_answer.lower()


def test_the_fork_completes_in_two_steps():
    events = load_events("run_xyz789")
    assert [(e.step_id, e.decision) for e in events] == [("step_0", "search_docs"), ("step_1", "answer")]


def test_tools_are_replayed_from_the_golden():
    replayer = ToolReplayer("run_xyz789", Path(__file__).with_name("recordings"))
    assert replayer.replay("search_docs", {"query": "refund policy"}) == {"docs": [], "count": 0}
    assert len(replayer.left_over()) == 19
"""
LOOPING = """
from pydantic_ai import Agent


def make():
    agent = Agent("test", name="docs-assistant", defer_model_check=True)

    @agent.tool_plain
    def search_docs(query: str) -> dict:
        return {}

    return agent
"""


def test_tests_as_people_write_them_fail_on_the_loop_and_pass_on_the_repair(client, tmp_path):
    exported(client, keep(client, "run_xyz789"), tmp_path)
    (tmp_path / "test_goldens.py").write_text(OF_ONES_OWN)
    (tmp_path / "looping.py").write_text(LOOPING)

    passed, failed = run_pytest(tmp_path, f"{AGENTS}:v2_with_empty_check"), run_pytest(tmp_path, "looping:make")

    assert (passed.returncode, "3 passed" in passed.stdout) == (0, True), passed.stdout + passed.stderr
    assert (failed.returncode, "2 failed, 1 passed" in failed.stdout) == (1, True), failed.stdout
    assert "Agent looped 20 times" in failed.stdout


OF_A_SESSION = """
from replay_goldens.sessions import create_replay_model, session_beside
from sessions_app.examples import agents

session = session_beside(__file__, "cancel_5521")


def cancelled_with(agent):
    with agent.override(model=create_replay_model(session)):
        return agent.run_sync(session["user_input"])


def test_the_bug_is_reproduced():
    assert cancelled_with(agents.order_desk()).output == session["final_output"]


def test_the_repaired_tool_refuses():
    parts = [part for message in cancelled_with(agents.order_desk_repaired()).all_messages() for part in message.parts]
    assert "not eligible" in str([part.content for part in parts if part.part_kind in ("retry-prompt", "tool-return")])
"""


def test_a_golden_is_a_test_with_a_function_model(client, tmp_path):
    exported(client, keep(client, "cancel_bug"), tmp_path)
    (tmp_path / "test_goldens.py").write_text(OF_A_SESSION)

    ran = run_pytest(tmp_path, "")

    assert (ran.returncode, "2 passed" in ran.stdout) == (0, True), ran.stdout + ran.stderr
