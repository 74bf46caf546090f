"""What a run was asked and what came of it, read from its header: as many queries whatever the run holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sessions_app import models
from sessions_app.core.formats.fields import Fields
from sessions_app.core.formats.native_steps import read_error, read_payload
from sessions_app.core.packed_nodes import Reference
from sessions_app.core.payload import Payload
from sessions_app.core.run import ErrorInfo
from sessions_app.mapping.references import read_references_of
from sessions_app.mapping.stored import long_text, reference
from sessions_app.queries.steps import StoredOrGone


@dataclass(frozen=True, kw_only=True, slots=True)
class RunEnds:
    """None is "not captured"; bytes that are no longer stored are a `GonePayload`."""

    input: Payload | None
    output: Payload | None
    error: ErrorInfo | None
    instructions: str | None


def ends_of(run: models.Run) -> RunEnds:
    return ends_of_all([run])[0]


def ends_of_all(runs: Sequence[models.Run]) -> list[RunEnds]:
    """Of runs of one project, in as many queries as for one; their contents must have been selected."""
    headers = [Fields(run.content.intact_header) for run in runs]
    contents = [(run.content, _named(fields)) for run, fields in zip(runs, headers, strict=True)]
    found = read_references_of(contents) if contents else []
    return [_ends(fields, StoredOrGone(each)) for fields, each in zip(headers, found, strict=True)]


def _named(fields: Fields) -> set[Reference]:
    slices = (fields.slice("input"), fields.slice("output"), long_text(fields, "instructions"))
    return {reference(slice_)[0] for slice_ in slices if slice_ is not None}


def _ends(fields: Fields, resolver: StoredOrGone) -> RunEnds:
    return RunEnds(
        input=read_payload(fields, "input", resolver),
        output=read_payload(fields, "output", resolver),
        error=read_error(fields, "error"),
        instructions=resolver.text(fields, "instructions"),
    )
