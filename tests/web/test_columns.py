"""Columns of the list that a person chooses."""

import re

import pytest
from playwright.sync_api import expect

from tests.web.browsing import arrive
from tests.web.making import make_session, make_user

pytestmark = pytest.mark.django_db
LIST = "/p/shop/sessions"
CHOOSE = "/p/shop/sessions/columns"


def hidden_in(page):
    found = re.search(r'data-hides="([^"]*)"', page)
    return found[1].split() if found else []


def test_the_choice_is_kept_and_leads_back_to_the_list(shop, bob):
    make_session(shop, "a")

    answer = bob.post(CHOOSE, {"column": ["agent", "took", "nothing"], "back": "?q=status%3Aok"})

    assert answer["Location"] == f"{LIST}?q=status%3Aok"
    page = bob.get(LIST).content.decode()
    assert hidden_in(page) == ["when", "steps", "odd", "model", "user", "replay"]
    assert re.findall(r'name="column"\s+value="(\w+)"\s+checked', page) == ["took", "agent"]

    bob.post(CHOOSE, {"usual": "1"})
    assert hidden_in(bob.get(LIST).content.decode()) == []


def test_all_of_them_may_be_left_out(shop, bob):
    make_session(shop, "a")

    bob.post(CHOOSE)

    assert len(hidden_in(bob.get(LIST).content.decode())) == 8


def test_a_cookie_of_nonsense_shows_what_it_can(shop, bob):
    make_session(shop, "a")
    bob.cookies["columns"] = 'x"><script>.took'

    page = bob.get(LIST).content.decode()

    assert "<script>.took" not in page
    assert "took" not in hidden_in(page)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scripts", [True, False])
def test_columns_are_chosen_with_and_without_scripts(browser, live_server, shop, scripts):
    make_user("ann", shop)
    make_session(shop, "a")
    page = browser.new_context(java_script_enabled=scripts, viewport={"width": 1280, "height": 800}).new_page()
    arrive(page, live_server.url + LIST, "ann")
    expect(page.locator("td.c-agent")).to_be_hidden()

    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Steps", exact=True).uncheck()
    page.get_by_role("button", name="Apply").click()

    expect(page.locator("td.c-agent")).to_be_visible()
    expect(page.locator("td.c-steps")).to_be_hidden()
    page.context.close()
