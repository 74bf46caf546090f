"""Sign in, sign out, look and keys."""

import re
from datetime import timedelta

import pytest
from axes.models import AccessAttempt
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from tests.web.making import client_of, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def bob():
    return make_user("bob", make_project())


def sign_in(client: Client, target: str = "", password: str = "right"):
    return client.post("/sign-in", {"username": "bob", "password": password, "next": target})


def test_sign_in_returns_to_where_one_was(bob):
    client = Client()
    asked = client.get("/p/shop/sessions?q=status%3Aerror")["Location"]

    assert asked == "/sign-in?next=%2Fp%2Fshop%2Fsessions%3Fq%3Dstatus%253Aerror"
    assert 'name="next" value="/p/shop/sessions?q=status%3Aerror"' in client.get(asked).content.decode()
    assert sign_in(client, "/p/shop/sessions?q=status%3Aerror")["Location"] == "/p/shop/sessions?q=status%3Aerror"


@pytest.mark.parametrize(
    "target",
    ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:///evil.example", ""],
)
def test_sign_in_never_leads_elsewhere(bob, target):
    assert sign_in(Client(), target)["Location"] == "/"


def test_a_wrong_password_is_refused_in_words_and_keeps_the_name(bob):
    response = sign_in(Client(), password="wrong")

    page = response.content.decode()
    assert response.status_code == 422
    assert "Incorrect username or password" in page
    assert 'value="bob"' in page
    assert "wrong" not in page


def test_who_tries_too_many_passwords_has_to_wait(bob):
    make_user("carol")
    tried = [sign_in(Client(), password=f"guess {number}").status_code for number in range(10)]
    refused = sign_in(Client())

    assert tried == [422] * 9 + [429]
    assert (refused.status_code, refused["Retry-After"]) == (429, "900")
    assert "Try again in 15 minutes" in refused.content.decode()
    elsewhere = Client(REMOTE_ADDR="10.0.0.9", HTTP_X_FORWARDED_FOR="127.0.0.1")
    assert sign_in(elsewhere).status_code == 302
    assert Client().post("/sign-in", {"username": "carol", "password": "right"}).status_code == 302

    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=16))
    assert sign_in(Client()).status_code == 302


def test_a_right_password_begins_the_count_anew(bob):
    for _ in range(3):
        assert [sign_in(Client(), password="guess").status_code for _ in range(9)] == [422] * 9
        assert sign_in(Client()).status_code == 302


def test_a_new_password_ends_other_sessions(bob):
    here, there = client_of(bob), client_of(bob)
    new = {"new_password1": "a long sentence", "new_password2": "a long sentence"}
    assert here.post("/me/password", {"old_password": "guess", **new}).status_code == 422
    assert here.post("/me/password", {"old_password": "right", **new, "new_password2": "other"}).status_code == 422

    assert here.post("/me/password", {"old_password": "right", **new})["Location"] == "/me"

    assert here.get("/me").status_code == 200
    assert there.get("/me").status_code == 302
    assert sign_in(Client(), password="a long sentence").status_code == 302


def signed_in(browser: str, address: str = "10.0.0.9") -> Client:
    client = Client(REMOTE_ADDR=address, headers={"User-Agent": browser})
    assert sign_in(client).status_code == 302
    return client


def ends_of(client: Client) -> list[str]:
    return re.findall(r'name="sign_in"\s+value="(\w+)"', client.get("/me").content.decode())


def test_a_person_sees_where_they_are_signed_in_and_ends_one(bob):
    here, there = signed_in("Firefox at work"), signed_in("Chrome at home", "2001:db8::7")

    page = here.get("/me").content.decode()
    assert [words for words in ("Firefox at work", "Chrome at home", "2001:db8::7") if words not in page] == []
    assert [client for client in (here, there) if str(client.session.session_key) in page] == []
    assert page.count(">this browser<") == 1
    (end,) = ends_of(here)
    assert here.post("/me/sessions/end", {"sign_in": end})["Location"] == "/me"

    assert "1 session ended." in here.get("/me").content.decode()
    assert there.get("/me").status_code == 302
    assert ends_of(here) == []


def test_all_others_are_ended_at_once(bob):
    here, *others = (signed_in(f"browser {number}") for number in range(3))
    assert here.get("/me").content.decode().count("Sign out everywhere else") == 1

    here.post("/me/sessions/end")

    assert [client.get("/me").status_code for client in (here, *others)] == [200, 302, 302]


def test_nobody_ends_the_session_of_another(bob):
    mine = signed_in("Firefox")
    name = ends_of(signed_in("Chrome"))[0]
    other = client_of(make_user("carol"))

    assert "Firefox" not in other.get("/me").content.decode()
    other.post("/me/sessions/end", {"sign_in": name})
    other.post("/me/sessions/end")

    assert mine.get("/me").status_code == 200


def test_a_hostile_browser_is_shown_as_text(bob):
    page = signed_in("<script>alert(1)</script>\u202e").get("/me").content.decode()

    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_sign_out_needs_a_post(bob):
    client = client_of(bob)

    answer = client.get("/sign-out")

    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert "This page cannot be opened directly." in answer.content.decode()
    assert client.post("/sign-out")["Location"] == "/sign-in"
    assert client.get("/p/shop/sessions").status_code == 302


@pytest.mark.parametrize("address", ["/sign-in", "/sign-out", "/me", "/p/shop/setup/keys", "/p/shop/examples/remove"])
def test_unsafe_requests_need_their_token(bob, address):
    client = Client(enforce_csrf_checks=True)
    client.force_login(bob)

    assert client.post(address).status_code == 403


def test_theme_and_keys_are_kept_in_the_browser(bob):
    client = client_of(bob)

    client.post("/me", {"theme": "dark"})

    page = client.get("/me").content.decode()
    assert '<html lang="en" data-theme="dark" data-key-hints="off">' in page
    assert 'data-on="no"' in page


def test_a_theme_that_does_not_exist_is_the_systems(bob):
    client = client_of(bob)

    client.post("/me", {"theme": '"><script>', "keys": "on"})
    client.cookies["theme"] = '"><script>'

    assert 'data-theme="system"' in client.get("/me").content.decode()


def test_live_parts_are_told_that_one_is_signed_out(bob):
    assert Client().get("/p/shop/setup/waiting", headers={"HX-Request": "true"}).status_code == 401


def test_the_sign_in_page_says_where_the_credentials_are(client):
    page = client.get(reverse("sign_in")).content.decode()

    assert "Your credentials are in <code>connection.json</code>" in page
