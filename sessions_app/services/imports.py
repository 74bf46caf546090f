"""Taking in documents of any accepted kind: recordings, batches of them, exports of other products, case files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app.core.case_file.archive import is_archive
from sessions_app.core.errors import RecordError
from sessions_app.core.formats.batch import split_batch
from sessions_app.core.formats.detect import find_parser, parser_of
from sessions_app.core.formats.not_recordings import refusal_of
from sessions_app.core.importers import langsmith_multipart
from sessions_app.core.importers.documents import read_document
from sessions_app.core.importers.formats import spans_in
from sessions_app.core.payload import JsonValue
from sessions_app.core.spans.span import Span
from sessions_app.models import Project, Run, Trace
from sessions_app.services.case_files import import_case
from sessions_app.services.ingest import ingest_batch, ingest_checked, limits
from sessions_app.services.run_store import Ingested
from sessions_app.services.spans import receive


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What a document gave."""

    items: list[Ingested]
    is_list: bool
    """Whether the document may hold several runs, also where it held one."""


def take_in(project: Project, content: bytes, content_type: str = "") -> Imported:
    """Store what a document holds.

    Raises `RecordError` naming the field, `RunConflict` when another run has an id, and `RedactionFailed`; nothing is
    stored then.
    """
    if is_archive(content):
        return Imported(items=import_case(project, content), is_list=True)
    if content_type.lower().startswith("multipart/form-data"):
        return _from_spans(project, langsmith_multipart.to_spans(content, content_type))
    document = read_document(content, limits())
    documents = split_batch(document.content, document.value)
    if documents is not None:
        return Imported(items=ingest_batch(project, documents), is_list=True)
    spans = _spans_in(document.value)
    if spans is not None:
        return _from_spans(project, spans)
    content, parse = document.content, parser_of(document.value)
    del document  # its value takes many times the room of its bytes, from which the run is read
    return Imported(items=[ingest_checked(project, content, parse)], is_list=False)


def _spans_in(value: JsonValue) -> Sequence[Span] | None:
    return spans_in(value) if find_parser(value) is None and refusal_of(value) is None else None


def _from_spans(project: Project, spans: Sequence[Span]) -> Imported:
    """Exports may come in pieces, so one that holds no span of its own run yet is fine."""
    if not spans:
        raise RecordError("The document holds no spans.")
    wanted = {span.trace_id for span in spans}
    known = set(_runs(project, wanted))
    receive(project, spans)
    made = {run.pk: (trace, run) for trace, run in sorted(_runs(project, wanted).items())}
    items = [Ingested(run=run, created=trace not in known) for trace, run in made.values()]
    return Imported(items=items, is_list=True)


def _runs(project: Project, trace_ids: set[str]) -> dict[str, Run]:
    """The runs that were made of these traces, by the trace's id."""
    traces = Trace.objects.filter(project=project, trace_id__in=trace_ids)
    found = traces.select_related("run__session", "run__project", "joined__run__session", "joined__run__project")
    return {trace.trace_id: run for trace in found if (run := trace.held_by) is not None}
