"""Recorded HTTP for a run that is here already: the exchanges behind the calls of its tools."""

from __future__ import annotations

from django.db import transaction

from sessions_app import models
from sessions_app.core.errors import RecordError
from sessions_app.core.importers.attaching import Attached, attach
from sessions_app.core.importers.cassette import matches, read_interactions
from sessions_app.core.importers.documents import read_document
from sessions_app.mapping.load import load_run
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.ingest import limits
from sessions_app.services.redaction import redactor_of
from sessions_app.services.run_store import lock_name, store_assembled


@again_after_deadlock
def attach_exchanges(row: models.Run, content: bytes) -> Attached:
    """Put recorded HTTP onto the tool steps of the run; what is on a step already stays.

    Raises `RecordError` where the document is no recorded HTTP, where the run cannot take any, and where no exchange
    fits a call, and `RedactionFailed`; nothing is changed then.
    """
    _check(row)
    document = read_document(content, limits())
    if not matches(document.value):
        raise RecordError("This is not recorded HTTP: expected a vcrpy, betamax, nock or WireMock file.")
    redacted = redactor_of(row.project).redact(document.content).content
    _, interactions = read_interactions(redacted, limits())
    with transaction.atomic():
        lock_name(row.project, row.run_id)
        row.refresh_from_db()
        attached = attach(load_run(row), interactions)
        if not any(attached.steps):
            raise RecordError(
                "No exchange matches a tool call of this run: no answer, arguments or time agree. "
                "Sent without the run's id, the file becomes a run of its own."
            )
        store_assembled(row.project, attached.run, source=redacted, made_before=row.pk)
    return attached


def _check(row: models.Run) -> None:
    if row.origin != "recorded":
        raise RecordError("Only recorded runs take exchanges; this one is a replay or a fork.")
    if models.Trace.objects.filter(run=row).exists():
        raise RecordError(
            "This run was assembled from spans and is rebuilt when more arrive. Download its record, send it with a "
            "run_id of its own, and attach the exchanges there."
        )
