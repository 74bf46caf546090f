"""For backups and psql: the private PostgreSQL has no other place to look its address up."""

from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError


class Command(BaseCommand):
    help = "Print the address of the database, password included."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DATABASE_URL:
            raise CommandError("There is no database: start `manage.py up`, or set DATABASE_URL.")
        self.stdout.write(settings.DATABASE_URL)
