"""Recordings that come as files, from the page and the command line, and why one was refused."""

from __future__ import annotations

from sessions_app.core.errors import RecordError, RunConflict
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Project
from sessions_app.services.imports import take_in
from sessions_app.services.run_store import Ingested

REFUSALS = (RecordError, RunConflict, RedactionFailed)
"""What taking in a file may raise; nothing is stored then."""

_IMPORTS = "sessions_app.services.imports"


def take_in_file(project: Project, content: bytes, content_type: str | None, name: str) -> list[Ingested]:
    """Store what a file holds, in any accepted format. Raises one of `REFUSALS`."""
    return take_in(project, content, content_type or "").items


def refusal_words(error: Exception) -> str:
    """One of `REFUSALS` as a sentence that names the field."""
    if isinstance(error, RedactionFailed):
        return "The recording could not be redacted and was not stored."
    field = getattr(error, "field", None)
    return str(error) if field is None or field in str(error) else f"{field}: {error}"
