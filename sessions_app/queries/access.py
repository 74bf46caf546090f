"""What a user may see and do. Every page and the API ask here, and nowhere else."""

from __future__ import annotations

from typing import Literal

from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.models import User as Account
from django.db.models import QuerySet

from sessions_app.core.errors import ReplayProductError
from sessions_app.models import Membership, Project

RoleName = Literal["viewer", "member", "admin"]
ROLES: tuple[RoleName, ...] = ("viewer", "member", "admin")
"""From the one that may least."""

SEES_RAW: RoleName = "member"
"""Viewers read what pages make of a recording; its bytes, the spans as they came, and exports are for members."""

User = Account | AnonymousUser


class NoSuchProject(ReplayProductError):
    """There is no such project, or it is not the user's: both look the same from outside."""


class RoleNeeded(ReplayProductError):
    """The user sees the project but needs a higher role for this."""

    def __init__(self, role: RoleName, project: Project) -> None:
        super().__init__(f"This needs the role {role} in {project.name}.")
        self.role = role
        self.project = project


def projects_of(user: User) -> QuerySet[Project]:
    if not user.is_authenticated or not user.is_active:
        return Project.objects.none()
    if user.is_superuser:
        return Project.objects.all()
    return Project.objects.filter(membership__user=user)


def project_for(user: User, slug: str, at_least: RoleName = "viewer") -> Project:
    """The project as this user may see it, or the error that says what is in the way."""
    project = projects_of(user).filter(slug=slug).first()
    if project is None:
        raise NoSuchProject(f"No project {slug!r}.")
    role = role_in(user, project)
    if not _is_enough(role, at_least):
        raise RoleNeeded(at_least, project)
    project.sees_raw = _is_enough(role, SEES_RAW)
    project.is_managed = _is_enough(role, "admin")
    return project


def has_role(user: User, project: Project, at_least: RoleName) -> bool:
    return _is_enough(role_in(user, project), at_least)


def _is_enough(role: RoleName | None, at_least: RoleName) -> bool:
    return role is not None and ROLES.index(role) >= ROLES.index(at_least)


def role_in(user: User, project: Project) -> RoleName | None:
    if user.is_superuser:
        return "admin"
    role = Membership.objects.filter(user_id=user.pk or 0, project=project).values_list("role", flat=True).first()
    return next((known for known in ROLES if known == role), None)


def server_administrators() -> list[str]:
    """Names of those who see every project and make new ones."""
    admins = Account.objects.filter(is_superuser=True, is_active=True).order_by("pk")[:5]
    return [admin.get_username() for admin in admins]


def admins_of(project: Project) -> list[str]:
    """Names of those who can give a role, for the page that says one is needed."""
    admins = Membership.objects.filter(project=project, role="admin").select_related("user")
    return [membership.user.get_username() for membership in admins.order_by("user_id")[:5]]
