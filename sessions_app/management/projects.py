"""What the commands about projects share: who and what is meant by a name."""

from __future__ import annotations

from argparse import ArgumentTypeError
from collections.abc import Callable

from django.contrib.auth.models import User
from django.core.management import CommandError

from sessions_app.models import Project


def project_named(slug: str) -> Project:
    found = Project.objects.filter(slug=slug).first()
    if found is None:
        known = ", ".join(Project.objects.order_by("slug").values_list("slug", flat=True)[:20])
        raise CommandError(f"There is no project {slug!r}. There are: {known or 'none yet'}.")
    return found


def name_to_give(text: str) -> str:
    """Of a project or a key: as long as the page takes."""
    if not 0 < len(text.strip()) <= _LONGEST_NAME:
        raise ArgumentTypeError(f"a name has 1 to {_LONGEST_NAME} characters")
    return text.strip()


_LONGEST_NAME = 120


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not least <= int(text) <= most:
            raise ArgumentTypeError(f"has to be a whole number from {least} to {most}")
        return int(text)

    return read


def user_named(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None:
        raise CommandError(f"Nobody here has the name {name!r}.")
    return found
