"""Words that people put on sessions to find them again."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from django.db import transaction

from sessions_app.core.errors import RecordError
from sessions_app.models import Session

LONGEST = 60
MOST = 20
"""On one session."""
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u2028\u2029]")


def read_tags(texts: Iterable[str], field: str = "add") -> set[str]:
    """Without blank space around them; a text may name several, with commas between. Raises `RecordError`."""
    tags = {tag for text in texts for part in text.split(",") if (tag := " ".join(part.split()))}
    for tag in tags:
        if len(tag) > LONGEST or _UNSEEN.search(tag):
            raise RecordError(f"A tag is text on one line, of at most {LONGEST} characters.", field=field)
    return tags


def change_tags(
    sessions: Collection[Session], *, add: Collection[str] = (), remove: Collection[str] = ()
) -> list[Session]:
    """The sessions with their new tags: all of them, or none when one would have too many. Raises `RecordError`."""
    with transaction.atomic():
        locked = Session.objects.filter(pk__in=[session.pk for session in sessions]).order_by("pk")
        changed = list(locked.select_for_update(of=("self",)))
        for session in changed:
            session.tags = sorted((set(session.tags) | set(add)) - set(remove))
            if len(session.tags) > MOST:
                raise RecordError(f"A session has at most {MOST} tags.", field="add")
        Session.objects.bulk_update(changed, ["tags"])
    return changed
