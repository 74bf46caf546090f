"""The way of somebody who has never seen the product: by keyboard alone, and with scripts off."""

import json
import re
import urllib.request

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.instances import Instance
from tests.web.browsing import press

REPRODUCED = "Reproduced: same 3 steps, same answer"
NO_DIFFERENCE = re.compile(r"No difference in 3 steps, \d+ fields")


@pytest.fixture
def problems(page: Page) -> list[str]:
    """What the browser complained about; the content security policy speaks up here too."""
    found: list[str] = []
    page.on("console", lambda message: found.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda request: found.append(request.url) if "127.0.0.1" not in request.url else None)
    return found


def test_by_keyboard_alone(page: Page, running_instance: Instance, problems: list[str]):
    page.goto(running_instance.url)
    page.keyboard.type(running_instance.username)
    press(page, "Tab")
    page.keyboard.type(running_instance.password)
    press(page, "Enter")
    expect(page.get_by_role("heading", name="Now", exact=True)).to_be_visible()

    press(page, "Control+k")
    page.keyboard.type("r_8821")
    press(page, "Enter")
    expect(page.locator("main, header")).to_contain_text(["lookup_order was called without user_id"])

    press(page, "Shift+R")
    expect(page.get_by_text(REPRODUCED)).to_be_visible(timeout=30_000)
    expect(page.get_by_text("isolated: 0 network calls, 0 writes")).to_be_visible()

    press(page, "c")
    expect(page.locator(".story").get_by_text(NO_DIFFERENCE)).to_be_visible()
    assert problems == []


def test_with_scripts_off(browser: Browser, running_instance: Instance):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(running_instance.url)
    page.fill("[name=username]", running_instance.username)
    page.fill("[name=password]", running_instance.password)
    page.get_by_role("button", name="Sign in").click()

    page.get_by_role("link", name="Sessions").first.click()
    page.get_by_role("link", name="chat_7710_1117").click()
    expect(page.get_by_text("lookup_order was called without user_id").first).to_be_visible()
    page.get_by_role("button", name=re.compile("^Replay")).click()
    for _ in range(60):
        if page.get_by_text(REPRODUCED).count():
            break
        page.wait_for_timeout(500)
        page.reload()
    expect(page.get_by_text(REPRODUCED)).to_be_visible()
    expect(page.get_by_text("isolated: 0 network calls, 0 writes")).to_be_visible()

    page.get_by_role("link", name=re.compile("diff", re.IGNORECASE)).first.click()
    expect(page.locator(".story").get_by_text(NO_DIFFERENCE)).to_be_visible()
    context.close()


def test_a_replay_that_differs_is_never_called_reproduced(page: Page, running_instance: Instance):
    """The control: the same way with one changed byte in the recorded tool answer ends otherwise."""

    def call(path: str, body: bytes | None = None) -> dict[str, object]:
        request = urllib.request.Request(
            running_instance.url + path, data=body, headers={"Authorization": f"Bearer {running_instance.api_key}"}
        )
        with urllib.request.urlopen(request) as answer:
            return dict(json.load(answer))

    record = call("/api/v1/runs/r_8821/record")
    record |= {"run_id": "r_8821_tampered", "session_id": "tampered"}
    record["steps"][2]["result"][0]["order"] = "#4422"
    call("/api/v1/runs", json.dumps(record).encode())

    page.goto(f"{running_instance.url}/p/examples/s/tampered")
    page.fill("[name=username]", running_instance.username)
    page.fill("[name=password]", running_instance.password)
    press(page, "Enter")
    page.get_by_role("button", name=re.compile("^Replay")).click()

    verdict = 'Diverged at step 4: order in message 3: "#4421" → "#4422"'
    expect(page.get_by_text(verdict)).to_be_visible(timeout=30_000)
    expect(page.get_by_text(REPRODUCED)).to_have_count(0)
