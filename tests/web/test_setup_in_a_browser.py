"""Setting up and uploading in Chromium: live refusals, narrow and dark screens, scripts off."""

import json

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from sessions_app.services.ingest_log import note
from tests.builders import make_record, make_tool_step
from tests.web.browsing import arrive, looks
from tests.web.making import HOSTILE, make_user

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def files(tmp_path):
    """A file to store and one to refuse, both with a long name."""
    good, bad = tmp_path / f"{'good' * 30}.json", tmp_path / f"{'bad' * 40}.json"
    good.write_text(json.dumps(make_record("r" * 200, make_tool_step(result="one"))))
    bad.write_text(json.dumps(make_record("r", {"kind": "guess"})))
    return good, bad


def open_setup(page: Page, live_server, shop) -> None:
    make_user("ann", shop)
    arrive(page, f"{live_server.url}/p/shop/setup", "ann")


def test_a_refusal_is_shown_without_reloading(page, live_server, shop):
    open_setup(page, live_server, shop)
    expect(page.locator("#waiting")).to_contain_text("waiting for the first session…")

    note(None, door="traces", status=401, words="unknown key rpk_ab12…")

    expect(page.locator("#waiting")).to_contain_text("401 unknown key rpk_ab12…")


@looks
def test_every_state_is_accessible_and_fits(page, live_server, shop, files, scheme, width):
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    open_setup(page, live_server, shop)

    def check(state):
        found = [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]]
        assert (state, found) == (state, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, state

    page.fill("[name=name]", "production")
    page.get_by_role("button", name="Create key").click()
    expect(page.locator("#new-key")).to_be_visible()
    check("a new key")
    note(shop, door="traces", status=400, words=HOSTILE + "x" * 250)
    note(shop, door="traces", status=200, words="", count=3)
    page.goto(f"{live_server.url}/p/shop/setup?tab=pydantic-ai")
    expect(page.locator("#waiting")).to_contain_text("3 spans")
    check("refusals")
    for file, heading in zip(files, ("1 run in", "Nothing was stored"), strict=True):
        page.set_input_files("[name=file]", file)
        page.get_by_role("button", name="Upload").click()
        expect(page.locator("h1")).to_contain_text(heading)
        check(heading)


def test_key_tabs_and_upload_work_without_scripts(browser: Browser, live_server, shop, files):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_setup(page, live_server, shop)

    page.get_by_role("link", name="curl").click()
    expect(page.locator("#way-curl")).to_contain_text("$REPLAY_KEY")
    page.fill("[name=name]", "production")
    page.get_by_role("button", name="Create key").click()
    key = page.locator("#new-key").inner_text()
    expect(page.locator("#way-curl")).to_contain_text(key)
    page.set_input_files("[name=file]", files[0])
    page.get_by_role("button", name="Upload").click()
    page.get_by_role("link", name="Open", exact=False).last.click()

    assert "/p/shop/s/" in page.url
    context.close()
