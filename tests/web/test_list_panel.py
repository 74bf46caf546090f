"""The panel beside the list of sessions."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.models import Replay
from sessions_app.services.cold_cases import mark_cold
from tests.web.making import HOSTILE, another_run, client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/sessions"


def peeked(client, session_id: str, **more: str) -> str:
    page = client.get(ADDRESS, {"peek": session_id} | more).content.decode()
    return match(r'<aside id="peek"(.*?)</aside>', page)


def test_panel_shows_story_anomalies_what_is_missing_and_what_can_be_done(shop, bob):
    anomalies = [{"code": "duplicate_call", "message": "lookup_order twice", "steps": [1, 3]}]
    make_session(shop, "chat_1", anomalies=anomalies, story="2 steps · answered", user_id="u_7")

    panel = peeked(bob, "chat_1")

    for words in ("2 steps · answered", "lookup_order twice", "Commit of the agent", "not captured", "u_7"):
        assert words in panel
    assert 'href="/p/shop/s/chat_1"' in panel
    assert 'href="/p/shop/s/chat_1?step=3"' in panel
    assert 'action="/p/shop/s/chat_1/replay"' in panel
    assert 'action="/p/shop/sessions/bulk"' in panel
    assert "Diff with…" in panel


def test_panel_is_closed_without_an_address(shop, bob):
    make_session(shop, "chat_1")

    page = bob.get(ADDRESS).content.decode()

    assert re.search(r'<aside id="peek"[^>]*hidden', page)
    assert "data-peeked" not in page


def test_panel_keeps_query_order_and_page_when_it_closes(shop, bob):
    make_session(shop, "chat_1")

    panel = peeked(bob, "chat_1", q="status:ok", sort="-took", range="24h")

    assert 'href="?q=status%3Aok&amp;range=24h&amp;sort=-took"' in panel


def test_panel_is_sent_alone_when_only_it_is_asked_for(shop, bob):
    make_session(shop, "chat_1")

    headers = {"HX-Request": "true", "HX-Target": "peek-body"}
    response = bob.get(ADDRESS, {"peek": "chat_1"}, headers=headers)

    part = response.content.decode()
    assert "<table" not in part
    assert "data-peeked" in part
    assert "HX-Target" in response["Vary"]


def test_panel_of_a_session_that_is_not_here_says_so(shop, bob):
    make_session(make_project("other"), "secret")

    panel = peeked(bob, "secret")

    assert "No session" in panel
    assert "Where is my order" not in panel


def test_panel_shows_the_run_that_its_row_shows(shop, bob):
    run = make_session(shop, "s", status="error", input_preview="first words")
    another_run(run.session, run, "second", status="ok", input_preview="second words")

    assert "first words" in peeked(bob, "s", q="status:error")
    assert "second words" in peeked(bob, "s")
    assert "second words" in peeked(bob, "s", q="user:nobody")


def test_panel_escapes_what_was_recorded(shop, bob):
    run = make_session(shop, "<b>&", input_preview=HOSTILE, output_preview=HOSTILE, user_id=HOSTILE, story=HOSTILE)
    mark_cold(run=run, reason=HOSTILE)

    panel = peeked(bob, "<b>&")

    assert "<script>alert" not in panel
    assert "<b>&" not in panel
    assert "\u202e" not in panel


def test_viewers_look_and_change_nothing(shop):
    make_session(shop, "chat_1")

    panel = peeked(client_of(make_user("vera", shop, "viewer")), "chat_1")

    assert "<form method" not in panel
    assert 'method="post"' not in panel
    assert "Open" in panel


def test_outsiders_find_no_panel(shop):
    make_session(shop, "chat_1")

    assert client_of(make_user("charlie")).get(ADDRESS, {"peek": "chat_1"}).status_code == 404


def test_panel_costs_the_same_for_one_run_and_for_many(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            bob.get(ADDRESS, {"peek": "s"})
        return len(queries)

    run = make_session(shop, "s")
    Replay.objects.create(
        project=shop, run=run, content=run.content, number=1, produced_run=another_run(run.session, run, "made")
    )
    one = cost()
    for number in range(3):
        made = another_run(run.session, run, f"made{number}", origin="replay")
        Replay.objects.create(project=shop, run=run, content=run.content, number=number + 2, produced_run=made)
    for number in range(60):
        make_session(shop, f"s{number}")

    assert cost() == one
    assert one <= 17


def test_panel_begins_with_what_went_wrong_and_counts_the_rest_as_the_session_does(shop, bob):
    odd = [
        {"code": "swallowed_error", "level": "warning", "message": "charge failed", "steps": [2]},
        {"code": "many_calls", "level": "info", "message": "90 tool calls", "steps": []},
    ]
    make_session(shop, "chat_1", anomalies=odd, story="9 steps · answered · first anomaly at step 2")

    panel = peeked(bob, "chat_1")

    told = " ".join(re.sub(r"<[^>]*>", " ", match(r'<p class="peek-story">(.*?)</p>', panel)).split())
    assert told == "step 2 charge failed 9 steps · answered"
    assert 'Also noticed <span class="count">1</span>' in panel
    assert panel.count("charge failed") == 1
