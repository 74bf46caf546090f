"""`replay-recorder goldens run --agent shop:agent`: the server's goldens with the agent of today, on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from replay_recorder.delivery.api_client import ApiClient, ServerError
from replay_recorder.inspection import printable
from replay_recorder.replaying.command import may_run_tools, observed_body
from replay_recorder.replaying.inner_agents import read_inner
from replay_recorder.replaying.notes import OnDifference
from replay_recorder.replaying.observing import NothingObserved, Replay, Tools, observe
from replay_recorder.replaying.own_agent import CannotLoadAgent, OwnAgent, load_agent
from replay_recorder.replaying.recording import read_recording
from replay_recorder.server_commands import add_address
from replay_recorder.settings import Settings, settings_from
from replay_recorder.writing.code_facts import commit_facts

_DESCRIPTION = """Runs the goldens of your code with your agent of today, in its own environment: each is a recorded
scene that is played again, and the server judges what the agent did. Without ids, those of agents of this name. Exit
code 0: all passed, 1: behaviour changed, 2: one could not run, 3: nothing was covered."""
_TOOLS: dict[str, Tools] = {"code": "frozen", "code_and_tools": "run"}
"""By the mode of goldens that run code; others run on the server alone."""
_RESULTS = {"pass": "Passed", "fail": "Failed", "could_not_run": "Could not run", "nothing_covered": "Not judged"}
_COULD_NOT_RUN, _NOTHING_COVERED = 2, 3


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser = commands.add_parser("goldens", help="run goldens with your own agent", description=_DESCRIPTION)
    parser.add_argument("what", choices=["run"])
    parser.add_argument(
        "--golden", dest="goldens", action="append", default=[], metavar="ID", help="only this one; may be given again"
    )
    parser.add_argument("--agent", required=True, metavar="MODULE:NAME", help="your agent, or a function that makes it")
    parser.add_argument("--label", default="", help="what it is run for, such as a commit")
    parser.add_argument("--deploy", action="store_true", help="the label is what was deployed just now")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML there")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write a summary for a pull request there")
    parser.add_argument("--yes", action="store_true", help="do not ask before tools run")
    add_address(parser)


def run_command(given: argparse.Namespace) -> int:
    """The exit code that the help names."""
    try:
        settings = settings_from(os.environ, url=given.url, key=given.key)
        if settings.url is None:
            raise ValueError("Say where the server is: --url, or REPLAY_URL in the environment.")
        return _run(given, settings, ApiClient(settings.url, settings.key))
    except (ValueError, ServerError, OSError, CannotLoadAgent) as error:
        print(printable(str(error)), file=sys.stderr)
        return _COULD_NOT_RUN


def _run(given: argparse.Namespace, settings: Settings, server: ApiClient) -> int:
    own = load_agent(given.agent)
    goldens = _chosen(server.goldens(), given.goldens, getattr(own.agent, "name", None))
    if not goldens:
        print("There is no golden of your code to run.", file=sys.stderr)
        return _NOTHING_COVERED
    runs_tools = any(_TOOLS[golden["replay"]["mode"]] == "run" for golden in goldens)
    if runs_tools and not may_run_tools(given.agent, http="recorded", yes=given.yes):
        return _COULD_NOT_RUN
    batch = server.begin_golden_batch(given.label, is_deploy=given.deploy)
    runner = _Runner(own, given.agent, settings, server, batch, commit_facts())
    for golden in goldens:
        answer = runner.run(golden)
        print(printable(f"{_RESULTS[answer['result']]}  {golden['name']}: {answer['words']}"))
    return _tell(given, server, batch)


def _chosen(goldens: list[dict[str, Any]], names: list[str], agent: str | None) -> list[dict[str, Any]]:
    """By their ids; else those whose scene is of an agent of this name, or of one without a name."""
    by_id = {golden["golden_id"]: golden for golden in goldens}
    lacking = next((name for name in names if name not in by_id), None)
    if lacking is not None:
        raise ValueError(f"There is no golden {lacking} on the server.")
    own = [golden for golden in goldens if agent is None or golden["agent_name"] in (agent, None)]
    chosen = [by_id[name] for name in names] if names else own
    return [golden for golden in chosen if golden["replay"]["mode"] in _TOOLS]


@dataclass(frozen=True)
class _Runner:
    """Runs goldens and hands in what came of each."""

    own: OwnAgent
    agent: str
    settings: Settings
    server: ApiClient
    batch: str
    code: dict[str, Any]
    """Which commit runs: git is asked once for all of them."""

    def run(self, golden: dict[str, Any]) -> dict[str, Any]:
        """What the server says of it."""
        try:
            return self.server.observed_golden(golden["golden_id"], self.batch, self._observed(golden))
        except (NothingObserved, CannotLoadAgent, ValueError, ServerError) as error:
            reason = str(error)
        except SystemExit as end:
            reason = f"the agent's code ended the process with {end.code!r}"
        return self.server.golden_not_run(golden["golden_id"], self.batch, agent=self.agent, reason=reason)

    def _observed(self, golden: dict[str, Any]) -> bytes:
        tools = _TOOLS[golden["replay"]["mode"]]
        on_difference: OnDifference = "play_on" if golden["replay"].get("on_difference") == "play_on" else "stop"
        read = partial(read_recording, url=self.settings.url, key=self.settings.key)
        recording = read(golden["run_id"])
        inner = read_inner(recording, read) if tools == "run" else {}
        record = observe(Replay(recording, self.own, tools, on_difference=on_difference, inner=inner, code=self.code))
        return observed_body(agent=self.agent, tools=tools, on_difference=on_difference, record=record)


def _tell(given: argparse.Namespace, server: ApiClient, batch: str) -> int:
    for place, form in ((given.junit, "junit"), (given.markdown, "md")):
        if place is not None:
            place.write_bytes(server.golden_report(batch, form))
    found = server.golden_batch(batch)
    print(printable(str(found["words"])))
    return int(found["exit_code"])
