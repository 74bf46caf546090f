"""In the place of Django's own `test`."""

import os
import sys

from django.core.management import BaseCommand

from replay_web.supervisor.home import PROJECT_ROOT

PROCESSES = min(2 * (os.cpu_count() or 1), 8)
"""Two for each core, since much of the suite waits for servers, workers and browsers."""

WHOLE = ["--numprocesses", str(PROCESSES), "--dist", "loadgroup", "--no-loadscope-reorder"]
"""The whole suite runs in several processes, each with services of its own; the order stays, so that tests in a browser
come last in each."""


class Command(BaseCommand):
    help = "Run the whole test suite, or what the words that follow ask of pytest."
    requires_system_checks: list[str] = []

    def run_from_argv(self, argv: list[str]) -> None:
        """Hand over every word after `test` unread: pytest has its own options."""
        os.chdir(PROJECT_ROOT)
        os.environ["DJANGO_SETTINGS_MODULE"] = "replay_web.settings.test"
        os.execv(sys.executable, [sys.executable, "-m", "pytest", *(argv[2:] or WHOLE)])
