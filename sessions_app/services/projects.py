"""Projects and who belongs to them."""

from __future__ import annotations

import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import Invitation, Membership, Project
from sessions_app.models.projects import Role
from sessions_app.services.tokens import digest_of, new_token

INVITATION_LASTS = timedelta(days=7)
_SLUG = 50
"""Characters, so that something has room behind them where the slug is taken."""


class LastAdministrator(ReplayProductError):
    """Nobody could give a role in the project any more."""


def create_project(name: str, user: User, *, slug: str | None = None) -> Project:
    """A project of this name whose administrator is the user. Its slug is made of the name where none is given, and
    gets more characters where it is taken."""
    words = slug or slugify(name)[:_SLUG].strip("-") or "project"
    with transaction.atomic():
        project, is_new = Project.objects.get_or_create(slug=words, defaults={"name": name})
        if not is_new:
            project = Project.objects.create(slug=f"{words}-{secrets.token_hex(4)}", name=name)
        Membership.objects.create(project=project, user=user, role=Role.ADMIN)
    return project


def rename_project(project: Project, name: str) -> None:
    """Its slug stays, and so do all addresses."""
    project.name = name
    project.save(update_fields=["name"])


def set_role(membership: Membership, role: str) -> None:
    """Raises `LastAdministrator`."""
    with transaction.atomic():
        _keep_an_administrator(membership, role)
        membership.role = role
        membership.save(update_fields=["role"])


def remove_member(membership: Membership) -> None:
    """Raises `LastAdministrator`. What the person made in the project stays."""
    with transaction.atomic():
        _keep_an_administrator(membership, None)
        membership.delete()


def _keep_an_administrator(membership: Membership, role: str | None) -> None:
    admins = Membership.objects.select_for_update().filter(project=membership.project_id, role=Role.ADMIN)
    if role != Role.ADMIN and {admin.pk for admin in admins} == {membership.pk}:
        raise LastAdministrator("A project needs an administrator. Make somebody else one first.")


# --- invitations -------------------------------------------------------------------------------


def invite(project: Project, role: str, user: User | None) -> tuple[Invitation, str]:
    """An invitation that one person may take within `INVITATION_LASTS`, and its token of 256 random bits; the token
    cannot be shown again."""
    token = new_token()
    expires_at = timezone.now() + INVITATION_LASTS
    made = Invitation.objects.create(
        project=project, role=role, digest=digest_of(token), created_by=user, expires_at=expires_at
    )
    return made, token


def find_invitation(token: str) -> Invitation | None:
    """None for one that was taken, taken back, or is too old."""
    open_ones = Invitation.objects.filter(digest=digest_of(token), expires_at__gt=timezone.now())
    return open_ones.select_related("project", "created_by").first()


def accept(invitation: Invitation, user: User) -> bool:
    """Whether it was still there to be taken. Who belongs to the project already keeps the role, and the invitation is
    left for somebody else."""
    with transaction.atomic():
        found = Invitation.objects.select_for_update().filter(pk=invitation.pk).first()
        if found is None:
            return False
        facts = {"role": found.role}
        _, is_new = Membership.objects.get_or_create(project=found.project, user=user, defaults=facts)
        if is_new:
            found.delete()
    return True
