"""What the commands share that queue a replay and see it through."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from django.core.management import BaseCommand, CommandError

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.core.errors import NotReplayable, StoredBytesMissing
from sessions_app.core.fork.changes import ForkError
from sessions_app.core.redaction import RedactionFailed
from sessions_app.management.prompt import ask_at_stop
from sessions_app.management.telling import outcome_lines, printable, stop_lines
from sessions_app.models import Replay
from sessions_app.models.replays import FORK_MODES, ReplayState
from sessions_app.queries.replays import waiting_for
from sessions_app.services.replay_work import work_on

PATIENCE = 20.0
"""Seconds that a replay may wait for a worker before the command says what it waits for, or that there is none."""
_POLL = 0.2
_INTERRUPTED = 130
"""As shells have it: 128 and the number of SIGINT."""
_FINE = ("reproduced", "diverged")
"""Of a fork: either is an outcome. A replay that changes nothing has to be reproduced."""


class ReplayingCommand(BaseCommand):
    """Exit code 0 when it came to its end, 1 when it stopped or went another way, 2 when it could not run."""

    stealth_options = ("stdin",)
    requires_system_checks = ()  # half of the time of every start

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("run_id", metavar="RUN_ID")
        parser.add_argument("--project", metavar="SLUG", help="Of the run; by default the first that has it.")
        parser.add_argument(
            "--break", dest="breakpoints", action="append", default=[], metavar="PLACE",
            help='Where to pause: tool:NAME, step:NUMBER or when:CONDITION, as in when:args.order_id = "x".',
        )  # fmt: skip
        parser.add_argument("--agent", metavar="NAME", help="Run the code of this registered agent (REPLAY_AGENTS).")
        parser.add_argument(
            "--live", action="append", default=[], metavar="TOOL",
            help='Let this tool of the agent run: one whose metadata say {"replay": "read"}. May be given again.',
        )  # fmt: skip
        parser.add_argument(
            "--on-difference", choices=["stop", "play_on", "live"],
            help="Where a request to the model is not the recorded one: stop there, which is the default, play on with "
            "the recorded answer, or ask a live model.",
        )  # fmt: skip
        parser.add_argument("--no-wait", action="store_true", help="Queue it and leave.")
        parser.add_argument("--here", action="store_true", help="Run it from here, without a worker or runner.")
        parser.add_argument("--ask", action="store_true", help="Ask at a stop also where there is no terminal.")

    def see_through(self, replay: Replay, *, no_wait: bool, here: bool, ask: bool, **options: Any) -> None:
        """Wait for its end; where it stops, show why and ask. Leaves with the exit code."""
        self.say([f"{replay.fork_id or replay.run.run_id}  {replay.replay_id}"])
        if no_wait:
            return
        stdin: TextIO = options.get("stdin") or sys.stdin
        try:
            with _children(here) as children:
                self._end(self._followed(replay, stdin, ask or stdin.isatty(), children))
        except KeyboardInterrupt:
            words = f"Interrupted. {replay.replay_id} was not cancelled"
            raise CommandError(f"{words}; its page shows what becomes of it.", returncode=_INTERRUPTED) from None

    def _followed(self, replay: Replay, stdin: TextIO, asks: bool, children: ChildPool | None) -> Replay:
        """As it is when it has ended, or waits and nobody lets it go on."""
        replay = self._wait(replay, children)
        while replay.stopped_at and (replay.state == ReplayState.PAUSED or replay.waits_for_answer):
            self.say(stop_lines(replay))
            # A breakpoint was asked for, so somebody is there; what is unknown may stop a script.
            asks = asks or replay.state == ReplayState.PAUSED
            going = ask_at_stop(replay, stdin, self.say) if asks else None
            if going is None:
                break
            if going.pk != replay.pk:
                self.say([f"{going.fork_id}  {going.replay_id}"])
            replay = self._wait(going, children)
        return replay

    def say(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(printable(line))

    def _wait(self, replay: Replay, children: ChildPool | None) -> Replay:
        if children is not None:
            work_on(replay.pk, worker="manage.py", children=children)
        since = time.monotonic()
        while (replay := _fresh(replay)).state in (ReplayState.QUEUED, ReplayState.CLAIMED, ReplayState.RUNNING):
            if replay.state == ReplayState.QUEUED and time.monotonic() - since > PATIENCE:
                self._tell_why_it_waits(replay)
                since = time.monotonic()
            time.sleep(_POLL)
        return replay

    def _tell_why_it_waits(self, replay: Replay) -> None:
        """Raises `CommandError` where no worker is at work."""
        waiting = waiting_for(replay)
        if not waiting.busy:
            words = f"No worker took it up within {PATIENCE:g} s; it stays queued"
            raise CommandError(f"{words}. Start one (manage.py up), or add --here.", returncode=2)
        workers = "1 worker is" if waiting.busy == 1 else f"{waiting.busy} workers are"
        self.say([f"It waits: {waiting.before} before it in the queue, and {workers} busy."])

    def _end(self, replay: Replay) -> None:
        self.say(outcome_lines(replay))
        code = exit_code(replay)
        if code and replay.state == ReplayState.DONE and not replay.waits_for_answer:
            sys.exit(code)  # it did what it was asked for, and what came of it has been said
        if code:
            words = replay.verdict if replay.state == ReplayState.DONE else replay.state
            raise CommandError(f"{replay.replay_id}: {words}.{_what_to_do(replay)}", returncode=code)


def exit_code(replay: Replay) -> int:
    if replay.state == ReplayState.DONE:
        fine = _FINE if replay.mode in FORK_MODES else _FINE[:1]
        return 0 if replay.verdict in fine else 1
    return 1 if replay.state == ReplayState.PAUSED else 2


def _what_to_do(replay: Replay) -> str:
    """Of one that waits; it can be found on its page and over the API."""
    address = f"POST /api/v1/replays/{replay.replay_id}"
    if replay.state == ReplayState.PAUSED:
        return f" It stays paused; continue it on its page or with {address}/continue."
    if replay.state == ReplayState.DONE and replay.waits_for_answer:
        return f" The fork waits for an answer; give it on its page or with {address}/answers."
    return ""


@contextmanager
def _children(here: bool) -> Iterator[ChildPool | None]:
    pool = ChildPool() if here else None
    try:
        yield pool
    finally:
        if pool is not None:
            pool.close()


def _fresh(replay: Replay) -> Replay:
    return Replay.objects.select_related("run", "project", "produced_run").get(pk=replay.pk)


@contextmanager
def refusals_in_words() -> Iterator[None]:
    """What a service refuses ends the command with exit code 2 and the field."""
    try:
        yield
    except ForkError as error:
        is_named = error.message.startswith(error.field)
        words = error.message if is_named else f"{error.field}: {error.message}"
        raise CommandError(printable(words), returncode=2) from None
    except (NotReplayable, StoredBytesMissing, RedactionFailed) as error:
        raise CommandError(printable(str(error)), returncode=2) from None
