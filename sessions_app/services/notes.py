"""Writing a note on a run or a step, and deleting it."""

from __future__ import annotations

from django.contrib.auth.models import User

from sessions_app.core.errors import RecordError
from sessions_app.models import ApiKey, Note, Run

LONGEST = 4000
MOST = 500
"""On one run: more is a log and no notes."""


def write_note(
    *, run: Run, text: str, step: int | None = None, author: User | None = None, key: ApiKey | None = None
) -> Note:
    """The text is kept as it was written, without the blank space around it."""
    text = text.replace("\r\n", "\n").strip()
    if not text:
        raise RecordError("A note needs a text.", field="text")
    if len(text) > LONGEST or "\x00" in text:
        raise RecordError(f"text must be text of at most {LONGEST} characters.", field="text")
    if step is not None and not 1 <= step <= run.content.length:
        raise RecordError(f"The run has no step {step}.", field="step")
    if Note.objects.filter(run=run).count() >= MOST:
        raise RecordError(f"A run has at most {MOST} notes.")
    return Note.objects.create(run=run, step=step, text=text, author=author, key=key)
