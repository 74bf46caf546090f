"""`manage.py migrate`, by one process at a time: machines that start together all ask for it."""

from typing import Any

from django.core.management.commands import migrate
from django.db import connection

_LOCK = "SELECT pg_advisory_lock(hashtextextended('migrate', 0))"
_UNLOCK = "SELECT pg_advisory_unlock(hashtextextended('migrate', 0))"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        with connection.cursor() as cursor:
            cursor.execute(_LOCK)
        try:
            super().handle(*args, **options)
        finally:
            with connection.cursor() as cursor:
                cursor.execute(_UNLOCK)
