"""`manage.py keys`: the API keys of a project."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from sessions_app.management.projects import name_to_give, project_named, user_named, whole_number
from sessions_app.models import ApiKey, Project
from sessions_app.models.projects import KeyScope
from sessions_app.queries.projects import listed_keys
from sessions_app.services.keys import AlreadyReplaced, create_key, revoke_key, rotate_key


class Command(BaseCommand):
    requires_system_checks: list[str] = []  # half of the time of every start
    help = (
        "List the keys of a project, create one, replace one with an overlap, or revoke one. New keys are shown once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project")
        actions = parser.add_subparsers(dest="action")
        actions.add_parser("list", help="number, beginning, scope, name, last use, end")
        create = actions.add_parser("create", help="print a new key")
        create.add_argument("name", type=name_to_give)
        create.add_argument("--scope", choices=KeyScope.values, default=KeyScope.INGEST)
        create.add_argument(
            "--user", metavar="USERNAME", help="whose it is; an admin key of a server administrator creates projects"
        )
        create.add_argument("--days", type=whole_number(1, 3650), help="until it ends; without it, never")
        rotate = actions.add_parser("rotate", help="print a new key in the place of one")
        rotate.add_argument("number", type=int, help="as the list has it")
        rotate.add_argument(
            "--overlap-hours", type=whole_number(0, 24 * 365), default=24, help="how long both work; %(default)s"
        )
        actions.add_parser("revoke", help="at once").add_argument("number", type=int, help="as the list has it")

    def handle(self, *, project: str, action: str | None, **options: Any) -> None:
        doing = {"create": self._create, "rotate": self._rotate, "revoke": self._revoke}.get(action or "", self._list)
        doing(project_named(project), options)

    def _list(self, project: Project, options: dict[str, Any]) -> None:
        for key in listed_keys(project):
            used = f"used {key.last_used_at:{_MOMENT}}" if key.last_used_at else "never used"
            self.stdout.write("\t".join((str(key.pk), f"{key.prefix}…", key.scope, key.name, used, _end_of(key))))

    def _create(self, project: Project, options: dict[str, Any]) -> None:
        ends = timezone.now() + timedelta(days=options["days"]) if options["days"] else None
        user = user_named(options["user"]) if options["user"] else None
        _, text = create_key(project=project, name=options["name"], scope=options["scope"], user=user, expires_at=ends)
        self.stdout.write(text)

    def _rotate(self, project: Project, options: dict[str, Any]) -> None:
        old = _key(project, options["number"])
        try:
            _, text = rotate_key(old, user=old.created_by, overlap=timedelta(hours=options["overlap_hours"]))
        except AlreadyReplaced as refused:
            raise CommandError(str(refused)) from None
        self.stdout.write(text)

    def _revoke(self, project: Project, options: dict[str, Any]) -> None:
        revoke_key(_key(project, options["number"]))
        self._list(project, options)


_MOMENT = "%Y-%m-%d %H:%M UTC"


def _end_of(key: ApiKey) -> str:
    if key.expires_at is None:
        return "does not end"
    end = f"{'expired' if key.is_expired else 'ends'} {key.expires_at:{_MOMENT}}"
    return f"{end}, replaced" if key.replaced_at else end


def _key(project: Project, number: int) -> ApiKey:
    found = (
        ApiKey.objects.filter(project=project, pk=number, revoked_at=None)
        .select_related("project", "created_by")
        .first()
    )
    if found is None:
        raise CommandError(f"{project.slug} has no key with the number {number}.")
    return found
