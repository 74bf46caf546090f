"""A project is managed by a key of its own: people, invitations, keys, its name."""

from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from sessions_app.models import ApiKey, Membership, Project
from sessions_app.models.projects import KeyScope
from sessions_app.services.keys import create_key, find_key
from sessions_app.services.projects import create_project
from tests.builders import make_client, make_key, make_project

pytestmark = pytest.mark.django_db
API = "/api/v1"


@pytest.fixture
def ann() -> User:
    return User.objects.create_superuser("ann", password="right")


@pytest.fixture
def shop(ann) -> Project:
    return create_project("Shop", ann)


@pytest.fixture
def api(shop, ann) -> Client:
    return make_client(create_key(project=shop, name="operations", scope=KeyScope.ADMIN, user=ann)[1])


def end_of(text: str) -> datetime:
    key = find_key(text)
    assert key is not None
    assert key.expires_at is not None
    return key.expires_at


def send(client, method, address, body=None):
    return getattr(client, method)(f"{API}/{address}", body or {}, content_type="application/json")


def test_a_first_day_by_the_api_alone(api):
    made = send(api, "post", "projects", {"name": "Support agent"}).json()
    project = make_client(made["api_key"])
    link = send(project, "post", "invitations", {"role": "viewer"}).json()
    colleague = Client()
    person = {"username": "vera", "password1": "a long sentence", "password2": "a long sentence"}

    assert colleague.post(link["url"], person)["Location"] == "/p/support-agent/"
    assert send(project, "get", "members").json()["items"] == [
        {"username": "ann", "role": "admin"},
        {"username": "vera", "role": "viewer"},
    ]
    assert send(project, "get", "invitations").json()["items"] == []
    assert send(project, "patch", "members/vera", {"role": "member"}).json()["role"] == "member"
    assert send(project, "delete", "members/vera").status_code == 204
    assert colleague.get("/p/support-agent/sessions").status_code == 404


def test_a_key_is_made_used_rotated_and_revoked(api, shop):
    made = send(api, "post", "keys", {"name": "production", "expires_in_days": 90}).json()
    assert (made["scope"], made["last_used_at"]) == ("ingest", None)
    assert end_of(made["api_key"]) - timezone.now() > timedelta(days=89)

    new = send(api, "post", f"keys/{made['key_id']}/rotate", {"overlap_hours": 0}).json()
    assert (new["name"], new["scope"]) == ("production", "ingest")
    assert ApiKey.objects.filter(pk=made["key_id"], expires_at__lte=timezone.now()).exists()
    assert end_of(new["api_key"]) - timezone.now() > timedelta(days=89)

    assert send(api, "delete", f"keys/{new['key_id']}").status_code == 204
    assert find_key(new["api_key"]) is None
    listed = send(api, "get", "keys")
    assert {key["key_id"] for key in listed.json()["items"]} == {made["key_id"], ApiKey.objects.earliest("pk").pk}
    assert new["api_key"] not in listed.content.decode()


def test_a_rotation_overlaps(api, shop):
    old, text = create_key(project=shop, name="production", scope="full")

    new = send(api, "post", f"keys/{old.pk}/rotate", {"overlap_hours": 48}).json()

    assert find_key(new["api_key"]).expires_at is None
    assert timedelta(hours=47) < end_of(text) - timezone.now() < timedelta(hours=49)


def test_a_key_is_rotated_once(api, shop):
    old, _ = create_key(project=shop, name="production", scope="full")
    send(api, "post", f"keys/{old.pk}/rotate")

    again = send(api, "post", f"keys/{old.pk}/rotate")

    assert (again.status_code, again.json()["error"]["code"]) == (409, "already_replaced")
    replaced = [key["name"] for key in send(api, "get", "keys").json()["items"] if key["replaced_at"]]
    assert replaced == ["production"]


def test_a_rotation_without_a_body_overlaps_by_a_day(api, shop):
    old, text = create_key(project=shop, name="production", scope="full")

    answer = api.post(f"/api/v1/keys/{old.pk}/rotate", content_type="application/json", data="")

    assert answer.status_code == 201, answer.content
    assert timedelta(hours=23) < end_of(text) - timezone.now() < timedelta(hours=25)


def test_a_project_is_renamed_and_keeps_its_address(api, shop):
    assert send(api, "patch", "projects/shop", {"name": " Shop two "}).json()["name"] == "Shop two"

    shop.refresh_from_db()
    assert (shop.slug, shop.name) == ("shop", "Shop two")


@pytest.mark.parametrize("body", [{"role": "root"}, {}, {"role": "viewer", "more": 1}])
def test_roles_are_those_that_there_are(api, body):
    assert send(api, "post", "invitations", body).status_code == 400


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "a\x00b"])
def test_a_name_has_something_in_it(api, name):
    assert send(api, "post", "projects", {"name": name}).status_code == 400
    assert send(api, "post", "keys", {"name": name}).status_code == 400


def test_the_last_administrator_stays(api):
    for answer in (send(api, "delete", "members/ann"), send(api, "patch", "members/ann", {"role": "viewer"})):
        assert (answer.status_code, answer.json()["error"]["code"]) == (409, "last_administrator")
    assert Membership.objects.get().role == "admin"


def test_keys_of_people_who_do_not_run_the_server_create_no_projects(shop, ann):
    bob = User.objects.create_user("bob")
    keys = [create_key(project=shop, name="k", scope=KeyScope.ADMIN, user=maker)[1] for maker in (bob, None, ann)]
    answers = [send(make_client(key), "post", "projects", {"name": "Mine"}).status_code for key in keys]
    ann.is_active = False
    ann.save()

    assert answers == [403, 403, 201]
    assert send(make_client(keys[2]), "post", "projects", {"name": "Mine"}).status_code == 403


@pytest.mark.parametrize("scope", [KeyScope.INGEST, KeyScope.FULL])
def test_other_keys_manage_nothing(scope):
    client = make_client(make_key(make_project(), scope))

    for method, address in (("get", "members"), ("get", "keys"), ("get", "invitations"), ("post", "projects")):
        answer = send(client, method, address, {"name": "x"} if method == "post" else None)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "wrong_scope")


def test_what_another_project_has_is_out_of_reach(api, ann):
    other = make_project("other")
    Membership.objects.create(project=other, user=User.objects.create_user("eve"), role="admin")
    key, _ = create_key(project=other, name="k", scope="full")

    for method, address, body in (
        ("delete", "members/eve", None),
        ("patch", "members/eve", {"role": "viewer"}),
        ("post", f"keys/{key.pk}/rotate", {}),
        ("delete", f"keys/{key.pk}", None),
        ("delete", f"keys/{2**70}", None),
        ("patch", "projects/other", {"name": "mine"}),
    ):
        assert send(api, method, address, body).status_code == 404
    assert ApiKey.objects.get(pk=key.pk).revoked_at is None
