"""All sessions that a query finds: the number is said first, many are left to a worker, nothing happens twice."""

import json
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from playwright.sync_api import expect

from sessions_app.models import BulkJob, ColdCase, Replay, Session
from sessions_app.services.bulk_jobs import go_on
from sessions_app.services.replays import request_replay
from sessions_app.web.session_list import bulk_all
from tests.web.browsing import arrive, looks
from tests.web.making import client_of, make_project, make_session, make_user

pytestmark = pytest.mark.django_db
LIST = "/p/shop/sessions"
BULK = "/p/shop/sessions/bulk"


@pytest.fixture
def found(shop):
    """Three that the query finds, one that it does not, one of another project."""
    runs = [make_session(shop, name, status="error") for name in "abc"]
    make_session(shop, "other")
    make_session(make_project("elsewhere"), "a", status="error")
    return runs


def asked(client, do, **more):
    """The page that asks for confirmation."""
    return client.post(BULK, {"do": do, "all": "1", "key": "k", "back": "?q=status%3Aerror", **more})


def confirmed(client, do, **more):
    """What the form of that page sends, with what is typed into it."""
    page = asked(client, do, **more).content.decode()
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', page.split("<main")[1]))
    return client.post(BULK, form | more)


def to_the_end():
    while go_on():
        pass


def test_the_number_is_said_before_anything_happens(bob, found):
    page = asked(bob, "replay").content.decode()

    assert "Queue replays of 3 sessions</button>" in page
    assert '<code class="recorded">status:error</code>' in page
    assert not Replay.objects.exists()
    assert not BulkJob.objects.exists()


def test_all_that_match_are_replayed_and_no_others(bob, found):
    found[0].__class__.objects.filter(pk=found[0].pk).update(verdict="cold")

    answer = confirmed(bob, "replay")

    assert answer["Location"].startswith(f"{LIST}?q=status%3Aerror")
    assert {replay.run_id for replay in Replay.objects.all()} == {found[1].pk, found[2].pk}
    assert "2 of 3 sessions queued" in bob.get(LIST).content.decode()


def test_the_same_form_again_does_nothing_more(bob, found):
    confirmed(bob, "replay")
    confirmed(bob, "replay")

    assert (Replay.objects.count(), BulkJob.objects.count()) == (3, 1)
    confirmed(bob, "replay", key="another")
    assert (Replay.objects.count(), BulkJob.objects.count()) == (6, 2)


def test_what_arrives_after_the_number_was_said_is_not_touched(bob, shop, found):
    page = asked(bob, "tag", tags="late").content.decode()
    form = dict(re.findall(r'name="(\w+)"\s+value="([^"]*)"', page.split("<main")[1]))
    make_session(shop, "newer", status="error")

    bob.post(BULK, form)

    assert set(Session.objects.filter(tags__contains=["late"]).values_list("session_id", flat=True)) == set("abc")


def test_a_time_range_stays_what_was_counted(bob, shop, found):
    make_session(shop, "old", status="error", minutes_ago=600)

    page = asked(bob, "cold", back="?q=status%3Aerror&range=1h").content.decode()

    assert "Mark cold: 3 sessions" in page
    assert re.search(r'name="back" value="\?q=status%3Aerror&amp;from=', page)


def test_tags_go_on_and_off_while_the_query_changes_with_them(bob, shop, found):
    confirmed(bob, "tag", tags="bad, checked", back="?q=status%3Aerror+-tag%3Abad")
    assert Session.objects.filter(tags=["bad", "checked"]).count() == 3

    confirmed(bob, "untag", tags="bad", back="?q=tag%3Abad")
    assert Session.objects.filter(tags=["checked"]).count() == 3


def test_cold_needs_a_reason(bob, found):
    refused = confirmed(bob, "cold", reason=" ")
    assert (refused.status_code, ColdCase.objects.count()) == (422, 0)
    assert "A reason is required" in refused.content.decode()

    confirmed(bob, "cold", reason="The index is gone.")
    assert set(ColdCase.objects.values_list("reason", flat=True)) == {"The index is gone."}
    assert ColdCase.objects.count() == 3


def test_open_replays_are_cancelled(bob, found):
    replay = request_replay(run=found[0])

    confirmed(bob, "cancel")

    replay.refresh_from_db()
    assert replay.state == "cancelled"
    assert "1 of 3 sessions had replays" in bob.get(LIST).content.decode()


def test_ticked_rows_are_cancelled_too(bob, found):
    replay, other = (request_replay(run=run) for run in found[:2])

    bob.post(BULK, {"do": "cancel", "run": ["a"]})

    replay.refresh_from_db()
    other.refresh_from_db()
    assert (replay.state, other.state) == ("cancelled", "queued")


def test_all_are_exported_in_one_file(bob, found):
    answer = confirmed(bob, "export")

    sent = json.loads(b"".join(answer.streaming_content))
    assert sorted(record["run_id"] for record in sent["runs"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("do", "back"), [("compare", "?q=x"), ("", ""), ("replay", "?q=tokens%3Amany"), ("replay", "?range=7y")]
)
def test_what_cannot_be_is_said_and_nothing_happens(bob, found, do, back):
    answer = bob.post(BULK, {"do": do, "all": "1", "confirmed": "1", "back": back}, follow=True)

    assert 'id="notices"' in answer.content.decode()
    assert not BulkJob.objects.exists()


def test_viewers_may_not(shop, found):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert asked(vera, "replay").status_code == 403
    assert confirmed_by_hand(vera).status_code == 403


def confirmed_by_hand(client):
    return client.post(BULK, {"do": "replay", "all": "1", "confirmed": "1", "key": "k", "back": "?"})


# --- many


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(bulk_all, "AT_ONCE", 1)


def test_many_are_left_to_a_worker_that_says_how_far_it_is(bob, found, few, monkeypatch):
    monkeypatch.setattr("sessions_app.services.bulk_jobs._PIECE", 2)
    assert "This runs in the background" in asked(bob, "replay").content.decode()

    address = confirmed(bob, "replay")["Location"]

    job = BulkJob.objects.get()
    assert address == f"/p/shop/bulk-jobs/{job.bulk_job_id}"
    assert not Replay.objects.exists()
    assert go_on()
    assert "2 of 3" in bob.get(address).content.decode()
    assert 'hx-trigger="every 2s' in bob.get(address).content.decode()
    to_the_end()
    done = bob.get(address, headers={"HX-Request": "true"}).content.decode()
    assert "3 of 3 sessions queued" in done
    assert "every 2s" not in done
    assert Replay.objects.count() == 3
    assert confirmed(bob, "replay")["Location"] == address


def test_a_worker_that_was_killed_does_nothing_twice(bob, found, few):
    confirmed(bob, "replay")
    go_on()
    BulkJob.objects.update(position=0, finished_at=None)

    to_the_end()

    assert Replay.objects.count() == 3


def test_a_job_of_another_project_is_not_shown(bob, shop, found, few):
    confirmed(bob, "replay")
    BulkJob.objects.update(project=make_project("third"))

    assert bob.get(f"/p/shop/bulk-jobs/{BulkJob.objects.get().bulk_job_id}").status_code == 404


def test_confirming_takes_as_many_queries_for_one_session_as_for_many(bob, shop):
    counts = []
    for names in ("a", "bcdefgh"):
        for name in names:
            make_session(shop, name, status="error")
        with CaptureQueriesContext(connection) as queries:
            asked(bob, "replay")
        counts.append(len(queries))

    assert counts[0] == counts[1]


# --- in a browser


@pytest.mark.django_db(transaction=True)
@looks
def test_all_that_match_are_chosen_in_the_list(page, live_server, shop, width, scheme):
    make_user("ann", shop)
    for number in range(52):
        make_session(shop, f"s{number}")
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    arrive(page, live_server.url + LIST, "ann")

    page.locator('input[form="bulk"]').first.check()
    expect(page.locator(".bulk-matching")).to_contain_text("Select all 52 that match")
    page.locator("[data-all-matching]").check()
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()
    page.get_by_role("button", name="Queue replays").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Queue replays of 52 sessions")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("button", name="Queue replays of 52 sessions").click()

    expect(page.locator("#notices")).to_contain_text("52 of 52 sessions queued")
    assert Replay.objects.count() == 52


@pytest.mark.django_db(transaction=True)
def test_it_works_with_scripts_off(browser, live_server, shop):
    make_user("ann", shop)
    for number in range(52):
        make_session(shop, f"s{number}")
    page = browser.new_context(java_script_enabled=False).new_page()
    arrive(page, live_server.url + LIST, "ann")

    page.locator("[data-all-matching]").check()
    page.get_by_role("button", name="Queue replays").click()
    page.get_by_role("button", name="Queue replays of 52 sessions").click()

    expect(page.locator("#notices")).to_contain_text("52 of 52 sessions queued")
    page.context.close()
