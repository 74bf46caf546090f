"""Notes as a page shows them: each with whether the reader may delete it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sessions_app.models import Note, Project
from sessions_app.queries.access import User, has_role
from sessions_app.queries.notes import notes_of_step
from sessions_app.web.run_pages import RunPlace


@dataclass(frozen=True, kw_only=True, slots=True)
class NoteLine:
    note: Note
    may_delete: bool


def note_lines(user: User, project: Project, notes: Iterable[Note]) -> list[NoteLine]:
    listed = list(notes)
    is_admin = bool(listed) and has_role(user, project, "admin")
    return [NoteLine(note=note, may_delete=is_admin or is_own(note, user)) for note in listed]


def is_own(note: Note, user: User) -> bool:
    return note.author_id is not None and note.author_id == user.pk


def may_delete(note: Note, user: User, project: Project) -> bool:
    """Its author, and whoever looks after the project: a note may hold what should not be there."""
    return is_own(note, user) or has_role(user, project, "admin")


def notes_on_step(user: User, project: Project, place: RunPlace, step: int) -> dict[str, Any]:
    """What is written on a step, and whether the reader may write. Notes are the team's, so a shared page has none."""
    if place.token:
        return {"step_notes": [], "may_note": False}
    lines = note_lines(user, project, notes_of_step(place.run, step))
    return {"step_notes": lines, "may_note": has_role(user, project, "member")}
