"""`manage.py members`: who belongs to a project, and as what."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.urls import reverse

from sessions_app.management.projects import project_named
from sessions_app.models import Membership, Project
from sessions_app.models.projects import Role
from sessions_app.queries.projects import members_of
from sessions_app.services.bootstrap import address_of
from sessions_app.services.projects import LastAdministrator, invite, remove_member, set_role


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = "List the members of a project, make a link that invites one, change a role, or remove one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project")
        actions = parser.add_subparsers(dest="action")
        actions.add_parser("list", help="names and roles")
        invitation = actions.add_parser("invite", help="print a link by which one person joins, within seven days")
        invitation.add_argument("--role", choices=Role.values, default=Role.MEMBER)
        invitation.add_argument(
            "--url", help="of this server, such as https://replay.example.org; known where `up` runs it"
        )
        role = actions.add_parser("role", help="give a member another role")
        role.add_argument("username")
        role.add_argument("role", choices=Role.values)
        actions.add_parser("remove", help="the person leaves the project").add_argument("username")

    def handle(self, *, project: str, action: str | None, **options: Any) -> None:
        doing = {"invite": self._invite, "role": self._role, "remove": self._remove}.get(action or "", self._list)
        try:
            doing(project_named(project), options)
        except LastAdministrator as last:
            raise CommandError(str(last)) from None

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        for member in members_of(project):
            self.stdout.write(f"{member.user.get_username()}\t{member.role}")

    def _invite(self, project: Project, options: dict[str, Any]) -> None:
        url = options["url"] or address_of(settings.HOME.path)
        if not url:
            raise CommandError("Add the address of this server to the link: --url https://replay.example.org")
        _, token = invite(project, options["role"], None)
        self.stdout.write(url.rstrip("/") + reverse("invitation", args=[token]))

    def _role(self, project: Project, options: dict[str, Any]) -> None:
        set_role(_member(project, options["username"]), options["role"])
        self._list(project, options)

    def _remove(self, project: Project, options: dict[str, Any]) -> None:
        remove_member(_member(project, options["username"]))
        self._list(project, options)


def _member(project: Project, username: str) -> Membership:
    found = Membership.objects.filter(project=project, user__username=username).first()
    if found is None:
        raise CommandError(f"{username!r} does not belong to {project.slug}.")
    return found
