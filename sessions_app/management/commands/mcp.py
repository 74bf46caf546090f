"""`manage.py mcp`: serve a coding agent over standard input and output."""

import os
from typing import Any

from django.core.management import BaseCommand, CommandError


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = (
        "Serve a coding agent over stdio, by the Model Context Protocol: find and read runs, replay, fork, compare, "
        "report, write notes. REPLAY_KEY is the key of the project; docs/mcp.md has the configuration of clients."
    )

    def handle(self, **options: Any) -> None:
        from sessions_app.mcp.keys import KeyRefused, key_in_force
        from sessions_app.mcp.server import server_for

        key = os.environ.get("REPLAY_KEY", "")
        try:
            key_in_force(key)
        except KeyRefused as refused:
            raise CommandError(f"REPLAY_KEY: {refused}", returncode=2) from None
        server_for(key).run("stdio")
