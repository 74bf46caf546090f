"""The page of a run that is posted while it runs, and again as it grows."""

import json
import re
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from sessions_app.services.ingest import ingest_document
from tests.builders import make_record, make_tool_step
from tests.web.browsing import arrive, press
from tests.web.making import make_project, make_user, match

pytestmark = pytest.mark.django_db


def post(shop, steps: int, *, minutes_ago: int = 12, **fields):
    """The record of a run that began with its last step, as it is after so many steps."""
    at = (timezone.now() - timedelta(minutes=minutes_ago)).isoformat()
    made = [make_tool_step(f"step_{n}", started_at=at) for n in range(steps)]
    record = make_record("r1", *made, session_id="s1", started_at=at, **({"status": "running"} | fields))
    return ingest_document(shop, json.dumps(record).encode()).run


def test_the_list_says_for_how_long_a_run_goes_on(shop, bob):
    post(shop, 1)

    page = bob.get(reverse("sessions", args=["shop"])).content.decode()

    assert re.search(r"for <time [^>]*data-since[^>]*>12 min</time>", page)


def line_of(client, **query):
    return client.get(reverse("arriving", args=["shop", "s1"]), {"run": "r1", **query})


def test_a_run_that_goes_on_polls_and_says_when_its_last_step_was(shop, bob):
    post(shop, 2)

    page = bob.get(reverse("session", args=["shop", "s1"])).content.decode()

    line = match(r'<div id="arriving"(.*?)</div>', page)
    assert ">12 min</time></span> · 2 steps · " in line
    assert ">12 min ago</time>" in line
    assert 'hx-trigger="every 2s, refresh"' in page


def test_steps_that_came_since_wait_behind_a_link_until_the_run_has_ended(shop, bob):
    post(shop, 1)
    unchanged = line_of(bob, seen=1)
    post(shop, 3)
    grown = line_of(bob, seen=1).content.decode()
    post(shop, 4, status="ok", output="done")
    ended = line_of(bob, seen=1).content.decode()

    assert "new · show" not in unchanged.content.decode()
    assert "2 new · show" in grown
    assert "the whole run has arrived" in ended
    assert "hx-trigger" not in ended


def test_seconds_that_pass_are_no_news(shop, bob):
    post(shop, 1)
    etag = line_of(bob, seen=1)["ETag"]

    again = bob.get(reverse("arriving", args=["shop", "s1"]), {"run": "r1", "seen": 1}, headers={"If-None-Match": etag})

    assert again.status_code == 304


@pytest.mark.django_db(transaction=True)
def test_the_page_follows_a_run_by_itself(page, live_server):
    shop = make_project()
    make_user("bob", shop)
    post(shop, 1, minutes_ago=0)
    arrive(page, f"{live_server.url}/p/shop/s/s1")
    line = page.locator("#arriving")

    expect(line.locator(".live")).to_have_text("live")
    for clock in line.locator("time").all():
        expect(clock).not_to_have_text(clock.inner_text())
    post(shop, 2, status="ok", output="done")
    expect(line).to_contain_text("the whole run has arrived", timeout=10_000)

    press(page, ".")
    expect(line).to_have_text("")
    expect(page.locator(".steps tbody tr")).to_have_count(2)
