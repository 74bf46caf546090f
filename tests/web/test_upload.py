"""A file with recordings, sent from the page."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from sessions_app.models import Run
from tests.builders import make_record, make_tool_step, row_counts
from tests.web.making import HOSTILE, client_of, make_user

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/upload"


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop))


def upload(client, content, name="run.json", **extra):
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return client.post(ADDRESS, {"file": SimpleUploadedFile(name, body), **extra})


def test_what_was_stored_is_linked(shop, ann):
    answer = upload(ann, make_record("r1", make_tool_step(result="one"), session_id="chat 1"))

    page = answer.content.decode()
    assert answer.status_code == 200
    assert "1 run in" in page
    assert 'href="/p/shop/s/chat%201?run=r1"' in page
    assert ann.get("/p/shop/s/chat%201?run=r1").status_code == 200


def test_a_file_of_several_runs_is_stored_and_the_same_again_is_said(shop, ann):
    runs = {"runs": [make_record("r1"), make_record("r2")]}
    first = upload(ann, runs).content.decode()
    again = upload(ann, runs).content.decode()

    assert "2 runs in" in first
    assert "already stored" not in first
    assert again.count("already stored") == 2
    assert Run.objects.count() == 2


@pytest.mark.parametrize(
    ("content", "status", "words"),
    [
        (make_record("r", {"kind": "guess"}), 400, "steps[0].kind"),
        (b"", 400, "run.json"),
        (b"[" * 10_000, 413, "deep"),
        (b'"' + b"x" * 30_000_000 + b'"', 413, "larger than 20971520 bytes"),
    ],
    ids=["field", "empty", "deep", "large"],
)
def test_a_refused_file_leaves_nothing_and_is_answered_in_words(ann, content, status, words):
    before = row_counts()

    answer = upload(ann, content)

    page = answer.content.decode()
    assert (answer.status_code, row_counts()) == (status, before)
    assert "Nothing was stored" in page
    assert words in page


def test_another_run_of_the_same_id_is_refused(ann):
    upload(ann, make_record("r1"))

    answer = upload(ann, make_record("r1", output="other"))

    assert answer.status_code == 409
    assert "is already stored with different content" in answer.content.decode()


def test_a_form_without_a_file_says_so(ann):
    answer = ann.post(ADDRESS, {"file": "a text"})

    assert answer.status_code == 400
    assert "Choose a file first." in answer.content.decode()


def test_the_name_of_a_file_is_text(ann):
    page = upload(ann, b"no", name=HOSTILE).content.decode()

    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_only_members_may_upload(shop):
    eve = client_of(make_user("eve", shop, "viewer"))

    assert upload(eve, make_record()).status_code == 403
    assert upload(client_of(make_user("mallory")), make_record()).status_code == 404
    assert upload(Client(), make_record()).status_code == 302
    assert not Run.objects.exists()
    assert 'type="file"' not in eve.get("/p/shop/setup").content.decode()


def test_a_form_of_another_site_is_refused(shop):
    user = make_user("ann", shop)
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)

    assert upload(client, make_record()).status_code == 403
    assert not Run.objects.exists()

    client.get("/p/shop/setup")
    token = client.cookies["csrftoken"].value
    assert upload(client, make_record(), csrfmiddlewaretoken=token).status_code == 200


def test_a_large_upload_is_refused_before_its_form_is_read(ann, settings):
    settings.REPLAY_MAX_INFLATED_BYTES = 1024
    settings.FILE_UPLOAD_HANDLERS = ["tests.web.test_upload.no_such_handler"]

    assert upload(ann, b"x" * 100_000).status_code == 413
    with pytest.raises(ImportError):
        upload(ann, b"x")
