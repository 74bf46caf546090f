"""`manage.py bootstrap`: the first account of a server that runs on its own services."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from sessions_app.management.projects import name_to_give
from sessions_app.services.bootstrap import OWN_PROJECT, USERNAME, NotEmpty, first_account


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = "Make the first administrator, a project and its key, and print them once, as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--username", default=USERNAME, help="of the administrator; %(default)s")
        parser.add_argument(
            "--project", type=name_to_give, default=OWN_PROJECT, help="name of the project; %(default)s"
        )

    def handle(self, *, username: str, project: str, **options: Any) -> None:
        try:
            made = first_account(username, project, key_name="bootstrap")
        except NotEmpty as error:
            raise CommandError(str(error)) from None
        shown = {"username": made.user.get_username(), "password": made.password, "project": made.project.slug}
        self.stdout.write(json.dumps({**shown, "api_key": made.api_key}, indent=2))
