"""Notes on a run and its steps."""

from __future__ import annotations

from django.http import HttpRequest
from ninja import Router, Status

from sessions_app.api.auth import FullKeyHolder, key_of
from sessions_app.api.errors import Refused, not_found
from sessions_app.api.runs import find_run
from sessions_app.api.schemas import ErrorAnswer, NoteBody, NoteList, NoteRequest
from sessions_app.api.shapes import note_body
from sessions_app.core.payload import JsonObject
from sessions_app.queries.notes import notes_of_run
from sessions_app.services.notes import write_note

router = Router(auth=FullKeyHolder(), tags=["notes"])


@router.get("/runs/{path:run_id}/notes", response={200: NoteList})
def list_notes(request: HttpRequest, run_id: str) -> JsonObject:
    """List the notes on the run and its steps, oldest first. A run has at most 500."""
    return {"items": list(map(note_body, notes_of_run(find_run(request, run_id)))), "next_cursor": None}


@router.post("/runs/{path:run_id}/notes", response={201: NoteBody})
def post_note(request: HttpRequest, run_id: str, wanted: NoteRequest) -> Status[JsonObject]:
    """Add a note to the run, or to one of its steps. It is signed with the key's name."""
    note = write_note(run=find_run(request, run_id), text=wanted.text, step=wanted.step, key=key_of(request))
    return Status(201, note_body(note))


@router.delete("/runs/{path:run_id}/notes/{int:note_id}", response={204: None, 403: ErrorAnswer})
def delete_note(request: HttpRequest, run_id: str, note_id: int) -> Status[None]:
    """Delete a note that this key wrote. Notes by people and other keys are refused with 403."""
    note = notes_of_run(find_run(request, run_id)).filter(pk=note_id).first()
    if note is None:
        raise not_found("note")
    if note.key_id != key_of(request).pk:
        raise Refused(403, "not_yours", "This note was not written with this key.")
    note.delete()
    return Status(204, None)
