"""Keys are shown once and stored as a hash."""

import hashlib

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import ApiKey
from sessions_app.models.projects import KeyScope
from sessions_app.services import keys
from sessions_app.services.keys import create_key, find_key, recent_key, revoke_key
from tests.builders import all_stored_bytes, make_project

pytestmark = pytest.mark.django_db


def test_a_key_is_stored_as_its_hash_alone():
    key, text = create_key(project=make_project(), name="marker-of-the-name", scope=KeyScope.FULL)

    stored = [value for _, value in all_stored_bytes()]
    assert not [value for value in stored if text.encode() in value or text[12:].encode() in value]
    assert [value for value in stored if b"marker-of-the-name" in value]
    assert bytes(key.digest) == hashlib.sha256(text.encode()).digest()
    assert len(text) == 4 + 43
    assert text.startswith(key.prefix)


def test_a_key_is_found_by_its_text_until_it_is_revoked():
    key, text = create_key(project=make_project(), name="x", scope=KeyScope.INGEST)

    assert find_key(text) == key
    assert [find_key(wrong) for wrong in (text[:-1], text + " ", text.upper(), "", "é", key.prefix)] == [None] * 6
    revoke_key(key)
    assert find_key(text) is None


def test_a_key_that_was_just_found_is_not_asked_for_again():
    key, text = create_key(project=make_project(), name="x", scope=KeyScope.INGEST)
    find_key(text)

    with CaptureQueriesContext(connection) as asked:
        found = [recent_key(text) for _ in range(3)]

    assert (found, found[0].project, len(asked)) == ([key] * 3, key.project, 1)
    assert recent_key(text + "x") is None
    revoke_key(key)
    assert recent_key(text) is None


def test_a_key_that_another_process_revoked_is_believed_for_a_second(monkeypatch):
    key, text = create_key(project=make_project(), name="x", scope=KeyScope.INGEST)
    clock = [100.0]
    monkeypatch.setattr(keys, "monotonic", lambda: clock[0])
    assert recent_key(text) == key
    ApiKey.objects.update(revoked_at=key.created_at)

    clock[0] += 0.9
    assert recent_key(text) == key
    clock[0] += 0.1
    assert recent_key(text) is None


def test_keys_differ():
    project = make_project()

    assert len({create_key(project=project, name="x", scope=KeyScope.FULL)[1] for _ in range(20)}) == 20


def test_use_is_noted_once_a_minute():
    key, text = create_key(project=make_project(), name="x", scope=KeyScope.FULL)
    find_key(text)
    with CaptureQueriesContext(connection) as queries:
        find_key(text)

    assert len(queries) == 1
    assert ApiKey.objects.get(pk=key.pk).last_used_at is not None
