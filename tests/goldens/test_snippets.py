"""What docs/goldens.md has to be copied is run as it is written, in an environment that has none of this project."""

import json
import os
import re
import subprocess
import sysconfig
import venv
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.examples import agents as registered_agents
from tests.builders import make_client, make_key, make_project, post_run
from tests.instances import clean_environment
from tests.web.records import EXAMPLES

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = (PROJECT_ROOT / "docs" / "goldens.md").read_text()
GITHUB, GITLAB = (yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
ON_GITHUB = [step["run"] for step in GITHUB["steps"]]
ON_GITLAB = GITLAB["goldens"]["script"]
IN_OWN_TESTS = [
    line.strip()
    for line in PAGE.partition("## In your own tests")[2].splitlines()
    if line.startswith(("    curl", "    python", "    pip", "    pytest"))
]
CHECK = {"kind": "result", "tool": "cancel_order", "contains": "not eligible"}


@pytest.fixture
def server(live_server, monkeypatch):
    """With the golden of the cancelled order."""
    key = make_key(make_project())
    client = make_client(key)
    run_id = post_run(client, (EXAMPLES / "cancel_bug.json").read_bytes()).json()["run_id"]
    replay = {"mode": "code_and_tools", "on_difference": "play_on"}
    body = {"name": "Refuses", "run_id": run_id, "checks": [CHECK], "replay": replay}
    assert client.post("/api/v1/goldens", json.dumps(body), content_type="application/json").status_code == 201
    return {"REPLAY_URL": live_server.url, "REPLAY_KEY": key}


@pytest.fixture
def repository(tmp_path):
    """Of a team, with their agent and what it needs; what pip cannot find there it has to have from the server."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    [own] = (tmp_path / "env").glob("lib/python*/site-packages")
    (own / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    for name in ("pip", "pytest"):
        program = tmp_path / "env" / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{tmp_path}/env/bin/python" -m {name} "$@"\n')
        program.chmod(0o755)
    code = Path(str(registered_agents.__file__)).read_text()
    (tmp_path / "desk.py").write_text(code)
    return tmp_path


def follow(repository, commands, agent, **given):
    """As CI does, until a command fails: its exit code, and what was printed."""
    environment = clean_environment(PIP_NO_INDEX="1", PATH=f"{repository}/env/bin:{os.environ['PATH']}", **given)
    environment.pop("PYTHONPATH", None)
    script = "\n".join(["set -e", *commands]).replace("shop:agent", f"desk:{agent}")
    ran = subprocess.run(
        ["bash", "-c", script], cwd=repository, env=environment, capture_output=True, text=True, timeout=120
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(("agent", "code"), [("order_desk_repaired", 0), ("order_desk", 1)])
@pytest.mark.parametrize(("commands", "commit"), [(ON_GITHUB[:2], "GITHUB_SHA"), (ON_GITLAB, "CI_COMMIT_SHA")])
def test_the_snippets_for_ci_run(server, repository, commands, commit, agent, code):
    found, said = follow(repository, commands, agent, **server, **{commit: "a1b2c3"})

    assert found == code, said
    suite = ElementTree.parse(repository / "goldens.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(code))


def test_on_github_the_summary_is_shown(server, repository):
    summary = repository / "summary.md"

    code, said = follow(repository, ON_GITHUB, "order_desk_repaired", **server, GITHUB_STEP_SUMMARY=str(summary))

    assert code == 0, said
    assert summary.read_text().startswith("## Goldens\n\n**1 of 1 golden run passed**")
    assert set(GITHUB["env"]) == set(server)


@pytest.mark.parametrize(("agent", "code"), [("order_desk_repaired", 0), ("order_desk", 1)])
def test_the_commands_for_ones_own_tests_run(server, repository, agent, code):
    assert [command.split()[0] for command in IN_OWN_TESTS] == ["curl", "python", "pip", "pytest"]

    found, said = follow(repository, IN_OWN_TESTS, agent, **server)

    assert found == code, said
    assert "1 passed" in said if code == 0 else "FAIL an answer of cancel_order contains" in said
