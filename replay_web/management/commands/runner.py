"""A worker for replays with the team's own agents, in the team's environment: docs/code-replay.md."""

import os
import sys
from importlib.metadata import version
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, CommandParser, call_command

from replay_web.supervisor.home import PROJECT_ROOT

QUEUE = "code"


class Command(BaseCommand):
    help = (
        "Run replays with the team's own agents, and no others. It needs DATABASE_URL, REDIS_URL, SECRET_KEY and "
        "REPLAY_AGENTS, and an environment that has the agents' dependencies."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--concurrency", type=int, default=settings.WORKER_THREADS, help="replays at once")

    def handle(self, *args: Any, concurrency: int, **options: Any) -> None:
        if concurrency < 1:
            raise CommandError("--concurrency has to be at least 1.")
        self.stdout.write(
            f"This runner has the packages of {sys.prefix}, with Pydantic AI {version('pydantic-ai-slim')}."
        )
        call_command("agents", stdout=self.stdout)
        self.stdout.flush()  # what is not written yet would go with this program
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(PROJECT_ROOT)])),
            "WORKER_QUEUES": QUEUE,
            "WORKER_THREADS": str(concurrency),
        }
        os.execve(sys.executable, [sys.executable, "-m", "replay_web.worker"], environment)
