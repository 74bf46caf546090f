"""`manage.py agents`: the registered agents, and which of them cannot be loaded here: docs/code-replay.md."""

from typing import Any

from django.core.management import BaseCommand

from sessions_app.services.registered_agents import agent_lines


class Command(BaseCommand):
    help = "Load each agent of REPLAY_AGENTS as a replay would, and say which cannot be."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write("The agents of REPLAY_AGENTS:")
        for line in agent_lines():
            self.stdout.write(line)
