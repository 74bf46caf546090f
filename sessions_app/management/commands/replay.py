"""`manage.py replay RUN_ID`: replay a recording, with breakpoints and a prompt at each of them."""

from typing import Any

from sessions_app.core.payload import JsonObject
from sessions_app.management.replaying import ReplayingCommand, refusals_in_words
from sessions_app.management.typed_orders import breakpoints, live_tools, run_called
from sessions_app.services.replays import request_replay


class Command(ReplayingCommand):
    help = (
        "Replay a run with the world off: the recording, or with --agent the team's code of today. "
        "Exit code 1 when it went another way, 2 when it could not run."
    )

    def handle(self, *, run_id: str, project: str | None, agent: str | None, **options: Any) -> None:
        run = run_called(run_id, project)
        order: JsonObject = {
            "breakpoints": breakpoints(options["breakpoints"]),
            "agent": agent,
            "tools": live_tools(options["live"]),
        }
        with refusals_in_words():
            replay = request_replay(
                run=run,
                mode="recording" if agent is None else "code",
                order={name: value for name, value in order.items() if value},
            )
        self.see_through(replay, **options)
