"""Sending the first recording: the key, what to paste, whether it arrived."""

import html
import json
import re

import pytest

from sessions_app.models import ApiKey, Run, Session
from sessions_app.services.ingest import ingest_document
from sessions_app.services.keys import find_key
from tests.web.making import client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/setup"


@pytest.fixture
def shop():
    return make_project()


@pytest.fixture
def ann(shop):
    return client_of(make_user("ann", shop, "admin"))


def test_setup_shows_this_servers_address_and_waits(ann):
    page = ann.get(ADDRESS).content.decode()

    assert "curl http://testserver/api/v1/runs" in page
    assert "waiting for the first session…" in page
    assert 'hx-trigger="every 2s, refresh"' in page


def test_a_key_is_shown_once_and_works(shop, ann):
    response = ann.post(f"{ADDRESS}/keys", {"name": "production", "scope": "ingest"})

    page = response.content.decode()
    key = match(r'id="new-key">(rpk_[\w-]+)<', page)
    assert find_key(key) == ApiKey.objects.get()
    assert page.count(key) == 7
    assert "no-store" in response["Cache-Control"]
    assert key not in ann.get(ADDRESS).content.decode()


def test_a_key_needs_a_name(shop, ann):
    assert ann.post(f"{ADDRESS}/keys", {"name": " ", "scope": "ingest"}).status_code == 422
    assert ann.post(f"{ADDRESS}/keys", {"name": "x", "scope": "root"}).status_code == 422
    assert not ApiKey.objects.exists()


def test_viewers_may_not_make_keys(shop):
    eve = client_of(make_user("eve", shop, "viewer"))

    assert eve.post(f"{ADDRESS}/keys", {"name": "x", "scope": "full"}).status_code == 403
    assert "Create key" not in eve.get(ADDRESS).content.decode()


def test_the_session_file_of_the_page_is_one_that_the_server_takes(shop, ann):
    pasted = html.unescape(match(r'id="way-curl"[^>]*>(.*?)</pre>', ann.get(ADDRESS).content.decode()))
    body = match(r"<<'END'\n(.*?)\nEND\n", pasted)

    run = ingest_document(shop, json.dumps(json.loads(body)).encode()).run

    assert (run.run_id, run.input_preview, run.output_preview) == (
        "my-first",
        "Where is my order?",
        "It is on its way.",
    )


def test_every_way_to_send_is_short(ann):
    ways = re.findall(r'<pre class="code" id="way-\w+"[^>]*>(.*?)</pre>', ann.get(ADDRESS).content.decode(), re.DOTALL)

    assert len(ways) == 6
    assert all(len(way.splitlines()) <= 8 for way in ways)


def test_what_arrived_is_shown_live_and_unchanged_parts_are_not_sent_again(shop, ann):
    before = ann.get(f"{ADDRESS}/waiting")
    make_session(shop, "chat_1")
    after = ann.get(f"{ADDRESS}/waiting")

    assert "waiting for" in before.content.decode()
    assert "chat_1" in after.content.decode()
    assert "1 step" in after.content.decode()
    assert ann.get(f"{ADDRESS}/waiting", headers={"If-None-Match": after["ETag"]}).status_code == 304


def test_later_the_page_scores_what_was_captured(shop, ann):
    make_session(shop, "s")

    page = ann.get(ADDRESS).content.decode()

    assert "Send more data" in page
    assert "Capture next" in page
    assert "100 %" in page


def test_examples_come_and_go_with_one_click(shop, ann):
    make_session(shop, "mine")
    ann.post("/p/shop/examples/load")
    loaded = Run.objects.count()

    ann.post("/p/shop/examples/remove")

    assert loaded > 1
    assert [session.session_id for session in Session.objects.all()] == ["mine"]


def test_only_admins_remove_examples(shop):
    bob = client_of(make_user("bob", shop))

    assert bob.post("/p/shop/examples/remove").status_code == 403
    assert "Remove the example" not in bob.get(ADDRESS).content.decode()
