"""The reproduction workflow in Chromium: accessible in each state, by keys, and with scripts off."""

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from tests.web.browsing import arrive, looks, press
from tests.web.forked import ORDER, load_forked, load_parent, make_fork
from tests.web.making import HOSTILE, make_project, make_user
from tests.web.records import load_example, load_record, tool_step
from tests.web.test_workflow import address_of, make_diverged, make_replay

pytestmark = pytest.mark.django_db(transaction=True)


def make_states(shop) -> dict[str, str]:
    """A run for each branch of the workflow, by name."""
    parent, fixed, fresh = load_parent(shop), load_example(shop, "cancel_bug"), load_example(shop, "r_8821")
    make_diverged(parent)
    make_replay(fixed)
    make_fork(fixed, 2, produced_run=load_forked(shop, parent=fixed.run_id, run_id="fork_2"))
    limited = load_example(shop, "price_429")
    make_replay(limited, 1, "ran_past_recording", divergence={"step": 3})
    hostile = [tool_step("x" * 200, arguments={"day": f"today {HOSTILE}"}, result=HOSTILE * 9)]
    odd = load_record(shop, run_id="y" * 200, session_id="odd", model=HOSTILE * 4, steps=hostile)
    order = ORDER | {"expect": {"contains": HOSTILE * 6}}
    make_fork(odd, order=order, fork_id="odd", expectation_met=False)
    cold = load_record(shop, run_id="cold", session_id="cold", steps=[tool_step(result=None)])
    runs = {"no": parent, "fixed": fixed, "fresh": fresh, "limited": limited, "odd": odd, "cold": cold}
    return {name: address_of(run) for name, run in runs.items()}


@looks
def test_the_workflow_is_accessible_fits_and_obeys_the_policy(page: Page, live_server, scheme, width):
    shop = make_project()
    make_user("bob", shop)
    states = make_states(shop)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    arrive(page, f"{live_server.url}/p/shop/sessions")

    for name, address in states.items():
        page.goto(live_server.url + address)
        page.evaluate("document.querySelectorAll('#main details').forEach((each) => (each.open = true))")
        violations = Axe().run(page).response["violations"]
        assert (name, [(each["id"], each["nodes"][0]["html"]) for each in violations]) == (name, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
    assert complaints == []


def test_enter_does_the_next_step(page: Page, live_server):
    shop = make_project()
    make_user("bob", shop)
    run = load_parent(shop)
    make_diverged(run)
    arrive(page, live_server.url + address_of(run))

    press(page, "Enter")

    page.wait_for_url("**/replays/rp_*")
    assert run.replays.count() == 2


def test_a_new_attempt_is_made_without_scripts(browser: Browser, live_server):
    shop = make_project()
    make_user("bob", shop)
    run = load_parent(shop)
    make_diverged(run)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    arrive(page, f"{live_server.url}/p/shop/sessions")

    page.goto(f"{live_server.url}/p/shop/s/chat_1")
    page.click("css=.tried-ways >> text=reproduction")
    page.click("#step-6 button")

    assert "/p/shop/replays/rp_" in page.url
    assert run.replays.count() == 2
    context.close()
