"""Recordings that come as files, from the page and the command line, and why one was refused."""

from __future__ import annotations

from sessions_app.core.errors import RecordError, RunConflict
from sessions_app.core.redaction import RedactionFailed

REFUSALS = (RecordError, RunConflict, RedactionFailed)
"""What taking in a file may raise; nothing is stored then."""


def refusal_words(error: Exception) -> str:
    """One of `REFUSALS` as a sentence that names the field."""
    if isinstance(error, RedactionFailed):
        return "The recording could not be redacted and was not stored."
    field = getattr(error, "field", None)
    return str(error) if field is None or field in str(error) else f"{field}: {error}"
