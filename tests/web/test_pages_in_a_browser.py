"""Keys, live parts and accessibility, in Chromium."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sessions_app.models import Replay
from sessions_app.services.cold_cases import mark_cold
from tests.web.browsing import arrive, looks, press, sign_in
from tests.web.making import HOSTILE, make_project, make_session, make_user
from tests.web.records import load_example, load_record, tool_step

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = [
    "/p/shop/sessions",
    "/p/shop/sessions?q=status%3Aerrr",
    "/p/shop/sessions?q=user%3Anobody",
    "/p/empty/sessions",
    "/p/shop/cold",
    "/p/empty/cold",
    "/p/shop/",
    "/p/shop/costs",
    "/p/empty/costs",
    "/p/shop/sessions?overview=1",
    "/p/shop/settings",
    "/p/shop/settings/anomalies",
    "/p/shop/settings/prices",
    "/p/shop/settings/redaction",
    "/p/shop/settings/models",
    "/p/shop/storage",
    "/api/v1/docs",
    "/api/v1/docs/runs",
    "/p/shop/tools",
    "/p/empty/tools",
    "/p/shop/goldens",
    "/p/empty/goldens",
    "/p/shop/goldens/failures",
    "/p/empty/goldens/failures",
    "/p/shop/replays",
    "/p/shop/traces",
    "/p/shop/setup",
    "/p/empty/setup",
    "/find",
    "/find?q=none-such-id",
    "/me",
    "/p/nope/sessions",
]


@pytest.fixture
def signed_in(page: Page, live_server, shop) -> Page:
    user = make_user("bob", shop, "admin")
    user.is_superuser = True
    user.save()
    make_project("empty")
    arrive(page, f"{live_server.url}/p/shop/sessions")
    return page


def test_rows_are_walked_and_opened_by_keys(signed_in, live_server, shop):
    make_session(shop, "first", minutes_ago=1)
    make_session(shop, "second", minutes_ago=2)
    signed_in.goto(f"{live_server.url}/p/shop/sessions")

    press(signed_in, "j", "j", "j", "k")
    focused = signed_in.evaluate("document.activeElement.textContent")
    press(signed_in, "Enter")

    assert focused == "first"
    signed_in.wait_for_url("**/s/first*")


def test_keys_lead_from_page_to_page(signed_in, live_server):
    signed_in.goto(f"{live_server.url}/p/shop/setup")

    press(signed_in, "g", "c")
    signed_in.wait_for_url("**/cold")

    press(signed_in, "g", "s")
    signed_in.wait_for_url("**/sessions")


def test_keys_are_letters_while_typing(signed_in, live_server, shop):
    make_session(shop, "s")
    signed_in.goto(f"{live_server.url}/p/shop/sessions")

    press(signed_in, "/")
    signed_in.keyboard.type("jg?d")

    assert signed_in.input_value("#query") == "jg?d"
    expect(signed_in.locator("#keys")).not_to_be_visible()


def test_the_sheet_of_keys_opens_and_closes(signed_in, live_server):
    signed_in.goto(f"{live_server.url}/p/shop/cold")

    press(signed_in, "?")
    expect(signed_in.locator("#keys")).to_be_visible()
    press(signed_in, "Escape")
    expect(signed_in.locator("#keys")).not_to_be_visible()


def test_single_keys_can_be_switched_off(signed_in, live_server):
    signed_in.goto(f"{live_server.url}/me")
    signed_in.uncheck("[name=keys]")
    signed_in.get_by_role("button", name="Save").click()
    expect(signed_in.locator("html")).to_have_attribute("data-key-hints", "off")

    press(signed_in, "?")
    expect(signed_in.locator("#keys")).not_to_be_visible()
    press(signed_in, "Control+k")
    assert signed_in.evaluate("document.activeElement.name") == "q"


def test_what_arrives_is_shown_without_reloading(signed_in, live_server, shop):
    signed_in.goto(f"{live_server.url}/p/shop/setup")
    expect(signed_in.locator("#waiting")).to_contain_text("waiting for the first session")

    make_session(shop, "chat_1")

    expect(signed_in.locator("#waiting")).to_contain_text("received chat_1")


def test_new_rows_wait_until_they_are_asked_for(signed_in, live_server, shop):
    make_session(shop, "old", minutes_ago=10)
    signed_in.goto(f"{live_server.url}/p/shop/sessions")

    make_session(shop, "fresh", minutes_ago=1)

    expect(signed_in.locator("#newer")).to_contain_text("1 new")
    expect(signed_in.locator("[data-row]")).to_have_count(1)
    press(signed_in, ".")
    expect(signed_in.locator("[data-row]")).to_have_count(2)


def test_signed_out_is_said_where_the_person_looks(signed_in, live_server):
    signed_in.set_viewport_size({"width": 1280, "height": 400})
    signed_in.goto(f"{live_server.url}/p/shop/setup?tab=curl")
    signed_in.evaluate("scrollTo(0, document.body.scrollHeight)")
    signed_in.context.clear_cookies()

    back = signed_in.get_by_role("link", name="sign in and return here")
    expect(signed_in.locator("#notices")).to_contain_text("You are signed out")
    expect(signed_in.locator(".live")).to_have_text("stopped")
    expect(back).to_be_in_viewport()
    expect(back).to_have_attribute("href", "/sign-in?next=%2Fp%2Fshop%2Fsetup%3Ftab%3Dcurl")


def test_load_more_adds_rows_in_place(signed_in, live_server, shop):
    for number in range(51):
        make_session(shop, f"s{number}", minutes_ago=number)
    signed_in.goto(f"{live_server.url}/p/shop/sessions")

    press(signed_in, "l")

    expect(signed_in.locator("[data-row]")).to_have_count(51)


@looks
def test_pages_are_accessible_fit_and_obey_the_policy(signed_in, live_server, shop, scheme, width):
    run = make_session(shop, "x" * 300, input_preview=HOSTILE * 5, output_preview=None, user_id=HOSTILE, model="m" * 90)
    mark_cold(run=run, reason=HOSTILE * 9)
    make_session(shop, "older than the histogram", minutes_ago=60 * 24 * 90)
    complaints: list[str] = []
    signed_in.on("console", lambda message: complaints.append(message.text) if is_complaint(message.text) else None)
    signed_in.set_viewport_size({"width": width, "height": 800})
    signed_in.emulate_media(color_scheme=scheme)

    for address in PAGES:
        signed_in.goto(live_server.url + address)
        found = [
            (violation["id"], violation["nodes"][0]["html"])
            for violation in Axe().run(signed_in).response["violations"]
        ]
        assert (address, found) == (address, [])
        assert signed_in.evaluate("document.documentElement.scrollWidth") <= width, address
    assert complaints == []


def test_what_is_pressed_on_a_step_is_large_enough(signed_in, live_server, shop):
    run = load_example(shop, "r_8821")
    run.session.tags = ["T"]
    run.session.save()
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}?step=3")

    violations = Axe().run(signed_in, options={"runOnly": ["target-size"]}).response["violations"]

    assert [node["html"] for each in violations for node in each["nodes"]] == []


def is_complaint(text: str) -> bool:
    """Pages that answer 400 and 404 on purpose make Chromium say so."""
    return "Failed to load resource: the server responded with a status of 4" not in text


@pytest.mark.parametrize(
    ("typed", "first"),
    [
        ("sesions", "Sessions"),
        ("goldnes", "Goldens"),
        ("caht_7710", "chat_7710"),
        ("gol", "Golden"),
        ("tiemline", "Timeline"),
    ],
)
def test_the_palette_forgives_a_letter_and_leads_with_what_begins_so(signed_in, live_server, shop, typed, first):
    make_session(shop, "chat_7710")
    signed_in.goto(f"{live_server.url}/p/shop/s/chat_7710")

    signed_in.keyboard.press("Control+k")
    expect(signed_in.locator("#palette [role=option]:visible").first).to_be_visible()
    signed_in.keyboard.type(typed)

    expect(signed_in.locator("#palette [role=option]:visible").nth(1)).to_contain_text(first)


def test_the_palette_of_a_run_begins_with_replay_and_fork(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")

    signed_in.keyboard.press("Control+k")

    actions = signed_in.get_by_role("group", name="This page").locator("[data-words]")
    expect(actions.nth(0)).to_have_text("Replay")
    expect(actions.nth(1)).to_contain_text("Fork")


@pytest.mark.parametrize("width", [1280, 390])
def test_titles_of_failures_stand_in_one_line_and_are_whole(signed_in, live_server, shop, width):
    failed = [tool_step("cancel", error={"type": "IOError", "message": "refused"})]
    for name, error in (("a", "no answer"), ("b", "no answer"), ("c", "a long error that takes the width of it " * 3)):
        load_record(
            shop,
            run_id=name,
            session_id=name,
            status="error",
            error={"type": "IOError", "message": error},
            steps=failed,
        )
    signed_in.set_viewport_size({"width": width, "height": 800})
    for address in ("/p/shop/goldens/failures", "/p/shop/"):
        signed_in.goto(f"{live_server.url}{address}")
        titles = signed_in.locator(".failing-what")
        expect(titles).to_have_count(2)

        lefts = titles.evaluate_all("titles => titles.map((title) => title.getBoundingClientRect().left)")
        heads = signed_in.locator(".failing th[scope=row]")
        assert len(set(lefts)) == 1
        assert heads.evaluate_all("heads => heads.every((head) => head.scrollWidth <= head.clientWidth)")


def test_a_value_that_is_typed_ticks_its_check_which_is_judged_at_once(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}/golden")
    tick, beside = signed_in.locator("[name=check][value='0']"), signed_in.locator("#judged-0")
    expect(beside).to_contain_text("passed")
    expect(tick).not_to_be_checked()

    signed_in.fill("[name=value_0]", "an elephant")

    expect(tick).to_be_checked()
    expect(beside).to_contain_text("failed")
    expect(signed_in.locator("#tried")).to_contain_text("fails on 1")


def test_the_palette_finds_old_sessions_at_the_server_and_marks_what_was_typed(signed_in, live_server, shop):
    make_session(shop, "old_chat_55")
    for number in range(21):
        make_session(shop, f"chat_{number}")
    signed_in.goto(f"{live_server.url}/p/shop/")

    signed_in.keyboard.press("Control+k")
    signed_in.keyboard.type("old_c")

    found = signed_in.locator("#palette [role=option]:visible", has_text="old_chat_55")
    expect(found).to_have_count(1)
    assert found.locator("mark").all_text_contents()[:2] == ["old", "c"]
    signed_in.keyboard.press("ArrowDown")
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url("**/s/old_chat_55*")


def test_on_a_phone_the_steps_come_first_and_the_rest_waits_behind_a_switch(signed_in, live_server, shop):
    load_example(shop, "r_8821")
    signed_in.set_viewport_size({"width": 390, "height": 844})
    signed_in.goto(f"{live_server.url}/p/shop/s/chat_7710_1117")
    facts, first = signed_in.locator(".facts-line"), signed_in.locator(".steps tbody tr").first
    expect(facts).to_be_hidden()
    box = first.bounding_box()
    assert box
    assert box["y"] < 420

    signed_in.get_by_text("More", exact=True).click()

    expect(facts).to_be_visible()
    expect(signed_in.locator(".tried")).to_be_visible()


def test_the_top_box_is_a_palette_by_keys(signed_in, live_server, shop):
    """The first row is chosen; what is typed narrows it, and what is called so stands before the search."""
    make_session(shop, "chat_7710")
    signed_in.goto(f"{live_server.url}/p/shop/s/chat_7710")
    signed_in.keyboard.press("Control+k")
    expect(signed_in.locator("#palette [role=group]:visible").first).to_contain_text("Replay")
    titles = signed_in.locator("#palette [role=group]:visible").evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert titles == ["This page", "Go to", "Recent sessions", "Help"]
    expect(signed_in.locator("#palette [role=option]:visible").first).to_have_attribute("aria-selected", "true")
    expect(signed_in.locator("#palette [role=option]", has_text="Actions")).to_have_count(0)
    signed_in.keyboard.press("Escape")
    expect(signed_in.locator("#palette")).to_be_hidden()

    signed_in.keyboard.press("Control+k")
    signed_in.keyboard.type("cost")
    expect(signed_in.locator("#palette [aria-selected]")).to_have_text(re.compile("^Cost"))
    assert not Axe().run(signed_in, context="#palette").response["violations"]
    signed_in.keyboard.press("Enter")
    signed_in.wait_for_url("**/costs")


def test_the_palette_chooses_an_action_of_the_page_and_shows_no_session_without_a_match(signed_in, live_server, shop):
    make_session(shop, "chat_7710")
    make_session(shop, "room_for_two")
    signed_in.goto(f"{live_server.url}/p/shop/s/chat_7710?step=1")

    signed_in.keyboard.press("Control+k")
    expect(signed_in.locator("#palette [role=option]:visible").first).to_be_visible()
    signed_in.keyboard.type("fork")

    expect(signed_in.locator("#palette [role=option]:visible").first).to_contain_text("Fork")
    expect(signed_in.locator("#palette [aria-selected]")).to_contain_text("Fork from step 1")
    expect(signed_in.locator("#palette [data-sessions] [role=option]:visible")).to_have_count(0)


def test_everything_needed_works_without_scripts(browser, live_server, shop):
    make_user("ann", shop)
    make_session(shop, "chat_7710")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()

    sign_in(page, f"{live_server.url}/p/shop/sessions?q=status%3Aok", "ann")
    assert page.locator("[data-row]").count() == 1
    page.fill("[aria-label='Find an id or words']", "run chat_7710 failed")
    page.press("[aria-label='Find an id or words']", "Enter")

    assert "/p/shop/s/chat_7710" in page.url
    context.close()


def test_without_scripts_no_key_is_hinted_at_and_nothing_claims_to_be_live(browser, live_server, shop):
    make_user("ann", shop)
    run = load_example(shop, "r_8821")
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()

    sign_in(page, f"{live_server.url}/p/shop/replays/{replay.replay_id}", "ann")
    expect(page.get_by_text("live", exact=True)).not_to_be_visible()
    expect(page.get_by_role("link", name="Reload")).to_be_visible()
    page.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")
    expect(page.locator("kbd:visible")).to_have_count(0)
    page.get_by_text("Actions").click()
    page.locator("summary[data-key=y]").click()
    expect(page.locator("details[open] noscript p")).to_be_visible()
    context.close()


@pytest.mark.parametrize("key", ["c", "y"])
def test_a_menu_opened_by_its_key_takes_the_focus_and_tab_stays_in_it(signed_in, live_server, shop, key):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")

    press(signed_in, key)
    is_inside = "document.activeElement.closest('details.menu[open] .menu-list') !== null"
    opened = signed_in.evaluate(is_inside)
    press(signed_in, "Tab")

    assert (opened, signed_in.evaluate(is_inside)) == (True, True)
    press(signed_in, "Escape")
    assert signed_in.evaluate("document.activeElement.textContent.trim()") == "Actions"


def test_escape_in_a_field_of_a_menu_closes_the_menu(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")

    press(signed_in, "c")
    signed_in.locator("[name=with]").focus()
    press(signed_in, "Escape")

    assert signed_in.evaluate("document.activeElement.textContent.trim()") == "Actions"
    expect(signed_in.locator("details.menu[open]")).to_have_count(0)


@pytest.mark.parametrize(("key", "leads_to"), [("f", "fork"), ("l", "golden"), ("s", "share")])
def test_the_keys_of_a_closed_menu_work(signed_in, live_server, shop, key, leads_to):
    run = load_example(shop, "cancel_bug")
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}?view=timeline")
    expect(signed_in.locator(f".menu-actions [data-key={key}]")).not_to_be_visible()

    press(signed_in, key)

    signed_in.wait_for_url(f"**/{leads_to}?*")


@pytest.mark.parametrize(("width", "top"), [(1280, 267), (390, 500)])
def test_the_head_of_a_session_leaves_the_page_to_its_steps(signed_in, live_server, shop, width, top):
    run = load_example(shop, "cancel_bug")
    signed_in.set_viewport_size({"width": width, "height": 800})
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")

    box = signed_in.locator(".steps tbody tr").first.bounding_box()

    assert box is not None
    assert box["y"] < top


def test_a_golden_can_be_kept_from_the_first_screenful(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.set_viewport_size({"width": 1280, "height": 800})
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}/golden")

    expect(signed_in.get_by_role("button", name="Keep")).to_be_in_viewport(ratio=1)


def test_the_steps_of_a_run_begin_in_the_first_screenful(signed_in, live_server, shop):
    run = load_example(shop, "cancel_bug")
    signed_in.set_viewport_size({"width": 1280, "height": 800})
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")

    tabs = signed_in.locator(".views").bounding_box()

    assert tabs is not None
    assert tabs["y"] < 500


def test_the_head_of_a_table_that_scrolls_covers_no_row(signed_in, live_server):
    signed_in.goto(f"{live_server.url}/me")

    head = signed_in.locator("#sign-ins thead th").first.bounding_box()
    row = signed_in.locator("#sign-ins tbody td").first.bounding_box()

    assert head is not None
    assert row is not None
    assert head["y"] + head["height"] <= row["y"]


def test_ctrl_enter_sends_the_form_of_a_golden_and_what_is_missing_is_said_beside_its_button(
    signed_in, live_server, shop
):
    load_record(shop, run_id="well", session_id="well", output="Yes.", steps=[tool_step()])

    signed_in.goto(f"{live_server.url}/p/shop/s/well/golden")
    signed_in.keyboard.press("Control+Enter")

    expect(signed_in.locator(".golden-save [role=alert]")).to_have_text("Tick at least one check.")


@pytest.mark.parametrize("width", [1280, 320])
def test_of_many_runs_the_one_that_was_asked_for_is_in_sight(signed_in, live_server, shop, width):
    for number in range(1, 13):
        load_record(shop, run_id=f"turn_{number}", session_id="chat", input=f"Question {number}, and some words more")
    signed_in.set_viewport_size({"width": width, "height": 800})

    signed_in.goto(f"{live_server.url}/p/shop/s/chat?run=turn_9&view=messages")

    expect(signed_in.locator(".turn-shown")).to_be_in_viewport()
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= width
    tab = signed_in.locator(".runs [aria-current]").bounding_box()
    assert tab is not None
    assert 0 <= tab["x"] < width


def test_the_box_of_the_bar_has_room_for_an_id(signed_in, live_server, shop):
    run = load_record(shop)
    Replay.objects.create(project=shop, run=run, content=run.content, number=1)
    signed_in.set_viewport_size({"width": 1280, "height": 800})

    signed_in.goto(f"{live_server.url}/p/shop/sessions")

    box = signed_in.locator(".bar-find").bounding_box()
    assert box is not None
    assert box["width"] >= 240


@pytest.mark.parametrize(("address", "words"), [("costs", "Cost"), ("settings", "Settings"), ("tools", "Tools")])
def test_on_a_phone_the_page_that_one_is_on_is_in_view_in_the_row_of_pages(signed_in, live_server, address, words):
    signed_in.set_viewport_size({"width": 390, "height": 844})

    signed_in.goto(f"{live_server.url}/p/shop/{address}")

    place = signed_in.locator(".bar-nav [aria-current]")
    expect(place).to_have_text(words)
    box = place.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390 - 28


def test_names_of_steps_are_whole_where_there_is_room(page, live_server, shop):
    make_user("bob", shop)
    steps = [tool_step("reindex_shard_of_cluster", arguments={"shard": at}) for at in range(8)]
    load_record(shop, steps=[*steps, tool_step("done")])
    arrive(page, f"{live_server.url}/p/shop/s/chat_1?step=9")

    for view in ("steps", "timeline"):
        page.goto(f"{live_server.url}/p/shop/s/chat_1?step=9&view={view}")
        cut = page.locator(".steps .name .cut, .fold .small, .steps th")
        assert all(cut.evaluate_all("all => all.map(each => each.scrollWidth <= each.clientWidth)"))


def test_a_printed_session_has_its_steps_first_and_no_way_to_unfold_them(page, live_server, shop):
    make_user("bob", shop)
    load_example(shop, "run_xyz789")
    arrive(page, f"{live_server.url}/p/shop/s/chat_4630_1119?step=41")

    page.emulate_media(media="print")

    steps, panel = (page.locator(each).bounding_box() for each in (".steps", "#panel"))
    assert steps["y"] + steps["height"] <= panel["y"]
    expect(page.locator(".fold")).to_contain_text("same arguments, same empty result")
    assert page.get_by_text("unfold").locator("visible=true").count() == 0
