"""What the commands about projects share: who and what is meant by a name."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.management import CommandError

from sessions_app.models import Project


def project_named(slug: str) -> Project:
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"There is no project {slug!r}. There are: {known or 'none yet'}.")
    return found


def user_named(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"Nobody here has the name {name!r}.")
    return found
