"""Who belongs to a project, and what opens it."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

from sessions_app.models import ApiKey, Invitation, Membership, Project, Session
from sessions_app.models.projects import Role

MOST = 200
"""Rows of each that a page lists."""
EXPIRED_ARE_LISTED = timedelta(days=30)


def has_sessions(project: Project) -> bool:
    """Whether anything was recorded."""
    return Session.objects.filter(project=project).exists()


def members_of(project: Project) -> QuerySet[Membership]:
    members = Membership.objects.filter(project=project).select_related("user")
    return members.order_by("user__username")[:MOST]


def only_administrator(project: Project) -> Membership | None:
    """The member that can neither leave nor get another role; None where there are several administrators, or none."""
    admins = Membership.objects.filter(project=project, role=Role.ADMIN)[:2]
    return admins[0] if len(admins) == 1 else None


def open_invitations(project: Project) -> QuerySet[Invitation]:
    """Newest first."""
    open_ones = Invitation.objects.filter(project=project, expires_at__gt=timezone.now())
    return open_ones.select_related("created_by").order_by("-pk")[:MOST]


def keys_in_force(project: Project) -> QuerySet[ApiKey]:
    return _keys(project, expired_after=timezone.now())


def listed_keys(project: Project) -> QuerySet[ApiKey]:
    """Newest first. Those that expired lately are among them, so that one sees why nothing arrives any more."""
    keys = _keys(project, expired_after=timezone.now() - EXPIRED_ARE_LISTED)
    return keys.select_related("created_by").order_by("-pk")[:MOST]


def _keys(project: Project, expired_after: datetime) -> QuerySet[ApiKey]:
    return ApiKey.objects.filter(project=project, revoked_at=None).exclude(expires_at__lte=expired_after)
