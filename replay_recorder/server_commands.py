"""What a server is asked for with its address and a key alone: list, show, replay, wait, diff, report."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from replay_recorder.delivery.api_client import ApiClient, ServerError
from replay_recorder.inspection import printable
from replay_recorder.replaying.errors import in_words, is_difference
from replay_recorder.settings import settings_from

NAMES = ("list", "show", "wait", "diff", "report")
_GOOD, _DIFFERENT, _COULD_NOT, _TIMED_OUT = 0, 1, 2, 3
_EXIT_CODES = (
    "Exit code 0: reproduced (a fork: it came to its end), 1: it went another way, or is paused, 2: it could not be "
    "tried, 3: it has not ended in time."
)
_ENDED = ("done", "failed", "cancelled", "crashed")
_FINE = ("reproduced", "diverged")
_REPLAY_PREFIX = "rp_"
_ASKS_FOR = 30.0
"""Seconds that one request waits."""


def add_to(commands: Any) -> None:
    """The arguments of the commands, `replay` apart: it also replays on this machine."""
    _command(commands, "list", _list, "list runs, replays or sessions of the project", _list_arguments)
    _command(commands, "show", _show, "say what is known of a run or a replay", _show_arguments)
    _command(commands, "wait", _wait, "wait for a replay to end", _wait_arguments, description=_EXIT_CODES)
    _command(commands, "diff", _diff, "compare two runs", _diff_arguments, description=_DIFF_CODES)
    _command(commands, "report", _report, "print the reproduction report of a run or a replay", _report_arguments)


def add_address(parser: argparse.ArgumentParser) -> None:
    """Where the server is, and the key."""
    parser.add_argument("--url", help="address of the server; by default REPLAY_URL")
    parser.add_argument("--key", help="API key; by default REPLAY_KEY, which other users of this machine cannot see")


def run_command(given: argparse.Namespace, ask: Callable[[ApiClient, argparse.Namespace], int] | None = None) -> int:
    """The exit code; 2 where the server cannot be asked, or refuses."""
    try:
        settings = settings_from(os.environ, url=given.url, key=given.key)
        if settings.url is None:
            raise ValueError("Say where the server is: --url, or REPLAY_URL in the environment.")
        return int((ask or given.ask)(ApiClient(settings.url, settings.key), given))
    except (ValueError, ServerError, OSError) as error:
        print(printable(str(error)), file=sys.stderr)
        return _COULD_NOT


def replay_on_server(server: ApiClient, given: argparse.Namespace) -> int:
    """Ask for a replay and wait for its end."""
    order = {"mode": _mode(given), "agent": given.agent, "request_key": given.request_key}
    if given.on_difference != "stop":
        order["on_difference"] = given.on_difference
    asked = server.post("runs", given.run, "replays", body={name: each for name, each in order.items() if each})
    return _wait_for(server, str(asked["replay_id"]), given)


def _mode(given: argparse.Namespace) -> str:
    if given.agent is None:
        if given.tools == "run":
            raise ValueError("--tools run needs --agent: a rebuilt agent has no tools of its own.")
        return "recording"
    return "code_and_tools" if given.tools == "run" else "code"


def _command(
    commands: Any,
    name: str,
    ask: Callable[[ApiClient, argparse.Namespace], int],
    about: str,
    arguments: Callable[[argparse.ArgumentParser], None],
    description: str | None = None,
) -> None:
    parser = commands.add_parser(name, help=about, description=description)
    arguments(parser)
    add_address(parser)
    parser.set_defaults(ask=ask)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print what the server answers, as JSON")


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="RUN|REPLAY", help="id of a run, or of a replay (rp_…)")


def _kind(identifier: str) -> str:
    return "replays" if identifier.startswith(_REPLAY_PREFIX) else "runs"


# --- list


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", choices=tuple(_LINES), default="runs")
    parser.add_argument("-q", "--query", default="", help="as in the search box of the page, such as verdict:cold")
    parser.add_argument("--limit", type=int, default=20, help="how many at most; by default 20")
    _add_json(parser)


def _list(server: ApiClient, given: argparse.Namespace) -> int:
    found = list(_items(server, given.what, given.query, given.limit))
    if given.json:
        print(json.dumps(found, ensure_ascii=False))
        return _GOOD
    for item in found:
        print(printable("  ".join("-" if each is None else str(each) for each in _LINES[given.what](item))))
    return _GOOD


def _items(server: ApiClient, what: str, query: str, limit: int) -> Iterator[dict[str, Any]]:
    cursor: str | None = ""
    while cursor is not None and limit > 0:
        page = server.get(what, q=query, limit=min(limit, 500), cursor=cursor)
        yield from page["items"]
        limit, cursor = limit - len(page["items"]), page["next_cursor"]


def _run_line(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["run_id"], run["started_at"], run["agent"], run["status"], run["verdict"]["verdict"], run["steps"]


def _replay_line(replay: dict[str, Any]) -> tuple[Any, ...]:
    return replay["replay_id"], replay["run_of"], replay["mode"], replay["state"], replay["verdict"]


def _session_line(session: dict[str, Any]) -> tuple[Any, ...]:
    count = len(session["runs"])
    return session["session_id"], session["last_at"], f"{count} run" if count == 1 else f"{count} runs"


_LINES: dict[str, Callable[[dict[str, Any]], tuple[Any, ...]]] = {
    "runs": _run_line,
    "replays": _replay_line,
    "sessions": _session_line,
}


# --- show


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    _add_json(parser)


def _show(server: ApiClient, given: argparse.Namespace) -> int:
    kind = _kind(given.id)
    found = server.get(kind, given.id)
    if given.json:
        print(json.dumps(found, ensure_ascii=False))
        return _GOOD
    for line in _replay_lines(found) if kind == "replays" else _run_lines(found):
        print(printable(line))
    return _GOOD


def _run_lines(run: dict[str, Any]) -> Iterator[str]:
    verdict = run["verdict"]
    step = f" (to step {verdict['step']})" if verdict["step"] else ""
    yield f"{run['run_id']}: {run['status']}, {verdict['verdict']}{step}"
    yield f"agent {run['agent'] or '-'}, model {run['model'] or '-'}, {run['steps']} steps"
    yield f"started {run['started_at'] or '-'}"
    yield f"input   {in_words(run['input'])}"
    yield f"output  {in_words(run['output'])}"
    if run["error"]:
        yield f"error   {in_words(run['error'])}"
    yield from (f"not captured: {reason.get('message')}" for reason in verdict["reasons"])
    yield from (f"odd: {odd.get('message')}" for odd in run["anomalies"])


def _replay_lines(replay: dict[str, Any]) -> Iterator[str]:
    done = f"{replay['progress']['done']} of {replay['progress']['total']} steps"
    yield f"{replay['replay_id']} of {replay['run_of']}: {replay['state']}, {done}"
    yield f"verdict: {replay['verdict'] or '-'}"
    found = replay["divergence"]
    if is_difference(found, replay["verdict"]):
        yield f"First difference: step {found.get('step')}, {found.get('path')}"
        yield f"  recorded  {in_words(found.get('recorded'))}"
        yield f"  now       {in_words(found.get('replayed'))}"
    if replay["error"]:
        yield f"error: {replay['error']}"


# --- replay and wait


def _wait_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("replay", metavar="REPLAY", help="id of a replay")
    add_waiting(parser)


def add_waiting(parser: argparse.ArgumentParser) -> None:
    """How long, and how it is said."""
    parser.add_argument("--timeout", type=float, default=600.0, metavar="SECONDS", help="by default 600")
    _add_json(parser)


def _wait(server: ApiClient, given: argparse.Namespace) -> int:
    return _wait_for(server, given.replay, given)


def _wait_for(server: ApiClient, replay_id: str, given: argparse.Namespace) -> int:
    until = time.monotonic() + given.timeout
    replay = _state(server, replay_id, until)
    while replay["state"] not in _ENDED and replay["state"] != "paused" and time.monotonic() < until:
        replay = _state(server, replay_id, until)
    if given.json:
        print(json.dumps(replay, ensure_ascii=False))
    else:
        print("\n".join(map(printable, _replay_lines(replay))))
    return _exit_code(replay)


def _state(server: ApiClient, replay_id: str, until: float) -> dict[str, Any]:
    """As it is once it has ended, or a while later."""
    seconds = max(0, min(_ASKS_FOR, until - time.monotonic()))
    return server.patiently("replays", replay_id, until=until, wait=f"{seconds:.1f}")


def _exit_code(replay: dict[str, Any]) -> int:
    """As `manage.py replay` and its like leave: a fork has come to its end where it went another way too."""
    if replay["state"] == "done":
        fine = _FINE if replay["fork_id"] else _FINE[:1]
        return _GOOD if replay["verdict"] in fine else _DIFFERENT
    if replay["state"] == "paused":
        return _DIFFERENT
    return _COULD_NOT if replay["state"] in _ENDED else _TIMED_OUT


# --- diff and report

_DIFF_CODES = (
    "Exit code 0: everything was compared and is equal, 1: something differs, or could not be compared, 2: they "
    "could not be asked for."
)


def _diff_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", metavar="RUN")
    parser.add_argument("right", metavar="RUN")
    _add_json(parser)


def _diff(server: ApiClient, given: argparse.Namespace) -> int:
    found = server.get("comparisons", left=given.left, right=given.right)
    if given.json:
        print(json.dumps(found, ensure_ascii=False))
    else:
        print("\n".join(map(printable, _diff_lines(found))))
    return _GOOD if found["identical"] is True else _DIFFERENT


def _diff_lines(found: dict[str, Any]) -> Iterator[str]:
    counts: dict[str, int] = {}
    for step in found["steps"]:
        counts[step["status"]] = counts.get(step["status"], 0) + 1
    steps = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items()) or "no steps"
    yield f"{found['left']} and {found['right']}: {_SAME[found['identical']]}; {steps}"
    first = found["divergence"]
    if first:
        yield f"First difference: step {first.get('left_step')} and {first.get('right_step')}, {first.get('path')}"
        yield f"  left   {in_words(first.get('left'))}"
        yield f"  right  {in_words(first.get('right'))}"


_SAME = {True: "equal", False: "different", None: "nothing is known to differ, and not all could be compared"}


def _report_arguments(parser: argparse.ArgumentParser) -> None:
    _add_id(parser)
    parser.add_argument("--format", choices=("txt", "md", "json", "html"), default="txt", help="by default txt")


def _report(server: ApiClient, given: argparse.Namespace) -> int:
    text = server.text(_kind(given.id), given.id, "report", format=given.format)
    print("\n".join(map(printable, text.splitlines())) if given.format in ("txt", "md") else text)
    return _GOOD
