"""The tags that a project has in use."""

from __future__ import annotations

from django.db.models import Count, F, Func, TextField

from sessions_app.models import Project, Session

SHOWN = 100


def tags_of(project: Project) -> list[str]:
    """The most frequent ones, for whoever writes another. One query."""
    tagged = Session.objects.filter(project=project).exclude(tags=[])
    each = tagged.annotate(tag=Func(F("tags"), function="unnest", output_field=TextField()))
    counted = each.values_list("tag").annotate(count=Count("pk")).order_by("-count", "tag")
    return [tag for tag, _ in counted[:SHOWN]]
