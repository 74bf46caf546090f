"""manage.py takes a shorter way, which works with broken settings too; this one is for `help`."""

import sys
from typing import Any

from django.core.management import BaseCommand

from replay_web import doctor


class Command(BaseCommand):
    help = "Say what is wrong with this installation and what to do about it."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        sys.exit(doctor.main())
