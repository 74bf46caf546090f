"""`replay-recorder replay RUN --agent shop:agent`: the agent of today with the recorded answers, on this machine."""

from __future__ import annotations

import argparse
import bdb
import json
import os
import sys
from typing import Any

from replay_recorder.delivery.api_client import ApiClient, ServerError
from replay_recorder.inspection import printable
from replay_recorder.replaying.errors import in_words
from replay_recorder.replaying.notes import checked
from replay_recorder.replaying.observing import NothingObserved, Replay, observe
from replay_recorder.replaying.own_agent import CannotLoadAgent, load_agent
from replay_recorder.replaying.recording import Recording, read_recording
from replay_recorder.replaying.stops import Stops
from replay_recorder.settings import settings_from

_DESCRIPTION = """Plays a recorded run again with your agent of today, in its own environment: the model's answers are
the recorded ones, and so are those of the tools unless --tools run. What the agent did is sent to the server, which
compares it with the recording. Nothing is imported but the module that you name. breakpoint() in your code works."""


def add_to(commands: Any) -> None:
    """The arguments of the command."""
    parser = commands.add_parser("replay", help="replay a run with your own agent", description=_DESCRIPTION)
    parser.add_argument("run", metavar="RUN", help="id of a run on the server, or a file that holds its record")
    parser.add_argument("--agent", required=True, metavar="MODULE:NAME", help="your agent, or a function that makes it")
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
        help="stop with the debugger before this model step, or in this tool; may be given again",
    )
    parser.add_argument("--input", help="a prompt in place of the recorded one")
    parser.add_argument("--yes", action="store_true", help="do not ask before tools run")
    parser.add_argument("--url", help="address of the server; by default REPLAY_URL")
    parser.add_argument("--key", help="API key; by default REPLAY_KEY, which other users of this machine cannot see")


def run_command(given: argparse.Namespace) -> int:
    """0 when the run was reproduced, 1 when it was not, 2 when it could not be tried."""
    try:
        settings = settings_from(os.environ, url=given.url, key=given.key)
        if settings.url is None:
            raise ValueError("Say where the server is: --url, or REPLAY_URL in the environment.")
        recording = read_recording(given.run, url=settings.url, key=settings.key)
        own = load_agent(given.agent)
        if given.tools == "run" and not _may_run_tools(given):
            return 2
        on_difference, stops = checked(given.on_difference), Stops.of(given.stops)
        record = observe(Replay(recording, own, given.tools, given.http, on_difference, stops, given.input))
        answer = ApiClient(settings.url, settings.key).observed(recording.run_id, _body(given, record))
    except (ValueError, ServerError, OSError, CannotLoadAgent, NothingObserved) as error:
        print(printable(str(error)), file=sys.stderr)
        return 2
    except bdb.BdbQuit:
        print("You left the debugger; nothing was sent.", file=sys.stderr)
        return 2
    return _tell(given, recording, answer)


def _may_run_tools(given: argparse.Namespace) -> bool:
    if given.http == "live":
        reached = "files, networks, databases, payments."
    else:
        reached = "files, programs, databases. Their HTTP does not go out: it is answered from the recording."
    tools = f"The tools of {given.agent} really run on this machine"
    print(f"{tools}, with all that they can reach: {reached}", file=sys.stderr)
    if given.yes:
        return True
    if not sys.stdin.isatty():
        print("Say --yes to let them.", file=sys.stderr)
        return False
    return input("Let them run? [y/N] ").strip().lower() in ("y", "yes")


def _body(given: argparse.Namespace, record: bytes) -> bytes:
    """The record stays as it was written."""
    said = {
        "mode": "code_and_tools" if given.tools == "run" else "code",
        "agent": given.agent,
        "on_difference": given.on_difference,
    }
    return json.dumps(said)[:-1].encode() + b', "record": ' + record + b"}"


def _tell(given: argparse.Namespace, recording: Recording, answer: dict[str, Any]) -> int:
    """As the server says it."""
    tools = "your tools ran on this machine" if given.tools == "run" else "no tool ran"
    print(printable(f"{recording.run_id} with {given.agent}: recorded answers of the model, {tools}."))
    print(printable(str(answer["words"])))
    found = answer.get("divergence")
    if found and found.get("path"):
        place = f"step {found['step']}, {found['path']}" if found.get("step") else found["path"]
        print(printable(f"First difference: {place}"))
        print(printable(f"  recorded  {in_words(found.get('recorded'))}"))
        print(printable(f"  now       {in_words(found.get('replayed'))}"))
        if found["path"] == "http":
            print("It was not sent. To let the requests of your tools go out: --http live")
        if given.on_difference == "stop" and answer["verdict"] == "diverged":
            print("To be given the recorded answers from there on: --on-difference play_on")
    print(answer["url"])
    return 0 if answer["verdict"] == "reproduced" else 1
