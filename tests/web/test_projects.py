"""Projects, who belongs to them and by which link, and the keys that open them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import ApiKey, Invitation, Membership, Project
from sessions_app.services.keys import create_key, find_key
from sessions_app.services.projects import create_project, invite
from tests.web.making import HOSTILE, client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
SETTINGS = "/p/shop/settings"


@pytest.fixture
def ann(shop) -> Client:
    return client_of(make_user("ann", shop, "admin"))


def member(name: str) -> Membership:
    return Membership.objects.get(user__username=name)


# --- projects ----------------------------------------------------------------------------------


def test_an_administrator_of_the_server_makes_projects():
    root = client_of(User.objects.create_superuser("root", password="right"))
    assert "Create the first project" in root.get("/find").content.decode()

    answers = [root.post("/projects/new", {"name": "Support agent"}) for _ in range(2)]

    slugs = [match("/p/([^/]+)/setup", answer["Location"]) for answer in answers]
    assert slugs[0] == "support-agent"
    assert slugs[1] != slugs[0]
    assert slugs[1].startswith("support-agent-")
    assert [row.role for row in Membership.objects.filter(user__username="root")] == ["admin", "admin"]
    assert root.get(f"/p/{slugs[0]}/setup").status_code == 200


@pytest.mark.parametrize("name", ["  ", "x" * 121])
def test_a_project_needs_a_name(name):
    root = client_of(User.objects.create_superuser("root", password="right"))

    assert root.post("/projects/new", {"name": name}).status_code == 422
    assert not Project.objects.exists()


def test_a_name_without_letters_gets_a_slug_too():
    assert create_project("客服", make_user("root")).slug == "project"


def test_others_make_no_projects(ann):
    assert ann.get("/projects/new").status_code == 403
    assert ann.post("/projects/new", {"name": "Mine"}).status_code == 403
    assert "New project" not in ann.get(SETTINGS).content.decode()


def test_a_project_is_renamed_and_keeps_its_address(shop, ann):
    assert ann.post(f"{SETTINGS}/name", {"name": HOSTILE}).status_code == 302

    shop.refresh_from_db()
    assert (shop.slug, shop.name) == ("shop", HOSTILE.strip())
    assert "<script>alert" not in ann.get(SETTINGS).content.decode()
    assert ann.post(f"{SETTINGS}/name", {"name": ""}).status_code == 422


# --- members -----------------------------------------------------------------------------------


def test_roles_are_changed_and_members_removed(shop, ann):
    bob = client_of(make_user("bob", shop, "viewer"))
    assert bob.post("/p/shop/setup/keys", {"name": "x", "scope": "full"}).status_code == 403

    ann.post(f"{SETTINGS}/members/{member('bob').pk}/role", {"role": "member"})
    assert bob.post("/p/shop/setup/keys", {"name": "x", "scope": "full"}).status_code == 200

    ann.post(f"{SETTINGS}/members/{member('bob').pk}/remove")
    assert bob.get("/p/shop/sessions").status_code == 404


def test_the_last_administrator_stays(shop, ann):
    last = member("ann").pk

    for answer in (
        ann.post(f"{SETTINGS}/members/{last}/remove"),
        ann.post(f"{SETTINGS}/members/{last}/role", {"role": "viewer"}),
    ):
        assert answer.status_code == 409
        assert "A project needs an administrator" in answer.content.decode()
    assert member("ann").role == "admin"

    make_user("bob", shop, "admin")
    assert ann.post(f"{SETTINGS}/members/{last}/remove").status_code == 302


def test_what_would_be_refused_is_not_offered_for_the_last_administrator(shop, ann):
    make_user("bob", shop, "member")
    own, of_bob = (f"members/{member(name).pk}/" for name in ("ann", "bob"))

    page = ann.get(SETTINGS).content.decode()
    assert own not in page
    assert "the only administrator" in page
    assert page.count(of_bob) == 2

    ann.post(f"{SETTINGS}/{of_bob}role", {"role": "admin"})
    page = ann.get(SETTINGS).content.decode()
    assert page.count(own) == 2
    assert "the only one" not in page


def test_a_member_of_another_project_is_out_of_reach(shop, ann):
    other = make_project("other")
    make_user("eve", other, "viewer")
    invitation, _ = invite(other, "admin", None)
    key, _ = create_key(project=other, name="k", scope="full")

    for address in (
        f"members/{member('eve').pk}/remove",
        f"members/{member('eve').pk}/role",
        f"invitations/{invitation.pk}/take-back",
        f"keys/{key.pk}/revoke",
        f"keys/{key.pk}/rotate",
    ):
        assert ann.post(f"{SETTINGS}/{address}", {"role": "admin"}).status_code == 404
    assert (member("eve").role, Invitation.objects.count()) == ("viewer", 1)
    assert ApiKey.objects.get().revoked_at is None


@pytest.mark.parametrize("role", ["viewer", "member"])
def test_only_administrators_decide_who_belongs(shop, ann, role):
    bob = client_of(make_user("bob", shop, role))

    assert bob.post(f"{SETTINGS}/members/{member('ann').pk}/remove").status_code == 403
    assert bob.post(f"{SETTINGS}/invitations", {"role": "admin"}).status_code == 403
    assert bob.post(f"{SETTINGS}/name", {"name": "x"}).status_code == 403
    page = bob.get(SETTINGS).content.decode()
    assert "ann" in page
    assert "Create a link" not in page


# --- invitations -------------------------------------------------------------------------------


def invited(ann: Client, role: str = "viewer") -> str:
    page = ann.post(f"{SETTINGS}/invitations", {"role": role}).content.decode()
    return match(r'id="new-link">http://testserver(/invitations/[\w-]+)<', page)


NEW = {"username": "carol", "password1": "a long sentence", "password2": "a long sentence"}


def test_a_colleague_makes_an_account_and_joins(ann):
    address = invited(ann)
    carol = Client()
    assert "ann invites you as viewer" in carol.get(address).content.decode().replace("\n", " ")

    answer = carol.post(address, NEW)

    assert answer["Location"] == "/p/shop/"
    assert member("carol").role == "viewer"
    assert carol.get("/p/shop/sessions").status_code == 200
    assert Client().get(address).status_code == 404
    assert Client().post(address, {**NEW, "username": "dave"}).status_code == 404
    assert not User.objects.filter(username="dave").exists()


WRONG = [
    {"username": "ann"},
    {"username": ""},
    {"password2": "another sentence"},
    {"password1": "short", "password2": "short"},
]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_account_that_cannot_be_made_leaves_the_invitation_open(ann, wrong):
    address = invited(ann)

    assert Client().post(address, {**NEW, **wrong}).status_code == 422
    assert Client().post(address, NEW).status_code == 302


def test_who_has_an_account_joins_by_a_click(ann):
    address = invited(ann, "member")
    bob = client_of(make_user("bob"))

    assert "Join as bob" in bob.get(address).content.decode()
    assert not Membership.objects.filter(user__username="bob").exists()
    assert bob.post(address)["Location"] == "/p/shop/"
    assert member("bob").role == "member"


def test_who_belongs_already_keeps_the_role_and_leaves_the_link(ann):
    address = invited(ann, "viewer")

    assert ann.post(address)["Location"] == "/p/shop/"
    assert member("ann").role == "admin"
    assert Client().get(address).status_code == 200


def test_an_invitation_is_taken_back_or_ends(ann):
    first, second = invited(ann), invited(ann)
    newest = Invitation.objects.latest("pk")

    ann.post(f"{SETTINGS}/invitations/{newest.pk}/take-back")
    assert [Client().get(address).status_code for address in (first, second)] == [200, 404]

    Invitation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert Client().get(first).status_code == 404
    assert Client().get("/invitations/" + "\u00e9" * 9).status_code == 404


# --- keys --------------------------------------------------------------------------------------


def test_a_key_is_replaced_with_an_overlap(shop, ann):
    old, text = create_key(project=shop, name="production", scope="ingest")

    page = ann.post(f"{SETTINGS}/keys/{old.pk}/rotate").content.decode()

    new = match(r'id="new-key">(rpk_[\w-]+)<', page)
    assert (find_key(new).name, find_key(new).scope) == ("production", "ingest")
    assert find_key(text) is not None
    ApiKey.objects.filter(pk=old.pk).update(expires_at=timezone.now() - timedelta(hours=1))
    assert find_key(text) is None
    assert new not in ann.get(SETTINGS).content.decode()


@pytest.mark.parametrize(("days", "words"), [(90, "works until"), (-1, "expired")])
def test_a_key_with_an_end_is_replaced_too(shop, ann, days, words):
    """And no day is promised to one that has less."""
    soon = timezone.now() + timedelta(days=days)
    old, _ = create_key(project=shop, name="production", scope="ingest", expires_at=soon)
    address = f"{SETTINGS}/keys/{old.pk}/rotate"
    assert address in ann.get(SETTINGS).content.decode()

    page = ann.post(address).content.decode()

    assert f"The old one {words} " in page
    assert "rpk_" in page


def test_a_key_is_replaced_once(shop, ann):
    old, _ = create_key(project=shop, name="production", scope="ingest")
    address = f"{SETTINGS}/keys/{old.pk}/rotate"
    ann.post(address)

    page, again = ann.get(SETTINGS).content.decode(), ann.post(address)

    assert "replaced, expires " in page
    assert address not in page
    assert (again.status_code, "was replaced before. Replace the newer one." in again.content.decode()) == (409, True)
    assert ApiKey.objects.filter(name="production").count() == 2
    assert ApiKey.objects.latest("pk").expires_at is None


def test_a_key_is_revoked_at_once(shop, ann):
    key, text = create_key(project=shop, name="production", scope="ingest")

    assert ann.post(f"{SETTINGS}/keys/{key.pk}/revoke").status_code == 302

    assert find_key(text) is None
    assert "production" not in ann.get(SETTINGS).content.decode().split("</main>")[0].split("Keys")[-1]


def test_an_expired_key_is_shown_as_expired_for_a_month(shop, ann):
    key, _ = create_key(project=shop, name="production", scope="ingest", expires_at=timezone.now())

    assert "expired" in ann.get(SETTINGS).content.decode().partition("production")[2]
    assert "in use" not in ann.get("/p/shop/setup").content.decode()
    ApiKey.objects.filter(pk=key.pk).update(expires_at=timezone.now() - timedelta(days=31))
    assert "production" not in ann.get(SETTINGS).content.decode()


def test_viewers_see_keys_and_touch_none(shop):
    key, text = create_key(project=shop, name="production", scope="ingest")
    eve = client_of(make_user("eve", shop, "viewer"))

    assert "production" in eve.get(SETTINGS).content.decode()
    assert eve.post(f"{SETTINGS}/keys/{key.pk}/revoke").status_code == 403
    assert find_key(text) is not None


def test_a_key_that_manages_the_project_is_for_its_administrators(shop, ann):
    key, text = create_key(project=shop, name="operations", scope="admin")
    bob = client_of(make_user("bob", shop, "member"))
    wanted = {"name": "mine", "scope": "admin", "days": ""}

    for do in ("rotate", "revoke"):
        assert bob.post(f"{SETTINGS}/keys/{key.pk}/{do}").status_code == 403
    assert bob.post("/p/shop/setup/keys", wanted).status_code == 403
    assert "also manages the project" not in bob.get("/p/shop/setup").content.decode()
    assert (find_key(text), ApiKey.objects.count()) == (key, 1)
    assert ann.post("/p/shop/setup/keys", wanted).status_code == 200
    assert ann.post(f"{SETTINGS}/keys/{key.pk}/revoke").status_code == 302


def test_a_key_may_end_by_itself(ann):
    page = ann.post("/p/shop/setup/keys", {"name": "ci", "scope": "ingest", "days": "30"}).content.decode()

    assert "It expires" in page
    month = [timezone.now() + timedelta(days=days) for days in (29, 31)]
    assert ApiKey.objects.filter(expires_at__range=month).count() == 1
    assert ann.post("/p/shop/setup/keys", {"name": "ci", "scope": "ingest", "days": "0"}).status_code == 422


def test_whoever_belongs_to_no_project_finds_a_way_into_one(shop, ann):
    User.objects.create_superuser("root")
    vera = client_of(make_user("vera"))
    address = invited(ann, "viewer")

    page = vera.get("/find").content.decode()
    assert "Paste an invitation link" in page
    assert "on this server, root can do so" in page
    assert vera.get("/find", {"q": f"http://testserver{address}"})["Location"] == address
    assert vera.post(address)["Location"] == "/p/shop/"


def test_home_is_the_project_where_something_arrived_last(shop, ann):
    mine = create_project("Mine", User.objects.get(username="ann"))
    assert ann.get("/")["Location"] == "/find"
    make_session(shop, "first")
    assert ann.get("/")["Location"] == "/p/shop/"
    make_session(mine, "second")
    assert ann.get("/")["Location"] == "/p/mine/"


def test_the_page_asks_as_often_whatever_it_lists(shop, ann, django_assert_max_num_queries):
    for number in range(20):
        make_user(f"user-{number}", shop)
        invite(shop, "viewer", None)
        create_key(project=shop, name=f"k{number}", scope="full")

    with django_assert_max_num_queries(16):
        assert ann.get(reverse("project_settings", args=["shop"])).status_code == 200
