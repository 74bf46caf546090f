"""`manage.py projects`: list, create and rename them."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from sessions_app.management.projects import name_to_give, project_named, user_named
from sessions_app.models import Project
from sessions_app.services.projects import create_project, rename_project


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = "List the projects of this server, create one, or rename one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action")
        actions.add_parser("list", help="their names in addresses, and their names")
        create = actions.add_parser("create", help="a new project")
        create.add_argument("name", type=name_to_give)
        create.add_argument("--administrator", required=True, metavar="USERNAME", help="who decides in it")
        rename = actions.add_parser("rename", help="another name; addresses stay")
        rename.add_argument("project")
        rename.add_argument("name", type=name_to_give)

    def handle(self, *, action: str | None, **options: Any) -> None:
        {"create": self._create, "rename": self._rename}.get(action or "", self._list)(options)

    def _list(self, options: dict[str, Any]) -> None:
        for project in Project.objects.order_by("slug"):
            self.stdout.write(f"{project.slug}\t{project.name}")

    def _create(self, options: dict[str, Any]) -> None:
        project = create_project(options["name"], user_named(options["administrator"]))
        self.stdout.write(f"{project.slug}\t{project.name}")

    def _rename(self, options: dict[str, Any]) -> None:
        project = project_named(options["project"])
        rename_project(project, options["name"])
        self.stdout.write(f"{project.slug}\t{project.name}")
