"""What people do here works by links and forms alone, where no script runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from sessions_app.models import Replay
from tests.web.browsing import arrive
from tests.web.making import make_user
from tests.web.records import load_example

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(browser: Browser, live_server, shop) -> Iterator[Page]:
    """Of somebody who administers the project."""
    make_user("bob", shop, "admin")
    context = browser.new_context(java_script_enabled=False, base_url=live_server.url)
    page = context.new_page()
    arrive(page, f"{live_server.url}/p/shop/sessions")
    yield page
    context.close()


def test_a_session_is_tagged_noted_and_marked_cold(page, shop):
    run = load_example(shop, "r_8821")
    page.goto(f"/p/shop/s/{run.session.session_id}")

    page.fill("#tags [name=add]", "payments")
    page.press("#tags [name=add]", "Enter")
    expect(page.locator("#tags")).to_contain_text("payments")
    page.click(".top summary:has-text('Note')")
    page.fill(".top .note-form textarea", "The user id is missing.")
    page.click(".top .note-form button")
    expect(page.locator("#main")).to_contain_text("The user id is missing.")
    page.click(".head-next .menu > summary")
    page.click("summary:has-text('Mark cold')")
    page.fill(".menu-form textarea", "No access to the old index.")
    page.click(".menu-form button")
    expect(page.locator(".kit-why")).to_contain_text("No access to the old index.")


def test_a_tools_answer_is_changed_in_a_what_if_and_in_a_fork(page, shop):
    run = load_example(shop, "cancel_bug")
    session = f"/p/shop/s/{run.session.session_id}"

    page.goto(f"{session}?step=2")
    page.click("a:has-text('What if')")
    page.fill("#in-result", "[]")
    page.click("button[value=queue]")
    expect(page.locator("#what-if")).to_contain_text("queued")
    page.goto(session)
    page.click(".head-next .menu > summary")
    page.click(".head-next a[href*='/fork?']")
    page.select_option("#in-step", "2")
    page.click("button:has-text('Go there')")
    page.check("[name=use_result]")
    page.fill("#in-result", "[]")
    page.click("button[value=queue]")
    page.wait_for_url("**/replays/rp_*")
    assert Replay.objects.count() == 2


def test_a_golden_is_made_and_run(page, shop):
    run = load_example(shop, "r_8821")

    page.goto(f"/p/shop/s/{run.session.session_id}/golden")
    page.fill("[name=name]", "asks with a user id")
    page.check("[name=check][value='1']")
    page.click("summary:has-text('What runs')")
    page.check("[name=mode][value=recording]")
    page.click("button:has-text('Keep')")
    page.click("form[action$='/run'] button")
    expect(page.locator(".golden-runs")).to_contain_text("queued")
    page.goto("/p/shop/goldens")
    page.click("summary:has-text('Run…')")
    page.click("button:has-text('Run goldens')")
    page.wait_for_url("**/golden-batches/*")


def test_somebody_is_invited_and_prices_and_models_are_entered(page):
    page.goto("/p/shop/settings")
    page.click("form[action$='/invitations'] button")
    expect(page.locator("#main")).to_contain_text("/invitations/")
    page.goto("/p/shop/settings/prices")
    for field, value in (("model", "gpt-4o*"), ("input_price", "2.5"), ("output_price", "10")):
        page.fill(f".price-form [name={field}]", value)
    page.click(".price-form button")
    expect(page.locator("#notices")).to_contain_text("Price saved")
    page.goto("/p/shop/settings/models")
    for field, value in (("name", "Claude"), ("key", "sk-1"), ("requests_per_day", "5")):
        page.fill(f".model-form [name={field}]", value)
    page.click(".model-form button[type=submit]")
    expect(page.locator("#notices")).to_contain_text("Connected Claude")
