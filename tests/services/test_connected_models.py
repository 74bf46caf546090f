"""Models that a project connects: what is kept, who may be asked, and how often."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from sessions_app.agents.live_model.endpoint import ModelUnavailable
from sessions_app.models import ConnectedModel, Project
from sessions_app.services.connected_models import (
    CannotConnect,
    Connection,
    change,
    connect,
    connection_of,
    describe,
    try_out,
)
from sessions_app.services.live_models import live_model, live_models, spend
from tests.builders import make_project
from tests.fake_provider import KEY, fake_provider, message, of_json, says

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture(autouse=True)
def hosts(settings):
    settings.REPLAY_MODEL_HOSTS = ["api.openai.com", "api.anthropic.com", "*.models.example", "127.0.0.1:*"]
    settings.REPLAY_MODEL_ALLOW_PRIVATE = True


def make_model(project: Project, **fields: object) -> ConnectedModel:
    said = {"name": "GPT", "provider": "openai", "key": KEY, **fields}
    return connect(project, Connection(**said))  # type: ignore[arg-type]  # as a test says them


def test_the_key_is_nowhere_in_the_database_and_the_endpoint_has_it(shop):
    row = make_model(shop)

    with connection.cursor() as cursor:
        cursor.execute("SELECT row_to_json(t)::text FROM sessions_app_connectedmodel t")
        [(stored,)] = cursor.fetchall()
    assert KEY not in stored
    assert live_model(shop, "GPT").endpoint().key == KEY
    assert KEY not in repr(row) + repr(live_model(shop, "GPT")) + repr(live_model(shop, "GPT").endpoint())


def test_another_secret_of_the_server_opens_no_key(shop, settings):
    make_model(shop)
    settings.SECRET_KEY = "another"

    with pytest.raises(ModelUnavailable, match="stored under another SECRET_KEY"):
        live_model(shop, "GPT").endpoint()


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "environment"}, "name"),
        ({"name": "a\x00b"}, "name"),
        ({"provider": "other"}, "provider"),
        ({"key": ""}, "key"),
        ({"key": "sk-é"}, "key"),
        ({"key": "two\nlines"}, "key"),
        ({"provider": "openai-compatible"}, "base_url"),
        ({"base_url": "ftp://api.openai.com/v1"}, "base_url"),
        ({"base_url": "https://elsewhere.example/v1"}, "base_url"),
        ({"base_url": "https://api.openai.com:8443/v1"}, "base_url"),
        ({"base_url": "https://api.openai.com/v1?key=sk-1"}, "base_url"),
        ({"base_url": "https://user:word@api.openai.com/v1"}, "base_url"),
        ({"base_url": "https://models.example/v1"}, "base_url"),
        ({"requests_per_day": 0}, "requests_per_day"),
        ({"model": "m\nn"}, "model"),
    ],
)
def test_what_cannot_be_connected_is_refused_at_its_field(shop, said, field):
    with pytest.raises(CannotConnect) as refused:
        make_model(shop, **said)

    assert refused.value.field == field
    assert KEY not in str(refused.value)
    assert not ConnectedModel.objects.exists()


def test_a_name_is_used_once_a_project(shop):
    make_model(shop)
    make_model(make_project("other"))

    with pytest.raises(CannotConnect, match="already connected"):
        make_model(shop)


def test_a_change_keeps_the_key_and_what_was_sent_today(shop):
    row = make_model(shop)
    spend(ConnectedModel.objects.get())

    change(row, replace(connection_of(row), name="Fast", model="gpt-4o-mini", requests_per_day=7))

    changed = ConnectedModel.objects.get()
    assert (changed.name, changed.model, changed.requests_per_day) == ("Fast", "gpt-4o-mini", 7)
    assert (changed.sent_today, live_model(shop, "Fast").endpoint().key) == (1, KEY)
    change(row, replace(connection_of(row), key="another"))
    assert live_model(shop, "Fast").endpoint().key == "another"


@pytest.mark.parametrize(
    "said",
    [
        {"base_url": "https://eu.models.example/v1"},
        {"base_url": "http://api.openai.com/v1"},
        {"base_url": "https://api.openai.com:8443/v1"},
        {"provider": "anthropic"},
    ],
)
def test_a_stored_key_never_goes_to_another_host(shop, settings, said):
    settings.REPLAY_MODEL_HOSTS += ["api.openai.com:*"]
    row = make_model(shop)

    with pytest.raises(CannotConnect, match="for another host") as refused:
        change(row, replace(connection_of(row), **said))

    assert refused.value.field == "key"
    assert live_model(shop, "GPT").host == "api.openai.com"
    change(row, replace(connection_of(row), **said, key="another"))
    assert live_model(shop, "GPT").endpoint().key == "another"


def test_a_model_takes_no_name_that_another_has(shop):
    make_model(shop)
    row = make_model(shop, name="Other")

    with pytest.raises(CannotConnect, match="already connected"):
        change(row, replace(connection_of(row), name="GPT"))


def test_a_host_that_is_no_longer_allowed_is_not_asked(shop, settings):
    make_model(shop, provider="openai-compatible", base_url="https://eu.models.example/v1")
    assert live_model(shop, "GPT").host == "eu.models.example"

    settings.REPLAY_MODEL_HOSTS = ["api.openai.com"]

    with pytest.raises(ModelUnavailable, match="REPLAY_MODEL_HOSTS"):
        live_model(shop, "GPT")
    with pytest.raises(ModelUnavailable, match="REPLAY_MODEL_HOSTS"):
        live_models(shop)[0].endpoint()


def test_who_is_asked_without_a_name(shop, settings):
    with pytest.raises(ModelUnavailable, match="No live model is connected"):
        live_model(shop, None)
    make_model(shop)
    assert live_model(shop, None).name == "GPT"
    make_model(shop, name="Claude", provider="anthropic")
    with pytest.raises(ModelUnavailable, match="name the one to ask: Claude, GPT"):
        live_model(shop, None)

    settings.REPLAY_MODEL_ENDPOINT = "https://models.example.org/v1"

    assert live_model(shop, None).name == "environment"
    assert [each.name for each in live_models(shop)] == ["environment", "Claude", "GPT"]


def test_models_of_another_project_are_not_asked(shop):
    make_model(make_project("other"))

    with pytest.raises(ModelUnavailable, match="No live model 'GPT'"):
        live_model(shop, "GPT")


def test_a_budget_is_spent_by_request_and_begins_anew_each_day(shop):
    row = make_model(shop, requests_per_day=2)
    spend(row)
    spend(row)

    with pytest.raises(ModelUnavailable, match=r"budget of GPT for today \(2 requests\) is spent"):
        spend(row)
    with pytest.raises(ModelUnavailable, match="is spent"):
        live_model(shop, "GPT")

    ConnectedModel.objects.update(sent_on=timezone.now().date() - timedelta(days=1))
    spend(row)
    assert live_model(shop, "GPT").left_today == 1


def test_a_model_that_was_removed_takes_no_requests(shop):
    row = make_model(shop)
    ConnectedModel.objects.all().delete()

    with pytest.raises(ModelUnavailable, match="no longer connected"):
        spend(row)


@pytest.mark.parametrize(
    ("provider", "answer", "words"),
    [
        ("openai-compatible", says("ok"), "GPT answered as fake-1 in "),
        ("anthropic", message({"type": "text", "text": "ok"}), "GPT answered as claude-fake-1 in "),
    ],
)
def test_a_connection_is_tried_and_counted(shop, provider, answer, words):
    with fake_provider(answer) as server:
        row = make_model(shop, provider=provider, base_url=server.url, model="m")

        assert try_out(row).startswith(words)
        assert server.bodies[0]["model"] == "m"
    row.refresh_from_db()
    assert row.sent_today == 1


def test_a_connection_is_tried_before_it_is_stored(shop):
    row = ConnectedModel(project=shop)
    with fake_provider(says("ok")) as server:
        said = Connection(name="GPT", provider="openai", base_url=server.url, model="m", key=KEY)
        describe(row, said)

        assert try_out(row).startswith("GPT answered as fake-1 in ")
    assert not ConnectedModel.objects.exists()


def test_a_connection_that_fails_says_why(shop):
    with fake_provider(of_json({"error": {"code": "invalid_api_key", "message": KEY}}, status=401)) as server:
        row = make_model(shop, base_url=server.url)
        with pytest.raises(ModelUnavailable) as refused:
            try_out(row, "m")

    assert refused.value.reason == "It refused the key (401: invalid api key)."
