"""`manage.py replay RUN_ID`: replay a recording, with breakpoints and a prompt at each of them."""

from argparse import ArgumentParser
from typing import Any

from sessions_app.core.payload import JsonObject
from sessions_app.management.replaying import ReplayingCommand, refusals_in_words
from sessions_app.management.typed_orders import breakpoints, live_tools, run_called
from sessions_app.services.replays import request_replay


class Command(ReplayingCommand):
    help = (
        "Replay a run in isolation: the recording, or with --agent today's version of your code, with --tools run its "
        "tools as well, with --live-model the same scene and a model of today. "
        "Exit code 1 when it went another way, 2 when it could not run."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--tools", choices=["frozen", "run"], default="frozen",
            help="With --agent: give the recorded answers of its tools, or run their functions in isolation.",
        )  # fmt: skip

        parser.add_argument(
            "--live-model", type=int, metavar="TIMES",
            help="Ask the server's live model so often, at temperature 0, nothing changed and the tools frozen.",
        )  # fmt: skip

    def handle(self, *, run_id: str, project: str | None, agent: str | None, **options: Any) -> None:
        run = run_called(run_id, project)
        order: JsonObject = {
            "breakpoints": breakpoints(options["breakpoints"]),
            "agent": agent,
            "tools": live_tools(options["live"]),
            "on_difference": options["on_difference"],
            "samples": options["live_model"],
        }
        mode = "code_and_tools" if options["tools"] == "run" else "recording" if agent is None else "code"
        mode = mode if options["live_model"] is None else "live"
        with refusals_in_words():
            replay = request_replay(
                run=run,
                mode=mode,
                order={name: value for name, value in order.items() if value},
            )
        self.see_through(replay, **options)
