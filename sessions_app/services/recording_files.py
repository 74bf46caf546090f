"""Recordings that come as files, from the page and the command line, and why one was refused."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from sessions_app.core.errors import RecordError, RunConflict
from sessions_app.core.formats.batch import split_batch
from sessions_app.core.json_text import load_strict
from sessions_app.core.redaction import RedactionFailed
from sessions_app.models import Project
from sessions_app.services.ingest import ingest_batch, ingest_checked, limits
from sessions_app.services.run_store import Ingested

REFUSALS = (RecordError, RunConflict, RedactionFailed)
"""What taking in a file may raise; nothing is stored then."""

_IMPORTS = "sessions_app.services.imports"


def take_in_file(project: Project, content: bytes, content_type: str | None, name: str) -> list[Ingested]:
    """Store what a file holds, in any accepted format. Raises one of `REFUSALS`."""
    return _importer()(project, content, content_type, name)


def refusal_words(error: Exception) -> str:
    """One of `REFUSALS` as a sentence that names the field."""
    if isinstance(error, RedactionFailed):
        return "The recording could not be redacted and was not stored."
    field = getattr(error, "field", None)
    return str(error) if field is None or field in str(error) else f"{field}: {error}"


def _importer() -> Callable[[Project, bytes, str | None, str], list[Ingested]]:
    try:
        module = importlib.import_module(_IMPORTS)
    except ModuleNotFoundError as error:
        if error.name != _IMPORTS:
            raise
        return _take_in_document
    found: Callable[[Project, bytes, str | None, str], list[Ingested]] = module.import_file
    return found


def _take_in_document(project: Project, content: bytes, content_type: str | None, name: str) -> list[Ingested]:
    value = load_strict(content, limits())
    documents = split_batch(content, value)
    return [ingest_checked(project, content, value)] if documents is None else ingest_batch(project, documents)
