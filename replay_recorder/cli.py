"""The command `replay-recorder`: send recordings, look into them, and replay runs with an agent of one's own."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from replay_recorder import server_commands
from replay_recorder.delivery.http_client import Client, Delivered, Later, Outcome, Refused
from replay_recorder.delivery.parcels import Parcel
from replay_recorder.delivery.spool import Spool, is_spool
from replay_recorder.inspection import described_file, described_folder, printable
from replay_recorder.replaying import command, golden_command
from replay_recorder.settings import VERSION, Settings, settings_from
from replay_recorder.writing.assembly import SpoolError, assemble, is_empty, is_spool_file

_TIMEOUT = 60.0


def leave() -> NoReturn:
    """The command as a process: it ends with its exit code, also where the code of an agent left threads behind that
    would keep it."""
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        os._exit(code)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 when everything went well, 1 when something did not arrive or cannot be read, 2 for wrong usage."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command == "replay":
        return command.run_command(given)
    if given.command in server_commands.NAMES:
        return server_commands.run_command(given)
    if given.command == "goldens":
        return golden_command.run_command(given)
    if not given.path.exists():
        parser.error(f"there is no {given.path}")
    if given.command == "inspect":
        return _inspect(given.path)
    try:
        settings = settings_from(os.environ, url=given.url, key=given.key)
    except ValueError as error:
        parser.error(str(error))
    if settings.url is None:
        parser.error("say where to: --url, or REPLAY_URL in the environment")
    return _push(given.path, Client(settings.url, settings.key))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="replay-recorder", description="Send recordings, look into them, replay runs."
    )
    parser.add_argument("--version", action="version", version=f"replay-recorder {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True)
    push = commands.add_parser("push", help="send recordings to a server")
    push.add_argument("path", type=Path, help="a spool folder, a folder of recordings, a .run file or a JSON record")
    server_commands.add_address(push)
    inspect = commands.add_parser("inspect", help="say what a recording holds, or what waits in a spool folder")
    inspect.add_argument("path", type=Path, help="a .run file, a JSON record or a spool folder")
    command.add_to(commands)
    golden_command.add_to(commands)
    server_commands.add_to(commands)
    return parser


def _inspect(path: Path) -> int:
    try:
        for line in described_folder(path) if path.is_dir() else described_file(path):
            print(line)
    except (OSError, SpoolError, UnicodeDecodeError) as error:
        print(f"{path.name}: {printable(str(error))}", file=sys.stderr)
        return 1
    return 0


# --- push


def _push(path: Path, client: Client) -> int:
    """Each recording with what became of it; the first sign that the server is away ends it."""
    sent = _of_spool(path, client) if is_spool(path) else _of_files(path, client)
    arrived = True
    count = 0
    for name, outcome in sent:
        count += 1
        arrived = arrived and isinstance(outcome, Delivered)
        print(f"{name}: {printable(_words(outcome))}")
        if isinstance(outcome, Later) and not outcome.is_suspect:
            print("The others were not tried.")
            break
    if count == 0:
        print(f"Nothing to send in {path}.")
    return 0 if arrived else 1


def _of_spool(path: Path, client: Client) -> Iterator[tuple[str, Outcome]]:
    """What arrives leaves the folder; what is refused goes to `refused`; what its process still writes stays."""
    for parcel in Spool(Settings(spool=path)).parcels(last={}):
        if not parcel.take():
            yield parcel.name, Later(reason="its run goes on, or another process sends it", is_suspect=True)
            continue
        try:
            content = parcel.read()
            if is_empty(content):
                parcel.remove()
                continue
            outcome = _send(content, client)
            _settle(parcel, outcome)
            yield parcel.name, outcome
        finally:
            parcel.release()


def _settle(parcel: Parcel, outcome: Outcome) -> None:
    if isinstance(outcome, Delivered):
        parcel.remove()
    elif isinstance(outcome, Refused):
        parcel.refused(outcome.reason)


def _of_files(path: Path, client: Client) -> Iterator[tuple[str, Outcome]]:
    """Files are somebody's own: they are sent, and stay."""
    files = sorted(each for each in path.iterdir() if each.suffix in (".run", ".json")) if path.is_dir() else [path]
    for file in files:
        try:
            yield file.name, _send(file.read_bytes(), client)
        except OSError as error:
            yield file.name, Refused(reason=f"it cannot be read ({error.strerror})", status=0)


def _send(content: bytes, client: Client) -> Outcome:
    """A recording of ours becomes a record; anything else goes as it is."""
    try:
        record = assemble(content) if is_spool_file(content) else content
    except (SpoolError, UnicodeDecodeError) as error:
        return Refused(reason=f"it is no recording: {error}", status=0)
    return client.post(record, timeout=_TIMEOUT)


def _words(outcome: Outcome) -> str:
    if isinstance(outcome, Delivered):
        return "stored"
    return f"{'refused' if isinstance(outcome, Refused) else 'not sent'}: {outcome.reason}"
