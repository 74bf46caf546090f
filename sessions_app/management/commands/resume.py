"""`manage.py resume RUN_ID`: let a run that broke off go on."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import CommandError

from sessions_app.core.run import broke_off_at
from sessions_app.management.replaying import ReplayingCommand, refusals_in_words
from sessions_app.management.typed_orders import breakpoints, live_tools, run_called
from sessions_app.mapping.load import load_run
from sessions_app.models import Run
from sessions_app.services.forks import request_fork


class Command(ReplayingCommand):
    help = (
        "Go on with a run from a step, with nothing changed. "
        "Exit code 1 when nothing could answer a step, 2 when it could not run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--at", metavar="STEP", help="By default where the recording broke off.")

    def handle(self, *, run_id: str, project: str | None, at: str | None, **options: Any) -> None:
        run = run_called(run_id, project)
        with refusals_in_words():
            order = {
                "at_step": _broke_off(run) if at is None else at,
                "agent": options["agent"],
                "breakpoints": breakpoints(options["breakpoints"]),
                "tools": live_tools(options["live"]),
                "on_difference": options["on_difference"],
            }
            resumed = request_fork(run=run, order={k: v for k, v in order.items() if v}, mode="resume")
        self.see_through(resumed, **options)


def _broke_off(run: Run) -> int:
    step = broke_off_at(load_run(run))
    if step is None:
        raise CommandError("The run came to an end of its own; say from which step with --at.", returncode=2)
    return step
