"""manage.py takes a shorter way for a plain `up`; this one is for `help` and for calls with options."""

import sys
from typing import Any

from django.core.management import BaseCommand

from replay_web.supervisor import up


class Command(BaseCommand):
    help = (
        "Run the product: PostgreSQL and Redis unless DATABASE_URL and REDIS_URL name some, web server and worker. "
        "PORT (8000), HOST (127.0.0.1) and REPLAY_HOME (.replay) come from the environment."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(up.main())
