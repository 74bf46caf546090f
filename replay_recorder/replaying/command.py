"""`replay-recorder replay RUN --agent shop:agent`: the agent of today with the recorded answers, on this machine."""

from __future__ import annotations

import argparse
import bdb
import dataclasses
import json
import os
import sys
from functools import partial
from typing import Any

from replay_recorder.delivery.api_client import ApiClient, ServerError
from replay_recorder.inspection import printable
from replay_recorder.replaying.errors import RequestDiffers, in_words, is_difference
from replay_recorder.replaying.inner_agents import read_inner
from replay_recorder.replaying.notes import checked
from replay_recorder.replaying.observing import NothingObserved, Replay, observe
from replay_recorder.replaying.own_agent import CannotLoadAgent, load_agent
from replay_recorder.replaying.recording import Recording, read_recording
from replay_recorder.replaying.stops import Stops
from replay_recorder.server_commands import add_address, add_waiting, replay_on_server
from replay_recorder.server_commands import run_command as server_run
from replay_recorder.settings import settings_from

_DESCRIPTION = """Plays a recorded run again with your agent of today, in its own environment: the model's answers are
the recorded ones, and so are those of the tools unless --tools run. What the agent did is sent to the server, which
compares it with the recording. Nothing is imported but the module that you name. breakpoint() in your code works."""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser = commands.add_parser("replay", help="replay a run with your own agent", description=_DESCRIPTION)
    parser.add_argument("run", metavar="RUN", help="id of a run on the server, or a file that holds its record")
    parser.add_argument(
        "--agent",
        metavar="MODULE:NAME|NAME",
        help="your agent, or a function that makes it; an agent that the server registers, by its name alone; without "
        "it, the server rebuilds the agent from the recording",
    )
    parser.add_argument(
        "--tools", choices=("frozen", "run"), default="frozen", help="recorded answers, or your tools really run here"
    )
    parser.add_argument(
        "--http",
        choices=("recorded", "live"),
        default="recorded",
        help="what answers the HTTP of tools that run: the recorded exchanges of their call, or the network",
    )
    parser.add_argument(
        "--on-difference",
        choices=("stop", "play_on"),
        default="stop",
        help="when a request is not the recorded one: stop there, or give the recorded answer all the same",
    )
    parser.add_argument(
        "--break",
        dest="stops",
        action="append",
        default=[],
        metavar="STEP|TOOL",
        help="stop with the debugger before this model step, or in the call of this step or tool; may be given again",
    )
    parser.add_argument(
        "--approve", type=int, action="append", default=[], metavar="STEP",
        help="let the call of this step run, which was denied then; needs --tools run",
    )  # fmt: skip
    parser.add_argument(
        "--deny", type=int, action="append", default=[], metavar="STEP",
        help="deny the call of this step, which was approved then",
    )  # fmt: skip
    parser.add_argument("--input", help="a prompt in place of the recorded one")
    parser.add_argument("--yes", action="store_true", help="do not ask before tools run")
    parser.add_argument("--request-key", metavar="KEY", help="on the server: the same key again is the same replay")
    add_waiting(parser)
    add_address(parser)


def run_command(given: argparse.Namespace) -> int:
    """0 when the run was reproduced, 1 when it was not, 2 when it could not be tried; on the server also 3, when it has
    not ended in time."""
    if given.agent is None or ":" not in given.agent:
        return server_run(given, _on_server)
    try:
        settings = settings_from(os.environ, url=given.url, key=given.key)
        if settings.url is None:
            raise ValueError("Say where the server is: --url, or REPLAY_URL in the environment.")
        recording = read_recording(given.run, url=settings.url, key=settings.key)
        own = load_agent(given.agent)
        on_difference, stops = checked(given.on_difference), Stops.of(given.stops, recording)
        if own.lacks:
            print(printable(f"{given.agent} {own.lacks}"), file=sys.stderr)
        if given.tools == "run" and not may_run_tools(given.agent, http=given.http, yes=given.yes):
            return 2
        decisions = _decisions(given)
        read = partial(read_recording, url=settings.url, key=settings.key)
        inner = read_inner(recording, read) if given.tools == "run" else {}
        plan = Replay(recording, own, given.tools, given.http, on_difference, stops, given.input, decisions)
        record = observe(dataclasses.replace(plan, inner=inner))
        body = observed_body(agent=given.agent, tools=given.tools, on_difference=given.on_difference, record=record)
        answer = ApiClient(settings.url, settings.key).observed(recording.run_id, body)
    except (ValueError, ServerError, OSError, CannotLoadAgent, NothingObserved) as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    except bdb.BdbQuit:
        print("You left the debugger; nothing was sent.", file=sys.stderr)
        return 2
    return _tell(given, recording, answer, was_stopped=_was_stopped(record))


def _on_server(server: ApiClient, given: argparse.Namespace) -> int:
    here = {
        "--break": given.stops,
        "--approve": given.approve,
        "--deny": given.deny,
        "--input": given.input,
        "--http live": given.http == "live",
    }
    if meant := [option for option, value in here.items() if value]:
        raise ValueError(f"{', '.join(meant)}: only on your own machine, with --agent MODULE:NAME.")
    return replay_on_server(server, given)


def _decisions(given: argparse.Namespace) -> dict[int, bool]:
    """By the step of a call, whether it is approved."""
    if given.approve and given.tools != "run":
        raise ValueError("--approve needs --tools run: no answer was recorded of a call that was denied.")
    return {**dict.fromkeys(given.approve, True), **dict.fromkeys(given.deny, False)}


def may_run_tools(agent: str, *, http: str, yes: bool) -> bool:
    """Asks the person at the terminal, unless `yes` has been said."""
    if http == "live":
        reached = "files, networks, databases, payments."
    else:
        reached = "files, programs, databases. Their HTTP does not go out: it is answered from the recording."
    tools = f"The tools of {agent} really run on this machine"
    print(f"{tools}, with all that they can reach: {reached}", file=sys.stderr)
    if yes:
        return True
    if not sys.stdin.isatty():
        print("Say --yes to let them.", file=sys.stderr)
        return False
    return input("Let them run? [y/N] ").strip().lower() in ("y", "yes")


def observed_body(*, agent: str, tools: str, on_difference: str, record: bytes) -> bytes:
    """What is handed in to the server. The record stays as it was written."""
    mode = "code_and_tools" if tools == "run" else "code"
    said = {"mode": mode, "agent": agent, "on_difference": on_difference}
    return json.dumps(said)[:-1].encode() + b', "record": ' + record + b"}"


def _was_stopped(record: bytes) -> bool:
    """Whether a request was not the recorded one; a state may differ where every request is."""
    return (json.loads(record).get("error") or {}).get("type") == RequestDiffers.__name__


def _tell(given: argparse.Namespace, recording: Recording, answer: dict[str, Any], *, was_stopped: bool) -> int:
    """As the server says it."""
    if given.json:
        print(json.dumps(answer, ensure_ascii=False))
        return 0 if answer["verdict"] == "reproduced" else 1
    tools = "your tools ran on this machine" if given.tools == "run" else "no tool ran"
    print(printable(f"{recording.run_id} with {given.agent}: recorded answers of the model, {tools}."))
    print(printable(str(answer["words"])))
    found = answer.get("divergence")
    if is_difference(found, answer["verdict"]):
        place = f"step {found['step']}, {found['path']}" if found.get("step") else found["path"]
        print(printable(f"First difference: {place}"))
        print(printable(f"  recorded  {in_words(found.get('recorded'))}"))
        print(printable(f"  now       {in_words(found.get('replayed'))}"))
        if found["path"] == "http" and not found.get("recorded"):
            print("No HTTP was recorded for this call. Record with install(http=True).")
        if found["path"].split(".")[0] == "http" and found.get("replayed") and given.http == "recorded":
            print("It was not sent. To let the requests of your tools go out: --http live")
        if was_stopped and answer["verdict"] == "diverged":
            print("To be given the recorded answers from there on: --on-difference play_on")
    print(answer["url"])
    return 0 if answer["verdict"] == "reproduced" else 1
