"""A checkpoint that was stored and read again equals the one that was sent, model settings included."""

from pathlib import Path

import pytest

from sessions_app.core.checkpoints import checkpoint
from sessions_app.core.formats.detect import parse_document
from sessions_app.mapping.load import load_run
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project

CANCEL = Path("sessions_app/examples/cancel_bug.json")


@pytest.mark.django_db
def test_checkpoint_survives_the_store():
    sent = parse_document(CANCEL.read_bytes())

    stored = load_run(ingest_document(make_project(), CANCEL.read_bytes()).run)

    for step in range(1, len(sent.steps) + 1):
        assert checkpoint(stored, step) == checkpoint(sent, step)
    assert checkpoint(stored, 3).model_config["settings"]["temperature"] is not None
    assert checkpoint(stored, 2) != checkpoint(stored, 4)


def test_checkpoint_of_no_step_is_an_error():
    run = parse_document(CANCEL.read_bytes())

    with pytest.raises(IndexError):
        checkpoint(run, len(run.steps) + 1)
