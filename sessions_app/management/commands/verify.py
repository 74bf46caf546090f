"""`manage.py verify`: is everything that was stored still there, byte for byte?"""

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from sessions_app.models import Run, StoredPayload
from sessions_app.services.verification import find_orphans, problems, remove


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = "Compute every digest again, follow every reference, and name what is wrong; exit code 1 if anything is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--repair", action="store_true", help="Remove files that no row speaks of.")

    def handle(self, *, repair: bool, **options: Any) -> None:
        found = 0
        for problem in problems():
            found += 1
            self.stdout.write(problem)
        self._say_orphans(repair)
        if found:
            raise CommandError(f"{found} problems found.")
        self.stdout.write(f"Whole: {Run.objects.count()} runs, {StoredPayload.objects.count()} payloads.")

    def _say_orphans(self, repair: bool) -> None:
        orphans = find_orphans()
        if orphans.count and repair:
            remove(orphans)
            self.stdout.write(f"Removed {orphans.count} files that no row speaks of.")
        elif orphans.count:
            self.stdout.write(f"{orphans.count} files that no row speaks of; --repair removes them.")
