"""`up` calls this before it serves; it can be run again at any time."""

from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandParser, call_command

from sessions_app.services import bootstrap


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half a second of every start
    help = "Bring the database up to date, collect static files, fill a new home with its first account and examples."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("url", help="the address at which this instance will answer")
        parser.add_argument("--keep-static", action="store_true", help="the static files are of this code")

    def handle(self, *args: Any, **options: Any) -> None:
        call_command("migrate", interactive=False, verbosity=0)
        if not options["keep_static"]:
            call_command("collectstatic", interactive=False, verbosity=0)
        bootstrap.prepare_home(settings.HOME.path, options["url"])
