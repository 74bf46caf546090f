"""What models cost, as a project says it."""

from __future__ import annotations

from django.db import models

from sessions_app.models.projects import Project


class ModelPrice(models.Model):
    """US dollars for a million tokens, from a day on until another row of the same model begins."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="prices")
    model = models.CharField(max_length=200)
    """As it was recorded; `*` stands for any characters."""
    since = models.DateField(null=True)
    """None: always."""
    input_price = models.DecimalField(max_digits=12, decimal_places=6)
    output_price = models.DecimalField(max_digits=12, decimal_places=6)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["project", "model", "since"], nulls_distinct=False, name="one_price_a_model_and_day"
            )
        ]

    def __str__(self) -> str:
        return f"{self.model} since {self.since}"
