"""For redis-cli: the private Redis has no other place to look its address up."""

from typing import Any

from django.conf import settings
from django.core.management import BaseCommand


class Command(BaseCommand):
    help = "Print the address of Redis, password included."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(settings.REDIS_URL)
