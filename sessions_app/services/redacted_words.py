"""What people wrote beside recordings, and what replays found out, redacted once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from django.db.models import Model

from sessions_app.core.payload import compact_json
from sessions_app.core.redaction import Redactor
from sessions_app.models import ColdCase, Golden, GoldenRun, IngestNote, Note, Project, Replay, SessionReplay
from sessions_app.services.redaction import redactor_of

_CHUNK = 200


class _Columns(NamedTuple):
    """Of one table, and how its rows are told to be of a project."""

    of_project: str
    documents: Sequence[str] = ()
    """Columns with JSON."""
    texts: Sequence[str] = ()


_COLUMNS: dict[type[Model], _Columns] = {
    Replay: _Columns("project", ("order", "course", "divergence", "facts", "stopped_at"), ("error", "fork_id")),
    SessionReplay: _Columns("project", ("order", "contradictions")),
    Golden: _Columns(
        "project",
        ("checks", "order", "fails_on", "passes_on"),
        ("description", "expected_outcome", "quarantine_reason"),
    ),
    GoldenRun: _Columns("golden__project", ("checks",), ("words",)),
    Note: _Columns("run__project", (), ("text",)),
    ColdCase: _Columns("run__project", (), ("reason",)),
    IngestNote: _Columns("project", (), ("words",)),
}


def redact_words(project: Project) -> int:
    """How many rows changed."""
    redactor, changed = redactor_of(project), 0
    for table, columns in _COLUMNS.items():
        rows: Any = table._default_manager.filter(**{columns.of_project: project})
        for row in rows.iterator(_CHUNK):
            changed += _redact_row(row, columns, redactor)
    return changed


def _redact_row(row: Model, columns: _Columns, redactor: Redactor) -> bool:
    new: dict[str, Any] = {name: _document(getattr(row, name), redactor) for name in columns.documents}
    new |= {name: _text(row, name, redactor) for name in columns.texts}
    changed = {name: value for name, value in new.items() if value != getattr(row, name)}
    if changed:
        type(row)._default_manager.filter(pk=row.pk).update(**changed)
    return bool(changed)


def _document(value: Any, redactor: Redactor) -> Any:
    return value if value is None else msgspec.json.decode(redactor.redact(compact_json(value)).content)


def _text(row: Model, name: str, redactor: Redactor) -> str | None:
    said = getattr(row, name)
    longest = getattr(row._meta.get_field(name), "max_length", None)
    return said if said is None else redactor.redact_text(said)[:longest]
