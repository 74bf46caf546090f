"""Marking a run as a cold case, and taking the mark back."""

from __future__ import annotations

from django.contrib.auth.models import User

from sessions_app.core.errors import RecordError
from sessions_app.models import ColdCase, Run

_MAX_REASON = 2000


def mark_cold(*, run: Run, reason: str, user: User | None = None) -> ColdCase:
    """Keep the run as known unreproducible. A reason is required; marking again replaces it."""
    reason = check_reason(reason)
    case, _ = ColdCase.objects.update_or_create(
        run=run, defaults={"reason": reason, "marked_by": user, "missing": run.kit_lacks}
    )
    return case


def check_reason(reason: str) -> str:
    """As it is kept. Raises `RecordError`."""
    reason = reason.strip()
    if not reason:
        raise RecordError("A reason is required to mark a cold case.", field="reason")
    if len(reason) > _MAX_REASON or "\x00" in reason:
        raise RecordError(f"reason must be text of at most {_MAX_REASON} characters.", field="reason")
    return reason


def take_back(*, run: Run) -> bool:
    """Whether there was a mark."""
    deleted, _ = ColdCase.objects.filter(run=run).delete()
    return deleted > 0
