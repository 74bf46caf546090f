"""What was recorded of runs, redacted once more and stored in the place of what it was."""

from __future__ import annotations

from dataclasses import replace

from sessions_app.core.errors import PayloadMissing
from sessions_app.core.formats.native import encode_native, parse_native
from sessions_app.core.json_text import Limits
from sessions_app.core.redaction import Redactor
from sessions_app.core.run import Run
from sessions_app.mapping.load import load_content
from sessions_app.mapping.payloads import doom, read_many
from sessions_app.mapping.references import stored_apart
from sessions_app.models import Replay, RunContent, Trace
from sessions_app.models import Run as Row
from sessions_app.services.redaction import redactor_of
from sessions_app.services.run_store import lock_name, rewrite, rewrite_content


def name_of(row: Trace | RunContent) -> str:
    if isinstance(row, Trace):
        return row.trace_id
    run = _run_of(row)
    return run.run_id if run else f"content {row.pk}"


def redact_content(content: RunContent) -> bool:
    """Whether something changed. What goes on from one that was replaced is written anew too, so that it can go.

    Raises `ReplayProductError` where it cannot be read, or not any more with what was taken out.
    """
    row, replays = _run_of(content), Replay.objects.filter(content=content)
    if row is None and not replays.exists():
        return False  # nothing but others go on from it
    if row is not None:
        lock_name(content.project, row.run_id)
    redactor = redactor_of(content.project)
    source = _source(row)
    redacted_source = None if source is None else redactor.redact(source).content
    run = _redacted(load_content(content), redactor)
    if run is None and redacted_source == source and not _goes_on_from_replaced(content):
        return False
    run = run or load_content(content)
    doom(content.project_id, {*stored_apart(content), *([row.document] if row and row.document else [])})
    if row is not None:
        rewrite(row, run, source=redacted_source)
        replacement = row.content
    else:
        replacement = rewrite_content(content, run)
    replays.update(content=replacement)
    return True


def _run_of(content: RunContent) -> Row | None:
    return getattr(content, "run", None)


def _source(row: Row | None) -> bytes | None:
    if row is None or not row.document:
        return None
    found = read_many(row.project_id, [row.document])
    if not found:
        raise PayloadMissing(row.document)
    return found[row.document]


def _redacted(run: Run, redactor: Redactor) -> Run | None:
    """None where nothing is taken out."""
    record = redactor.redact(encode_native(run))
    if not record.counts:
        return None
    limits = Limits(max_bytes=len(record.content), max_steps=len(run.steps), max_messages=len(record.content))
    return replace(parse_native(record.content, limits), origin=run.origin)


def _goes_on_from_replaced(content: RunContent) -> bool:
    bases = [part.content for part in content.parts[:-1]]
    return RunContent.objects.filter(pk__in=bases, released_at__isnull=False).exists()
