"""Each thing that people do here, by the keyboard alone: no mouse, and no focus that a script or a test sets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.models import Replay
from sessions_app.services import replay_work
from tests.web.making import make_user
from tests.web.records import load_example

pytestmark = pytest.mark.django_db(transaction=True)
_FURTHEST = 120
"""Presses of Tab to whatever is on a page."""


@dataclass
class Keyboard:
    page: Page
    url: str
    children: ChildPool

    def press(self, *keys: str) -> None:
        self.page.wait_for_load_state()
        for key in keys:
            self.page.keyboard.press(key)

    def reach(self, control: str, key: str = "Tab") -> None:
        """As whoever sees no other way: from one control to the next."""
        self.page.wait_for_load_state()
        for _ in range(_FURTHEST):
            self.page.keyboard.press(key)
            if self.page.evaluate("(control) => document.activeElement.matches(control)", control):
                return
        raise AssertionError(f"Tab leads to no {control} on {self.page.url}")

    def type(self, text: str, *then: str) -> None:
        """Instead of what stands in the field that has the focus."""
        self.press("Control+a")
        self.page.keyboard.type(text)
        self.press(*then)

    def fill(self, field: str, text: str, *then: str) -> None:
        self.reach(field)
        self.type(text, *then)

    def go(self, *keys: str, to: str) -> None:
        self.press(*keys)
        self.page.wait_for_url(re.compile(to))
        self.page.wait_for_load_state()

    def focus(self, control: str) -> None:
        """The focus is there without anybody having gone to it."""
        expect(self.page.locator(control).first).to_be_focused()

    def shows(self, text: str, where: str = "#main") -> None:
        expect(self.page.locator(where).first).to_contain_text(text)

    def open_first_row(self) -> None:
        self.press("g", "s")
        expect(self.page.locator("[data-row]").first).to_be_visible()
        self.go("j", "Enter", to="/s/")

    def work(self) -> None:
        """What a worker does with the newest replay, once the browser's request has queued it."""
        for _ in range(50):
            newest = Replay.objects.order_by("pk").last()
            if newest and replay_work.work_on(newest.pk, worker="a", children=self.children):
                return
            self.page.wait_for_timeout(100)
        raise AssertionError("No replay was queued")


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


@pytest.fixture
def keyboard(page: Page, live_server, shop, children) -> Keyboard:
    """Somebody who administers the project has signed in."""
    make_user("bob", shop, "admin")
    keyboard = Keyboard(page, live_server.url, children)
    page.goto(f"{live_server.url}/p/shop/sessions")
    keyboard.focus("[name=username]")
    keyboard.type("bob", "Tab")
    keyboard.type("right")
    keyboard.go("Enter", to="/p/shop/sessions$")
    return keyboard


def test_a_session_is_found_read_tagged_noted_and_marked_cold(keyboard, shop):
    load_example(shop, "r_8821")
    keyboard.press("Control+k")
    keyboard.type("r_8821")
    keyboard.go("Enter", to="/s/chat_7710")
    for key, view in (("2", "timeline"), ("3", "messages"), ("4", "state"), ("5", "raw"), ("1", "steps")):
        keyboard.go(key, to=f"view={view}")
    keyboard.go("J", to="step=4")
    keyboard.reach("#panel a[href*='/steps/']")
    keyboard.go("Enter", to="/steps/")
    keyboard.go("Escape", to="step=")

    keyboard.press("T")
    keyboard.type("payments", "Enter")
    keyboard.shows("payments", "#tags")
    keyboard.focus("#tags [name=add]")
    keyboard.press("Escape", "M")
    keyboard.type("The user id is missing.")
    keyboard.go("Control+Enter", to="#note-")
    keyboard.press("m")
    keyboard.type("Here.", "Control+Enter")
    keyboard.shows("Here.", "#panel")
    keyboard.reach(".head-next .menu > summary")
    keyboard.press("Enter")
    keyboard.reach(".submenu:has(.menu-form) > summary")
    keyboard.press("Enter")
    keyboard.fill(".menu-form textarea", "No access to the old index.", "Control+Enter")
    keyboard.shows("No access to the old index.", ".kit-why")

    keyboard.go("g", "s", to="/sessions")
    keyboard.press("/")
    keyboard.type("reason:index")
    keyboard.go("Enter", to="q=reason")
    keyboard.shows("chat_7710", "[data-row]")


def test_a_run_is_replayed_reported_and_compared(keyboard, shop):
    load_example(shop, "r_8821")
    keyboard.press("Control+k")
    keyboard.type("r_8821")
    keyboard.go("Enter", to="/s/chat_7710")
    keyboard.go("Shift+R", to="/replays/rp_")
    keyboard.work()
    keyboard.shows("Reproduced", ".verdict-words")
    keyboard.press("y")
    keyboard.focus("#replay .menu-list button")
    keyboard.press("Escape")
    keyboard.focus("#replay .menu > summary")
    keyboard.go("c", to="/diff/")
    keyboard.go("m", to="mode=unified")

    keyboard.open_first_row()
    keyboard.press("c")
    keyboard.focus("a[href*='/diff/']")
    keyboard.go("Enter", to="/diff/")


def test_what_if_and_a_fork_change_a_tools_answer(keyboard, shop):
    load_example(shop, "cancel_bug")
    keyboard.open_first_row()
    keyboard.reach(".steps a[href*='step=2']")
    keyboard.go("Enter", to="step=2")
    keyboard.press("w")
    keyboard.focus("#in-result")
    keyboard.type("[]", "Control+Enter")
    keyboard.shows("queued", "#what-if")
    keyboard.work()
    keyboard.focus("#what-if textarea")
    keyboard.type("There is no such order.", "Control+Enter")
    keyboard.work()
    keyboard.shows("There is no such order.", "#what-if")

    keyboard.go("Escape", to="step=2$")
    keyboard.go("f", to="/fork")
    keyboard.fill("#in-result", "[]")
    keyboard.fill("#in-hypothesis", "An empty answer is not understood.")
    keyboard.go("Control+Enter", to="/replays/rp_")
    keyboard.work()
    keyboard.shows("Stopped at step 3", ".verdict-words")


def test_a_golden_is_made_run_and_found_among_failure_groups(keyboard, shop):
    load_example(shop, "r_8821")
    keyboard.open_first_row()
    keyboard.go("l", to="/golden")
    keyboard.fill("[name=name]", "asks with a user id")
    keyboard.reach("[name=check][value='1']")
    keyboard.press("Space")
    keyboard.reach(".golden-runs-how > summary")
    keyboard.press("Enter")
    keyboard.reach("[name=mode]")
    keyboard.press("ArrowDown", "ArrowDown")
    keyboard.go("Control+Enter", to="/goldens/")
    keyboard.reach("form[action$='/run'] button")
    keyboard.press("Enter")
    keyboard.work()
    keyboard.shows("failed", "#golden-known .golden-runs")
    keyboard.go("g", "g", to="/goldens$")
    keyboard.press("Shift+G")
    keyboard.go("Control+Enter", to="/golden-batches/")
    keyboard.go("Escape", to="/goldens$")
    keyboard.reach("a[href$='/failures']")
    keyboard.go("Enter", to="/goldens/failures")


def test_settings_are_changed_and_pages_gone_to(keyboard, shop):
    load_example(shop, "r_8821")
    keyboard.go("g", "m", to="/costs")
    keyboard.reach("a[href*='by=agent']")
    keyboard.go("Enter", to="by=agent")
    keyboard.go("g", "t", to="/tools")
    keyboard.press("Control+k")
    keyboard.type("cost")
    keyboard.shows("Cost", "#palette")
    keyboard.go("Enter", to="/costs")

    keyboard.go("g", "e", to="/settings")
    keyboard.reach("form[action$='/invitations'] button")
    keyboard.press("Enter")
    keyboard.shows("/invitations/")
    keyboard.reach("a[href$='/prices']")
    keyboard.go("Enter", to="/prices")
    keyboard.fill("[name=model]", "gpt-4o*")
    keyboard.fill("[name=input_price]", "2.5")
    keyboard.fill("[name=output_price]", "10", "Enter")
    keyboard.shows("Price saved", "#notices")
    keyboard.reach("a[href$='/settings/models']")
    keyboard.go("Enter", to="/settings/models")
    keyboard.fill("[name=name]", "Claude")
    keyboard.reach("[name=provider]")
    keyboard.press("ArrowDown")
    keyboard.fill("[name=key]", "sk-1")
    keyboard.fill("[name=requests_per_day]", "5", "Enter")
    keyboard.shows("Connected Claude", "#notices")
