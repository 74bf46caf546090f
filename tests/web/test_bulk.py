"""Several sessions at once: who may, what happens, and that nothing happens twice."""

import json
import re

import pytest
from django.test import Client

from sessions_app.core.formats.batch import split_batch
from sessions_app.models import ColdCase, Replay, Run
from sessions_app.services.ingest import ingest_batch
from tests.losing import lose_payloads
from tests.web.making import another_run, client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
LIST = "/p/shop/sessions"
BULK = "/p/shop/sessions/bulk"


def notices(client: Client) -> str:
    return match(r'id="notices"[^>]*>(.*?)</div>', client.get(LIST).content.decode())


# --- comparison


@pytest.mark.parametrize(
    ("ticked", "address"),
    [(["b", "a"], "/p/shop/diff/a...b"), (["c", "b", "a"], "/p/shop/diff/a...b?third=c"), (["a"], LIST)],
)
def test_two_ticked_sessions_are_compared_the_first_on_the_left(shop, bob, ticked, address):
    for name in "abc":
        make_session(shop, name)

    assert bob.post(BULK, {"do": "compare", "run": ticked})["Location"] == address


# --- replays


def test_each_selected_session_gets_one_replay_of_the_run_its_row_shows(shop, bob):
    run = make_session(shop, "a")
    another_run(run.session, run, "a-again")
    make_session(shop, "b")
    make_session(shop, "c")

    response = bob.post(BULK, {"do": "replay", "run": ["a-again", "b"], "key": "k1", "back": "?q=status%3Aok"})

    assert response["Location"] == f"{LIST}?q=status%3Aok"
    assert {replay.run.run_id for replay in Replay.objects.all()} == {"a-again", "b"}
    assert "2 replays are queued; recorded answers only." in notices(bob)


def test_the_same_form_again_queues_nothing_more(shop, bob):
    make_session(shop, "a")

    for _ in range(2):
        bob.post(BULK, {"do": "replay", "run": ["a", "a"], "key": "k1"})
    assert Replay.objects.count() == 1

    bob.post(BULK, {"do": "replay", "run": ["a"], "key": "k2"})
    assert Replay.objects.count() == 2


def test_keys_of_two_people_do_not_meet(shop, bob):
    make_session(shop, "a")
    ann = client_of(make_user("ann", shop))

    for client in (bob, ann):
        client.post(BULK, {"do": "replay", "run": ["a"], "key": "k1"})

    assert Replay.objects.count() == 2


def test_cold_runs_are_left_out_and_named(shop, bob):
    make_session(shop, "a", verdict="cold")
    make_session(shop, "b")

    bob.post(BULK, {"do": "replay", "run": ["a", "b"], "key": "k"})

    words = notices(bob)
    assert Replay.objects.get().run.run_id == "b"
    assert "1 replay is queued" in words
    assert "1 is cold: too little was captured" in words


# --- cold


def test_marking_cold_needs_a_reason_and_keeps_the_selection(shop, bob):
    make_session(shop, "a")
    make_session(shop, "b")

    refused = bob.post(BULK, {"do": "cold", "run": ["a", "b"], "reason": " ", "back": "?sort=-took"})

    page = refused.content.decode()
    assert refused.status_code == 422
    assert "A reason is required" in page
    assert page.count('type="hidden" name="run"') == 2
    assert 'name="back" value="?sort=-took"' in page
    assert ColdCase.objects.count() == 0


def test_marking_cold_marks_each_with_the_reason(shop, bob):
    make_session(shop, "a")
    make_session(shop, "b")

    bob.post(BULK, {"do": "cold", "run": ["a", "b"], "reason": "the index is gone"})

    assert [(case.reason, case.marked_by.username) for case in ColdCase.objects.all()] == [
        ("the index is gone", "bob"),
        ("the index is gone", "bob"),
    ]
    assert "2 sessions are marked cold." in notices(bob)


# --- export


def test_export_is_a_batch_that_another_server_takes_as_it_is(shop, bob):
    for name in ("a", "b"):
        make_session(shop, name)

    response = bob.post(BULK, {"do": "export", "run": ["b", "a"]})

    batch = response.getvalue()
    assert response.streaming
    assert response["Content-Disposition"] == 'attachment; filename="shop-sessions.json"'
    stored = ingest_batch(make_project("other"), split_batch(batch, json.loads(batch)) or [])
    assert [ingested.run.run_id for ingested in stored] == ["b", "a"]
    sent = {run.run_id: bytes(run.content_digest) for run in Run.objects.filter(project=shop)}
    assert {each.run.run_id: bytes(each.run.content_digest) for each in stored} == sent


def test_export_says_which_record_is_gone(shop, bob):
    make_session(shop, "a")
    lose_payloads(shop)

    batch = json.loads(bob.post(BULK, {"do": "export", "run": ["a"]}).getvalue())

    assert batch["runs"] == []
    assert [gone["run_id"] for gone in batch["gone"]] == ["a"]


# --- who and how many


@pytest.mark.parametrize("do", ["replay", "cold", "export"])
def test_viewers_do_nothing_and_see_no_bulk(shop, do):
    make_session(shop, "a")
    vera = client_of(make_user("vera", shop, "viewer"))

    response = vera.post(BULK, {"do": do, "run": ["a"], "reason": "x", "key": "k"})

    page = vera.get(LIST).content.decode()
    assert response.status_code == 403
    assert (Replay.objects.count(), ColdCase.objects.count()) == (0, 0)
    assert 'form="bulk"' not in page
    assert 'id="bulk"' not in page


def test_outsiders_find_nothing(shop):
    make_session(shop, "a")

    assert client_of(make_user("charlie")).post(BULK, {"do": "export", "run": ["a"]}).status_code == 404


def test_runs_of_other_projects_are_not_reached(shop, bob):
    make_session(make_project("other"), "secret")

    bob.post(BULK, {"do": "cold", "run": ["secret"], "reason": "x"})

    assert ColdCase.objects.count() == 0
    assert "gone" in notices(bob)


def test_bulk_needs_the_token_of_the_form(shop):
    make_session(shop, "a")
    client = Client(enforce_csrf_checks=True)
    client.force_login(make_user("ann", shop))

    assert client.post(BULK, {"do": "replay", "run": ["a"], "key": "k"}).status_code == 403
    assert Replay.objects.count() == 0


def test_bulk_is_never_a_get(shop, bob):
    assert bob.get(BULK).status_code == 405


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ({"do": "replay"}, "Nothing was selected."),
        ({"do": "delete", "run": ["a"]}, "Choose an action for the selection."),
        ({"do": "replay", "run": [f"r{n}" for n in range(201)]}, "201 sessions are selected; you can act on"),
        ({"do": "replay", "run": ["a\x00b"]}, "Nothing was selected."),
    ],
)
def test_what_cannot_be_done_is_said(shop, bob, sent, words):
    make_session(shop, "a")

    bob.post(BULK, sent)

    assert words in notices(bob)
    assert Replay.objects.count() == 0


@pytest.mark.parametrize("back", ["https://evil.example/", "//evil.example", "?q=x&next=//evil.example", "\r\nX: y"])
def test_the_way_back_leads_to_the_list_alone(shop, bob, back):
    location = bob.post(BULK, {"do": "replay", "back": back})["Location"]

    assert location.split("?")[0] == LIST
    assert "evil" not in location


def test_all_on_the_page_can_be_selected_by_an_address(shop, bob):
    for name in ("a", "b", "c"):
        make_session(shop, name)

    page = bob.get(LIST, {"select": "page"}).content.decode()

    assert len(re.findall(r'form="bulk"[^>]*checked', page)) == 3
