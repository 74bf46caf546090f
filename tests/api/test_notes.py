"""Notes over the API."""

import pytest

from sessions_app.models import Note, Run
from sessions_app.services.notes import write_note
from tests.builders import make_client, make_key, make_project, make_record, make_tool_step, post_run

pytestmark = pytest.mark.django_db
NOTES = "/api/v1/runs/r/notes"


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def full(shop):
    client = make_client(make_key(shop))
    post_run(client, make_record("r", make_tool_step(result="one")))
    return client


def write(client, **body):
    return client.post(NOTES, body, content_type="application/json")


def test_a_note_is_written_listed_and_deleted(full):
    made = write(full, text="cold cache", step=1)

    note = Note.objects.get()
    expected = {
        "note_id": note.pk,
        "run_id": "r",
        "step": 1,
        "text": "cold cache",
        "author": f"API key {note.key.name}",
    }
    assert made.status_code == 201
    assert {name: made.json()[name] for name in expected} == expected
    assert full.get(NOTES).json() == {"items": [made.json()], "next_cursor": None}
    assert full.delete(f"{NOTES}/{note.pk}").status_code == 204
    assert full.get(NOTES).json()["items"] == []


@pytest.mark.parametrize(
    ("body", "field"), [({"text": " "}, "text"), ({"text": "x", "step": 2}, "step"), ({"text": "x" * 4001}, "text")]
)
def test_what_cannot_be_kept_is_refused_with_its_field(full, body, field):
    answer = write(full, **body)

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_a_key_deletes_its_own_notes_alone(full, shop):
    theirs = write_note(run=Run.objects.get(), text="of a person")
    other = make_client(make_key(shop))
    mine = write(full, text="mine").json()["note_id"]

    assert full.delete(f"{NOTES}/{theirs.pk}").json()["error"]["code"] == "not_yours"
    assert other.delete(f"{NOTES}/{mine}").status_code == 403
    assert full.delete(f"{NOTES}/{mine}9").status_code == 404
