"""The list of sessions by keyboard, in place, with scripts off, and when the server is slow or away."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, expect

from sessions_app.models import ColdCase, Replay
from tests.web.browsing import arrive, looks, press
from tests.web.making import HOSTILE, make_project, make_session, make_user

pytestmark = pytest.mark.django_db(transaction=True)
LIST = "/p/shop/sessions"


@pytest.fixture
def shop():
    project = make_project()
    for number in range(4):
        make_session(project, f"s{number}", minutes_ago=number + 1, story=f"story {number}", duration_ms=number * 100.0)
    return project


@pytest.fixture
def listed(page: Page, live_server, shop) -> Page:
    make_user("bob", shop)
    arrive(page, live_server.url + LIST)
    return page


def asked(page: Page) -> str:
    return str(page.evaluate("location.search"))


def test_space_opens_the_panel_j_and_k_move_it_and_esc_closes_it(listed):
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")
    assert asked(listed) == "?peek=s0"

    press(listed, "j", "j")
    expect(listed.locator("#peek")).to_contain_text("story 2")
    press(listed, "k")
    expect(listed.locator("#peek")).to_contain_text("story 1")
    expect(listed.locator("tr.is-picked")).to_contain_text("s1")
    assert asked(listed) == "?peek=s1"

    press(listed, "Escape")
    expect(listed.locator("#peek")).not_to_be_visible()
    assert asked(listed) == ""
    assert listed.evaluate("document.activeElement.textContent") == "s1"


def test_tab_goes_from_a_row_into_its_panel_and_back(listed):
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")

    press(listed, "Tab", "Tab", "Tab")
    expect(listed.locator("[data-peek-close]")).to_be_focused()
    press(listed, "Shift+Tab", "Shift+Tab")

    expect(listed.locator("a[data-peek=s0]")).to_be_focused()
    expect(listed.locator("#peek")).to_contain_text("story 0")


def test_a_panel_that_comes_late_keeps_the_focus_in_it(listed):
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")

    with listed.expect_response("**peek=s1*"):
        press(listed, "j")
        listed.locator("#peek-body a").last.focus()

    expect(listed.locator("#peek")).to_contain_text("story 1")
    expect(listed.locator("[data-peek-close]")).to_be_focused()


def test_space_again_closes_the_panel(listed):
    press(listed, "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")
    press(listed, "Space")
    expect(listed.locator("#peek")).not_to_be_visible()


def test_back_and_reload_keep_the_panel(listed):
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")

    listed.go_back()
    expect(listed.locator("#peek")).not_to_be_visible()
    listed.go_forward()
    expect(listed.locator("#peek")).to_contain_text("story 0")
    listed.reload()
    expect(listed.locator("#peek")).to_contain_text("story 0")


def test_the_panel_is_worked_by_keys(listed):
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")

    press(listed, "Shift+R")

    listed.wait_for_url("**/replays/rp_*")
    assert Replay.objects.get().run.run_id == "s0"


def test_x_selects_and_the_bar_acts(listed):
    expect(listed.locator("#bulk")).not_to_be_visible()

    press(listed, "j", "x", "j", "j", "x")
    expect(listed.locator("[data-count]")).to_have_text("2")
    listed.click("text=Queue replays")

    expect(listed.locator("#notices")).to_contain_text("2 replays are queued")
    assert {replay.run.run_id for replay in Replay.objects.all()} == {"s0", "s2"}
    assert Replay.objects.exclude(request_key=None).count() == 2


def test_select_all_and_clear(listed):
    listed.check("input[data-select-all]")
    expect(listed.locator("[data-count]")).to_have_text("4")
    listed.click("text=Clear")
    expect(listed.locator("#bulk")).not_to_be_visible()


def test_enter_on_a_tick_queues_nothing(listed):
    listed.check("[name=run][value=s0]")
    listed.focus("[name=run][value=s0]")
    press(listed, "Enter")

    expect(listed.locator("[data-count]")).to_have_text("1")
    assert listed.url.endswith(LIST)
    assert Replay.objects.count() == 0


def test_marking_cold_returns_to_the_list_with_its_panel(listed):
    press(listed, "j", "x", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 0")
    listed.click("#bulk >> text=Mark cold…")
    listed.fill("#bulk [name=reason]", "the index is gone")
    press(listed, "Control+Enter")

    expect(listed.locator("#notices")).to_contain_text("1 session is marked cold")
    expect(listed.locator("#peek")).to_contain_text("the index is gone")
    assert ColdCase.objects.get().reason == "the index is gone"


def test_rows_are_replaced_in_place(listed):
    listed.evaluate("window.stayed = true")

    listed.fill("#query", "session:s2")
    press(listed, "Enter")
    expect(listed.locator("[data-row]")).to_have_count(1)
    listed.fill("#query", "status:errr")
    press(listed, "Enter")
    expect(listed.locator(".query-part")).to_have_text("status:errr")
    listed.fill("#query", "")
    press(listed, "Enter")
    listed.click("#sort-took")
    expect(listed.locator("[data-row]").first).to_contain_text("s3")

    assert listed.evaluate("window.stayed")
    assert asked(listed) == "?sort=-took"
    press(listed, "j", "Space")
    expect(listed.locator("#peek")).to_contain_text("story 3")


def test_t_opens_the_times(listed):
    press(listed, "t")
    assert listed.evaluate("document.activeElement.textContent.trim()") == "15 min"
    listed.click("text=24 h")
    expect(listed.locator("details[data-key=t] summary")).to_contain_text("24 h")
    assert asked(listed) == "?range=24h"


def test_a_slow_search_says_so(listed):
    waiting: list[Route] = []
    listed.clock.install()
    listed.route("**/sessions?q=*", lambda route: waiting.append(route))

    listed.fill("#query", "status:ok")
    press(listed, "Enter")
    expect(listed.locator("#found")).to_have_class("busy htmx-request")
    expect(listed.locator("#slow")).to_be_empty()
    listed.clock.fast_forward(4100)
    expect(listed.locator("#slow")).to_have_text("still searching, narrow the range (t)")
    expect(listed.locator("[data-row]")).to_have_count(4)

    waiting[0].continue_()
    expect(listed.locator("#slow")).to_be_empty()


def test_a_failed_search_says_so_and_is_tried_again(listed):
    listed.route("**/sessions?q=*", lambda route: route.abort())
    listed.fill("#query", "session:s2")
    press(listed, "Enter")
    expect(listed.locator("#failed")).to_contain_text("the server could not be reached, since")
    expect(listed.locator("[data-row]")).to_have_count(4)

    listed.unroute("**/sessions?q=*")
    listed.evaluate("document.activeElement.blur()")
    press(listed, "r")

    expect(listed.locator("[data-row]")).to_have_count(1)
    expect(listed.locator("#failed")).to_be_empty()


def test_suggestions_complete_the_last_part(listed):
    listed.focus("#query")
    listed.keyboard.type("status:ok model:openai")

    expect(listed.locator("#query-keys option").first).to_have_attribute("value", "status:ok model:openai:gpt-4o")


@looks
def test_new_states_are_accessible_fit_and_obey_the_policy(listed, live_server, shop, scheme, width):
    odd = [{"code": "x", "message": HOSTILE * 4, "steps": [1, 2]}]
    make_session(shop, "h" * 300, input_preview=HOSTILE * 9, story=HOSTILE * 4, anomalies=odd, user_id=HOSTILE)
    complaints: list[str] = []
    listed.on("console", lambda message: complaints.append(message.text) if "400" not in message.text else None)
    listed.set_viewport_size({"width": width, "height": 800})
    listed.emulate_media(color_scheme=scheme)

    for address in (f"?peek={'h' * 300}", "?select=page&peek=s1", "?sort=-took&range=7d", "?peek=none", "?from=x"):
        listed.goto(f"{live_server.url}{LIST}{address}")
        if "sort" in address:
            press(listed, "t")
        problems = Axe().run(listed).response["violations"]
        assert (address, [(found["id"], found["nodes"][0]["html"]) for found in problems]) == (address, [])
        assert listed.evaluate("document.documentElement.scrollWidth") <= width, address
    assert complaints == []


def test_all_of_it_works_without_scripts(browser, live_server, shop):
    make_user("bob", shop)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    arrive(page, live_server.url + LIST)

    page.locator("a.peek-link").nth(1).click()
    expect(page.locator("#peek")).to_contain_text("story 1")
    page.click("[data-peek-close]")
    expect(page.locator("#peek")).not_to_be_visible()

    page.click("#sort-took")
    expect(page.locator("[data-row]").first).to_contain_text("s3")
    page.check("[name=run][value=s3]")
    page.press("[name=run][value=s3]", "Enter")
    assert Replay.objects.count() == 0
    expect(page.locator("#notices")).to_contain_text("Choose an action")
    page.check("[name=run][value=s3]")
    page.click("text=Mark cold…")
    page.fill("[name=reason]", "gone")
    page.click("#bulk button[value=cold]")
    expect(page.locator("#notices")).to_contain_text("1 session is marked cold")

    page.click("text=All on this page")
    page.click("text=Queue replays")
    expect(page.locator("#notices")).to_contain_text("4 replays are queued")
    assert page.url.endswith("?sort=-took")
    context.close()


def test_facets_stand_beside_the_list_where_they_fit_and_columns_without_room_say_so(page: Page, live_server, shop):
    make_session(shop, "a", agent_name="desk")
    make_user("bob", shop)
    page.set_viewport_size({"width": 1280, "height": 800})
    arrive(page, live_server.url + LIST)

    facets, first = page.locator("#facets"), page.locator("td.c-state").first.bounding_box()
    expect(facets.get_by_text("desk")).to_be_visible()
    box = facets.bounding_box()
    assert box is not None
    assert first is not None
    assert box["x"] + box["width"] <= first["x"]
    page.get_by_text("Columns", exact=True).click()
    for name, is_said in (("agent", True), ("model", True), ("steps", False)):
        assert page.locator(f".no-room-{name}").is_visible() is is_said


@pytest.mark.parametrize("width", [1280, 1720, 390])
def test_the_failed_step_of_a_long_run_is_within_its_column(page: Page, live_server, shop, width: int):
    make_session(shop, "long", minutes_ago=0, strip="m" * 180 + "T", step_count=181)
    make_user("bob", shop)
    page.set_viewport_size({"width": width, "height": 800})
    arrive(page, live_server.url + LIST)

    mark = page.locator("tr", has_text="long").locator(".strip .failed").bounding_box()
    column = page.locator("tr", has_text="long").locator(".steps").bounding_box()

    assert mark is not None
    assert column is not None
    assert mark["width"] >= 1
    assert mark["x"] + mark["width"] <= column["x"] + column["width"]
