"""Live models by the API: listed without keys, connected and removed by keys that manage the project."""

import pytest

from sessions_app.models import ConnectedModel
from sessions_app.models.projects import KeyScope
from tests.builders import make_client, make_key, make_project
from tests.fake_provider import KEY

pytestmark = pytest.mark.django_db
API = "/api/v1/models"
WANTED = {"name": "GPT", "provider": "openai", "key": KEY, "requests_per_day": 20}


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def admin(shop):
    return make_client(make_key(shop, KeyScope.ADMIN))


def test_a_model_is_connected_listed_and_removed(admin, shop, settings):
    settings.REPLAY_MODEL_ENDPOINT, settings.REPLAY_MODEL_KEY = "https://models.example.org/v1", KEY
    made = admin.post(API, WANTED, content_type="application/json")
    listed = make_client(make_key(shop)).get(API)

    assert made.status_code == 201
    own = {
        "model_id": made.json()["model_id"],
        "name": "GPT",
        "source": "project",
        "provider": "openai",
        "host": "api.openai.com",
        "model": None,
        "requests_per_day": 20,
        "requests_today": 0,
        "refusal": None,
    }
    assert [each["name"] for each in listed.json()["items"]] == ["environment", "GPT"]
    assert listed.json()["items"][1] == own == made.json()
    assert KEY not in listed.content.decode() + made.content.decode()

    assert admin.delete(f"{API}/{own['model_id']}").status_code == 204
    assert admin.delete(f"{API}/{own['model_id']}").status_code == 404
    assert not ConnectedModel.objects.exists()


def test_what_is_left_out_of_a_change_stays(admin, shop):
    made = admin.post(API, WANTED, content_type="application/json").json()
    address, stored = f"{API}/{made['model_id']}", ConnectedModel.objects.get().sealed_key

    changed = admin.patch(address, {"name": "Fast", "model": "m"}, content_type="application/json")
    moved = admin.patch(address, {"provider": "anthropic"}, content_type="application/json")

    assert changed.json() == made | {"name": "Fast", "model": "m"}
    assert (moved.status_code, moved.json()["error"]["field"]) == (400, "key")
    assert ConnectedModel.objects.get().sealed_key == stored
    both = {"provider": "anthropic", "key": "another"}
    assert admin.patch(address, both, content_type="application/json").json()["host"] == "api.anthropic.com"
    assert ConnectedModel.objects.get().sealed_key != stored


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"base_url": "https://elsewhere.example/v1"}, "base_url"),
        ({"key": f"{KEY}\n é"}, "key"),
        ({"requests_per_day": 0}, "requests_per_day"),
        ({"provider": "other"}, "provider"),
        ({"name": "environment"}, "name"),
    ],
)
def test_what_cannot_be_connected_names_its_field_and_no_key(admin, said, field):
    answer = admin.post(API, WANTED | said, content_type="application/json")

    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)
    assert KEY not in answer.content.decode()


def test_models_of_another_project_are_not_there(admin):
    other = make_client(make_key(make_project("other"), KeyScope.ADMIN))
    made = other.post(API, WANTED, content_type="application/json").json()

    assert admin.get(API).json()["items"] == []
    for model_id in (made["model_id"], 2**63):
        assert admin.delete(f"{API}/{model_id}").status_code == 404
        assert admin.patch(f"{API}/{model_id}", {"name": "x"}, content_type="application/json").status_code == 404
