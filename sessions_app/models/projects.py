"""Projects, who belongs to them, and the keys that scripts use."""

from __future__ import annotations

import secrets

from django.conf import settings
from django.db import models
from django.utils import timezone


def new_redaction_secret() -> bytes:
    return secrets.token_bytes(32)


class Project(models.Model):
    """One team's recordings; nothing is ever shared between projects."""

    slug = models.SlugField(max_length=64, unique=True)
    name = models.CharField(max_length=120)
    redaction_secret = models.BinaryField(default=new_redaction_secret)
    """Makes redaction placeholders stable within the project and different between projects."""
    redaction = models.TextField(default="", blank=True)
    """Its own rules of redaction as JSON (core/redaction/own_rules.py); empty until somebody changes them."""
    anomaly_rules = models.TextField(default="", blank=True)
    """Its own limits of what is odd as JSON, by the names of `core.judge.anomalies.anomaly.Rules`."""
    created_at = models.DateTimeField(auto_now_add=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership")
    sees_raw = False
    """Whether who asked for it may open recorded bytes and exports; `queries.access` says so of each user."""
    is_managed = False
    """Whether who asked for it is one of its administrators; said in the same place."""

    def __str__(self) -> str:
        return self.slug


class Role(models.TextChoices):
    VIEWER = "viewer"
    MEMBER = "member"
    ADMIN = "admin"


class Membership(models.Model):
    """What a person may do in a project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=8, choices=Role, default=Role.MEMBER)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "user"], name="one_role_a_project")]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} of {self.project_id}"


class Invitation(models.Model):
    """Makes whoever opens its link a member, once. Only the SHA-256 of the token is stored; the link is shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="invitations")
    role = models.CharField(max_length=8, choices=Role, default=Role.MEMBER)
    digest = models.BinaryField(unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.role} of {self.project_id} until {self.expires_at:%Y-%m-%d}"


class KeyScope(models.TextChoices):
    INGEST = "ingest"
    """May send recordings and nothing else."""
    FULL = "full"
    """May also read and replay."""
    ADMIN = "admin"
    """May also decide who belongs to the project and what opens it."""


class ApiKey(models.Model):
    """A bearer key. Only its SHA-256 is stored; the key itself is shown once."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=16)
    """The first characters, so that a person can tell keys apart."""
    digest = models.BinaryField(unique=True)
    scope = models.CharField(max_length=8, choices=KeyScope, default=KeyScope.INGEST)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)
    replaced_at = models.DateTimeField(null=True)
    """When another was made in its place; it is good until `expires_at` all the same."""
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.scope})"

    @property
    def is_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= timezone.now()
