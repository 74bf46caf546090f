"""The key and its project, the server, its agents."""

import tomllib

import pytest

from replay_web.supervisor.home import PROJECT_ROOT
from sessions_app.models import ApiKey
from sessions_app.models.projects import KeyScope
from tests.builders import make_client, make_key, make_project, project_client

pytestmark = pytest.mark.django_db


def test_a_key_is_told_what_it_is_and_never_the_key_itself():
    text = make_key(make_project(), KeyScope.INGEST)

    answer = make_client(text).get("/api/v1/me")

    key = ApiKey.objects.get()
    assert answer.json() == {
        "key": {
            "name": "test",
            "prefix": text[:12],
            "scope": "ingest",
            "created_at": key.created_at.isoformat(timespec="microseconds"),
            "expires_at": None,
        },
        "project": {
            "project": "shop",
            "name": "Shop",
            "created_at": key.project.created_at.isoformat(timespec="microseconds"),
        },
    }
    assert text not in answer.content.decode()


def test_a_key_sees_its_own_project_alone():
    make_project("other")

    assert [item["project"] for item in project_client().get("/api/v1/projects").json()["items"]] == ["shop"]


def test_the_version_is_that_of_the_project():
    version = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text())["project"]["version"]

    assert project_client().get("/api/v1/version").json() == {"version": version, "api": "1"}


def test_agents_are_named_and_their_places_are_not(settings):
    settings.REPLAY_AGENTS = {"b": "shop.secret_place:agent", "a": "shop.secret_place:other"}

    answer = project_client().get("/api/v1/agents")

    assert answer.json() == {"items": [{"name": "a"}, {"name": "b"}], "next_cursor": None}
