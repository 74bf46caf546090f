"""A key that expired or was revoked opens nothing, and whoever still sends it is told so at every door."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from sessions_app.models import ApiKey, Run
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import create_key, revoke_key
from tests.builders import make_key, make_project, make_record

pytestmark = pytest.mark.django_db
ANSWERS = {
    "me": lambda client: client.get("/api/v1/me"),
    "runs": lambda client: client.get("/api/v1/runs"),
    "members": lambda client: client.get("/api/v1/members"),
    "record": lambda client: client.post("/api/v1/runs", make_record("r"), content_type="application/json"),
    "spans": lambda client: client.post("/v1/traces", "{}", content_type="application/json"),
    "mcp": lambda client: client.post("/mcp", "{}", content_type="application/json"),
}


@pytest.fixture
def expired() -> str:
    ended = timezone.now() - timedelta(seconds=1)
    return create_key(project=make_project(), name="ci", scope=KeyScope.ADMIN, expires_at=ended)[1]


def with_key(text: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {text}"})


@pytest.mark.parametrize("door", ANSWERS)
def test_an_expired_key_is_refused_in_words(door, expired):
    answer = ANSWERS[door](with_key(expired))

    ended = ApiKey.objects.get().expires_at
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, "Bearer")
    assert f"expired on {ended:%Y-%m-%d %H:%M} UTC" in answer.content.decode()
    assert not Run.objects.exists()


@pytest.mark.parametrize("door", ANSWERS)
def test_a_revoked_key_is_refused_in_words(door):
    text = make_key(make_project())
    revoke_key(ApiKey.objects.get())

    answer = ANSWERS[door](with_key(text))

    assert answer.status_code == 401
    assert "was revoked on 20" in answer.content.decode()


@pytest.mark.parametrize("door", ANSWERS)
def test_what_never_was_a_key_is_told_nothing_of_keys(door, expired):
    answer = ANSWERS[door](with_key(expired[:-1]))

    assert answer.status_code == 401
    assert "expired" not in answer.content.decode()
