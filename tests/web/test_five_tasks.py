"""What an engineer on call does each day, by keyboard, with the actions counted.

An action is a key or a click, or a text typed and sent.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.core.test_trouble_in_the_middle import migrations
from tests.web.browsing import arrive
from tests.web.making import make_user
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Hands:
    page: Page
    actions: int = 0

    def press(self, key: str) -> None:
        self.actions += 1
        self.page.wait_for_load_state()
        self.page.keyboard.press(key)

    def send(self, text: str, key: str = "Enter") -> None:
        """Into the field that has the focus, whatever stands in it."""
        self.actions += 1
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(text)
        self.page.keyboard.press(key)

    def click(self, what: Locator) -> None:
        self.actions += 1
        what.click()


@pytest.fixture
def hands(page: Page, live_server, shop) -> Hands:
    make_user("bob", shop)
    arrive(page, f"{live_server.url}/p/shop/")
    return Hands(page)


@pytest.mark.parametrize("run_id", ["job_4471", "r_8821"])
def test_an_id_leads_to_where_and_why_in_three_actions(hands, shop, run_id):
    load_example(shop, "r_8821")
    load_record(shop, run_id="job_4471", session_id="job", steps=migrations(74), output="All 100 tables were migrated.")
    where, why = {"job_4471": ("step 74 failed", "deadlock detected"), "r_8821": ("step 3", "without user_id")}[run_id]

    hands.press("Control+k")
    hands.send(run_id)

    expect(hands.page.locator(".top .story")).to_contain_text(where)
    expect(hands.page.locator("#main")).to_contain_text(why)
    expect(hands.page.locator(".steps .is-picked td").first).to_have_text(where.split()[1])
    expect(hands.page.locator("#panel h2").first).to_be_in_viewport()
    assert hands.actions <= 3


def test_a_bad_run_is_compared_with_a_good_one_in_three_actions(hands, shop, live_server):
    asked = {"input": "where is my order?", "agent": {"name": "order-lookup"}}
    good = tool_step("lookup_order", arguments={"user_id": "u_1"}, result={"order": "#1"})
    bad = tool_step("lookup_order", arguments={}, result={"order": "#2"})
    load_record(shop, run_id="good", session_id="yesterday", steps=[model_step(1), good], **asked)
    load_record(shop, run_id="bad", session_id="today", steps=[model_step(1), bad], **asked)
    hands.page.goto(f"{live_server.url}/p/shop/s/today")

    hands.press("c")
    expect(hands.page.locator("a[href$='bad...good']")).to_be_focused()
    hands.press("Enter")

    hands.page.wait_for_url("**/diff/**")
    expect(hands.page.locator(".head .story")).to_contain_text("user_id")
    assert hands.actions <= 3


def test_what_if_is_asked_in_four_actions_and_its_stop_is_foretold(hands, shop, live_server):
    run = load_example(shop, "cancel_bug")
    hands.page.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}?step=2")

    hands.press("w")
    expect(hands.page.locator("#foretold")).to_contain_text("Stops at step 3: the model's answer is unknown")
    expect(hands.page.locator("#in-result")).to_be_focused()
    hands.send("[]", "Control+Enter")

    expect(hands.page.locator("#what-if .state-queued")).to_be_visible()
    assert hands.actions <= 4


COMPLAINTS = {
    "kettle refund": "Please refund the kettle, it arrived broken.",
    "charged twice invoice 7788": "My card was charged twice for invoice 7788!",
    "cancel subscription": "I want to cancel my yearly subscription now",
    "wrong address parcel": "The parcel went to the wrong address in Porto.",
    "coupon SPRING20 not working": "Why is the coupon SPRING20 not accepted? It was not working yesterday either.",
    "password reset mail": "The mail to reset my password never came",
    "配送状況 4421": "注文番号4421の配送状況を教えてください。",
    "返品 靴": "先週買った靴を返品したいのですが、どうすればいいですか。",
    "طلبي 4421": "أين طلبي رقم 4421؟",
    "invoice company name": "Can the invoice be made out to the name of my company?",
}


def test_retold_words_find_eight_of_ten_complaints(hands, shop, live_server):
    for number, said in enumerate(COMPLAINTS.values()):
        load_record(shop, run_id=f"run_{number}", session_id=f"chat_{number}", input=said, steps=[model_step(1)])
    found = []
    for number, retold in enumerate(COMPLAINTS):
        hands.page.goto(f"{live_server.url}/p/shop/")
        hands.press("Control+k")
        hands.send(retold)
        hands.page.wait_for_url("**q=*")
        found.append(hands.page.locator("[data-row-link]").first.text_content() == f"chat_{number}")

    assert sum(found) >= 8
    assert found[6:8] == [True, True]


def test_a_run_is_handed_over_with_note_link_and_reason(hands, shop, live_server):
    """In five actions, the address being the link to the step; who takes over finds the run by the reason."""
    load_example(shop, "r_8821")
    hands.page.goto(f"{live_server.url}/p/shop/s/chat_7710_1117?step=3")

    hands.press("m")
    hands.send("user_id is missing, see #3", "Control+Enter")
    hands.page.wait_for_url("**step=3#note-*")
    hands.click(hands.page.get_by_text("Actions"))
    hands.click(hands.page.get_by_text("Mark cold…"))
    hands.page.locator("[name=reason]").fill("The vendor changed its answers.")
    hands.click(hands.page.get_by_role("button", name="Mark cold", exact=True))
    expect(hands.page.locator(".kit")).to_contain_text("The vendor changed its answers.")
    assert hands.actions <= 5

    hands.press("Control+k")
    hands.send("reason:vendor")

    expect(hands.page.locator("[data-row-link]")).to_have_text(["chat_7710_1117"])
