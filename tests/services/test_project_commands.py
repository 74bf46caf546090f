"""Projects, members and keys from the command line."""

import re

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

from replay_web.supervisor.home import Home
from sessions_app.models import ApiKey, Invitation, Membership, Project
from sessions_app.services.bootstrap import prepare_home
from sessions_app.services.keys import find_key
from tests.builders import make_client
from tests.web.making import make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def say(capsys):
    def said(*words: str) -> str:
        call_command(*words)
        return str(capsys.readouterr().out).strip()

    return said


@pytest.fixture
def shop() -> Project:
    User.objects.create_superuser("ann")
    call_command("projects", "create", "Shop", "--administrator", "ann")
    return Project.objects.get()


def test_a_project_is_created_renamed_and_listed(shop, say):
    assert say("projects", "rename", "shop", "The shop") == "shop\tThe shop"
    assert say("projects") == "shop\tThe shop"
    assert Membership.objects.get().role == "admin"


def test_a_colleague_is_invited_promoted_and_removed(shop, say):
    link = say("members", "shop", "invite", "--role", "viewer", "--url", "http://testserver/")
    person = {"username": "vera", "password1": "a long sentence", "password2": "a long sentence"}

    assert Client().post(link, person)["Location"] == "/p/shop/"
    assert say("members", "shop") == "ann\tadmin\nvera\tviewer"
    assert say("members", "shop", "role", "vera", "member") == "ann\tadmin\nvera\tmember"
    assert say("members", "shop", "remove", "vera") == "ann\tadmin"


def test_an_invitation_leads_to_the_address_of_up(shop, say, tmp_path, settings):
    settings.HOME = Home(tmp_path)
    with pytest.raises(CommandError, match="--url"):
        say("members", "shop", "invite")
    assert not Invitation.objects.exists()

    prepare_home(tmp_path, "http://127.0.0.1:8651")
    assert say("members", "shop", "invite").startswith("http://127.0.0.1:8651/invitations/")


def test_a_key_is_created_replaced_and_revoked(shop, say):
    text = say("keys", "shop", "create", "production", "--days", "90")
    old = find_key(text)
    assert (old.name, old.scope) == ("production", "ingest")

    assert "\tends 20" in say("keys", "shop")

    new = say("keys", "shop", "rotate", str(old.pk), "--overlap-hours", "1")
    assert ApiKey.objects.filter(pk=old.pk, expires_at__lt=old.expires_at).exists()
    said = say("keys", "shop")
    assert new[:12] in said
    assert new not in said

    assert new[:12] not in say("keys", "shop", "revoke", str(find_key(new).pk))
    assert find_key(new) is None


LONG = "x" * 121


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        (("keys", "shop", "create", "production", "--days", "99999999999"), "--days: has to be .* from 1 to 3650"),
        (("keys", "shop", "create", "production", "--days", "0"), "--days"),
        (("keys", "shop", "rotate", "1", "--overlap-hours", "99999999999"), "--overlap-hours"),
        (("keys", "shop", "create", LONG), "name: a name has 1 to 120 characters"),
        (("projects", "create", LONG, "--administrator", "ann"), "name"),
        (("projects", "rename", "shop", " "), "name"),
        (("bootstrap", "--project", LONG), "--project"),
    ],
)
def test_what_cannot_be_stored_is_refused_in_words(shop, command, wrong):
    with pytest.raises(CommandError, match=wrong):
        call_command(*command)


def test_the_list_of_keys_says_whose_clock_it_goes_by(shop, say):
    find_key(say("keys", "shop", "create", "production", "--days", "90"))

    assert re.search(r"\tused [-0-9]{10} [:0-9]{5} UTC\tends [-0-9]{10} [:0-9]{5} UTC$", say("keys", "shop"))


def test_an_administrators_key_creates_projects_and_so_does_its_successor(shop, say):
    key = say("keys", "shop", "create", "provisioning", "--scope", "admin", "--user", "ann")
    successor = say("keys", "shop", "rotate", str(find_key(key).pk))
    nobodys = say("keys", "shop", "create", "operations", "--scope", "admin")

    statuses = [create_project(each, "Two").status_code for each in (key, successor, nobodys)]
    assert statuses == [201, 201, 403]
    assert "--scope admin --user" in create_project(nobodys, "Two").json()["error"]["message"]


def create_project(key, name):
    return make_client(key).post("/api/v1/projects", {"name": name}, content_type="application/json")


def test_an_expired_key_is_listed_as_such(shop, say):
    old = find_key(say("keys", "shop", "create", "production"))

    say("keys", "shop", "rotate", str(old.pk), "--overlap-hours", "0")

    [line] = say("keys", "shop").splitlines()[1:]
    assert "\texpired 20" in line
    assert line.endswith(" UTC, replaced")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("members", "none"), "no project 'none'. There are: shop"),
        (("members", "shop", "remove", "eve"), "'eve' does not belong to shop"),
        (("members", "shop", "role", "ann", "viewer"), "needs an administrator"),
        (("keys", "shop", "revoke", "1234"), "no key with the number 1234"),
        (("keys", "shop", "create", "x", "--days", "0"), "from 1 to 3650"),
        (("keys", "shop", "create", "x", "--user", "eve"), "Nobody here has the name 'eve'"),
        (("projects", "create", "x", "--administrator", "eve"), "Nobody here has the name 'eve'"),
    ],
)
def test_what_cannot_be_done_is_said(shop, words, problem):
    make_user("bob", shop)

    with pytest.raises(CommandError, match=problem):
        call_command(*words)
