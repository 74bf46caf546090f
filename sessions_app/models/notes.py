"""What people and scripts write beside a run or one of its steps."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from sessions_app.models.projects import ApiKey
from sessions_app.models.recordings import Run


class Note(models.Model):
    """Written on the page by a person, or over the API with a key."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="notes")
    step = models.IntegerField(null=True)
    """None for a note on the whole run."""
    text = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL)
    key = models.ForeignKey(ApiKey, null=True, on_delete=models.SET_NULL)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.by} on {self.run_id}"

    @property
    def by(self) -> str:
        if self.author:
            return self.author.get_username()
        return f"API key {self.key.name}" if self.key else "a former member"
