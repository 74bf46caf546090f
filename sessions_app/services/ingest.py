"""Taking in a recording: check, redact, parse, judge, store. Answered only after commit.

Redaction is the first thing that happens to a document that is JSON at all, so everything stored is
derived from redacted bytes. When redaction fails, nothing is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from django.conf import settings
from django.db import transaction

from sessions_app import models
from sessions_app.core.assembly.model_exchanges import with_conversation
from sessions_app.core.errors import RecordError, RecordTooLarge
from sessions_app.core.formats.detect import Parser, parser_of
from sessions_app.core.history import nodes
from sessions_app.core.json_text import Limits, load_strict
from sessions_app.core.payload import compact_json
from sessions_app.core.run import Run
from sessions_app.services.deadlocks import again_after_deadlock
from sessions_app.services.redaction import redactor_of
from sessions_app.services.run_store import Ingested, lock_name, store_run

_MAX_STATE_BYTES = 64 * 1024 * 1024


def limits() -> Limits:
    return Limits(max_bytes=settings.REPLAY_MAX_INFLATED_BYTES)


def ingest_document(project: models.Project, content: bytes) -> Ingested:
    """Store one recording in any accepted format.

    Raises `RecordError` naming the field, `RunConflict` when another run has this id, and
    `RedactionFailed`; nothing is stored then.
    """
    return ingest_checked(project, content, parser_of(load_strict(content, limits())))


@again_after_deadlock
def ingest_checked(project: models.Project, content: bytes, parse: Parser) -> Ingested:
    """The same for a document that `load_strict` has read already, with the parser of its format."""
    run, source = _read(project, content, parse)
    return store_run(project, run, source=source)


@again_after_deadlock
def ingest_batch(project: models.Project, documents: Sequence[bytes]) -> list[Ingested]:
    """Store several recordings in one transaction: all of them or none.

    Errors are those of `ingest_document`, with `runs[3].` before the field.
    """
    read = [_read_nth(project, document, position) for position, document in enumerate(documents)]
    stored: dict[int, Ingested] = {}
    with transaction.atomic():
        # Batches take turns: each writes what runs share in an order of its own, and two would wait in a circle.
        lock_name(project, "batch")
        for position in sorted(range(len(read)), key=lambda each: read[each][0].run_id):
            run, source = read[position]
            stored[position] = store_run(project, run, source=source)
    return [stored[position] for position in range(len(read))]


def _read_nth(project: models.Project, document: bytes, position: int) -> tuple[Run, bytes]:
    try:
        return _read(project, document, parser_of(load_strict(document, limits())))
    except RecordError as error:
        place = f"runs[{position}]"
        field = f"{place}.{error.field}" if error.field else place
        raise type(error)(f"{place}: {error.message}", field=field) from None


def _read(project: models.Project, content: bytes, parse: Parser) -> tuple[Run, bytes]:
    """The run, and the redacted document that it was read from."""
    redacted = redactor_of(project).redact(content).content
    run = with_conversation(parse(redacted, limits()))
    check_growth(run)
    check_messages(run, limits().max_messages)
    return run, redacted


def check_messages(run: Run, most: int) -> None:
    """Two bytes are a message, and each that is new becomes a link of a history."""
    seen: set[str] = set()
    for end in (run.prior, run.final, *(call.history for _, call in run.model_calls)):
        seen.update(node.digest for node in takewhile(lambda node: node.digest not in seen, nodes(end)))
    if len(seen) > most:
        raise RecordTooLarge(f"The run holds {len(seen)} different messages; the limit is {most}.", field="steps")


def check_growth(run: Run) -> None:
    """JSON Patch can copy a state into itself: forty such lines would give a page of a terabyte."""
    changes = [step.state for step in run.steps if step.state is not None]
    operations = [operation for change in changes for operation in (*change.before, *change.after)]
    copies = sum(operation["op"] == "copy" for operation in operations)
    if copies == 0:
        return
    start = run.initial_state.size if run.initial_state else 0
    if (start + len(compact_json(operations))) << min(copies, 64) > _MAX_STATE_BYTES:
        raise RecordTooLarge("The state could grow too large by copy operations; write them as add.", field="steps")
