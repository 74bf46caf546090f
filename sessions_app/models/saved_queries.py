"""Lists of sessions that people come back to."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.projects import Project


class SavedQuery(models.Model):
    """A query of the list under a name, for everybody in the project."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="saved_queries")
    name = models.CharField(max_length=80)
    address = models.TextField()
    """Of the list, from the question mark on."""
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_saved_query_a_name")]

    def __str__(self) -> str:
        return self.name
