"""Models that a project may ask: each an address with a key and what it may take a day."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from sessions_app.models.projects import Project


class Provider(models.TextChoices):
    """How requests to it are written."""

    OPENAI = "openai", "OpenAI"
    ANTHROPIC = "anthropic", "Anthropic"
    COMPATIBLE = "openai-compatible", "OpenAI-compatible"


class ConnectedModel(models.Model):
    """Beside the model that the server's environment names."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="connected_models")
    name = models.CharField(max_length=60)
    """As orders name it."""
    provider = models.CharField(max_length=20, choices=Provider)
    base_url = models.CharField(max_length=300)
    model = models.CharField(max_length=200, blank=True)
    """Asked for in place of the recorded model."""
    sealed_key = models.TextField(blank=True)
    """See services/sealing.py. Never leaves the server but in a request to `base_url`."""
    requests_per_day = models.IntegerField()
    requests_sent = models.IntegerField(default=0)
    """On `sent_on`."""
    sent_on = models.DateField(null=True)
    """The last day, in UTC, on which it was asked."""
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_connected_model_a_name")]

    def __str__(self) -> str:
        return self.name

    @property
    def sent_today(self) -> int:
        return self.requests_sent if self.sent_on == timezone.now().date() else 0

    @property
    def left_today(self) -> int:
        return max(self.requests_per_day - self.sent_today, 0)
