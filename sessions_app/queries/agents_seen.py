"""The agents that a project has runs of, for pages that can be narrowed to one."""

from __future__ import annotations

from django.db.models import Count

from sessions_app.models import Project, Run

MOST = 50


def agents_seen(project: Project) -> list[str]:
    """Those with most runs first. One query."""
    runs = Run.objects.filter(project=project, origin="recorded", agent_name__isnull=False)
    counted = runs.values_list("agent_name").annotate(count=Count("pk")).order_by("-count", "agent_name")
    return [str(name) for name, _ in counted[:MOST]]
