"""What was typed into a fork's form and not queued yet, kept in the person's session for each run and step."""

from __future__ import annotations

from django.http import HttpRequest

from sessions_app.core.fork.changes import ForkError
from sessions_app.core.payload import JsonObject
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Run
from sessions_app.services.typed_json import without_secrets
from sessions_app.web.forks.inputs import Typed

DRAFTS = 5
"""Of one person; the one that was touched longest ago goes first."""
LONGEST = 200_000
"""Characters of a draft that is kept."""
_KEY = "fork_drafts"


def draft_of(request: HttpRequest, run: Run, step: int) -> Typed | None:
    found: Typed | None = _drafts(request).get(_name(run, step))
    return found


def keep_draft(request: HttpRequest, run: Run, step: int, typed: Typed) -> bool:
    """Whether it was kept. Secrets are taken out of it, as they are when the fork is queued."""
    drop_draft(request, run, step)
    if sum(map(len, typed.values())) > LONGEST:
        return False
    try:
        kept = without_secrets(run.project, dict(typed))
    except (ForkError, RedactionFailed):
        return False
    others = list(_drafts(request).items())[-(DRAFTS - 1) :]
    request.session[_KEY] = {**dict(others), _name(run, step): kept}
    return True


def drop_draft(request: HttpRequest, run: Run, step: int) -> None:
    if _name(run, step) in _drafts(request):
        request.session[_KEY] = {name: kept for name, kept in _drafts(request).items() if name != _name(run, step)}


def _drafts(request: HttpRequest) -> dict[str, JsonObject]:
    found: dict[str, JsonObject] = request.session.get(_KEY, {})
    return found


def _name(run: Run, step: int) -> str:
    return f"{run.pk}/{step}"
