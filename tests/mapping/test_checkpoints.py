"""A checkpoint that was stored and read again equals the one that was sent, model settings included."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from sessions_app.core.checkpoints import checkpoint, checkpoint_without_state, state_digest
from sessions_app.core.formats.detect import parse_document
from sessions_app.core.state import PatchError
from sessions_app.mapping.load import load_run
from sessions_app.queries.states import at_step, state_of
from sessions_app.services.ingest import ingest_document
from tests.builders import make_project, make_record, make_tool_step

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


@pytest.mark.django_db
def test_what_pages_read_of_a_checkpoint_is_the_checkpoint():
    """They read the rows of the steps, and no payload but those of one request."""
    row = ingest_document(make_project(), CANCEL.read_bytes()).run
    run = load_run(row)

    for step in range(1, len(run.steps) + 1):
        point, read = checkpoint(run, step), at_step(row, step)
        assert read.model_config == point.model_config
        assert read.messages == point.history.length
        assert [each.index for each in read.tool_calls] == [each.index for each in point.tool_calls]
        assert state_of(row).history.state_after(step) == point.state


@pytest.mark.django_db
def test_what_a_tool_asked_a_model_is_not_the_agents_history():
    def model(text, **fields):
        messages = [{"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]}]
        answer = {"kind": "response", "parts": [{"part_kind": "text", "content": "yes"}]}
        return {"kind": "model", "model": text, "request": {"messages": messages}, "response": answer, **fields}

    record = make_record("r", model("outer"), make_tool_step("ask", parent=1), model("inner", parent=2))
    row = ingest_document(make_project(), json.dumps(record).encode()).run

    point = checkpoint(load_run(row), 3)

    assert point.model_config["model"] == at_step(row, 3).model_config["model"] == "outer"
    assert point.history == checkpoint(load_run(row), 1).history


def test_a_state_that_cannot_be_rebuilt_is_an_error_unless_it_is_left_out():
    run = parse_document(CANCEL.read_bytes())
    torn = replace(run, initial_state=None)

    with pytest.raises(PatchError):
        checkpoint(torn, 2)

    assert checkpoint_without_state(torn, 2) == replace(checkpoint(run, 2), state=None)


def test_equal_states_have_equal_digests_however_they_are_spelled():
    assert state_digest({"a": 1, "b": [1]}) == state_digest({"b": [1], "a": 1})
    assert state_digest({"a": 1}) != state_digest({"a": "1"})
    assert state_digest(None) is None
