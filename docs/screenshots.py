"""Makes the screenshots of the documentation from the example incidents of a fresh server.

    REPLAY_HOME=/tmp/shots PORT=8010 python3 manage.py up &
    .venv/bin/python docs/screenshots.py /tmp/shots

It replays an example and asks what if, so the server should be a throwaway one. Needs Chromium: `playwright install
chromium`, or its path in CHROMIUM.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
SESSION = "p/examples/s/chat_7710_1117"
EDITED = '[{"order": "#4398", "user_id": "u_7710", "item": "Travel kettle", "status": "processing"}]'
SAID = "Your Travel kettle, order #4398, is being processed."


def main(home: Path) -> None:
    said = json.loads((home / "connection.json").read_text())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        page = browser.new_page(base_url=said["url"], viewport={"width": 1280, "height": 800}, color_scheme="light")
        sign_in(page, said)
        for shot in (sessions, session, replay, what_if, diff):
            shot(page)
        browser.close()


def sign_in(page: Page, said: dict[str, str]) -> None:
    page.goto("/sign-in")
    page.fill("[name=username]", said["username"])
    page.fill("[name=password]", said["password"])
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "/sign-in" not in address)


def sessions(page: Page) -> None:
    page.goto("/p/examples/sessions?q=order")
    keep(page, "sessions")


def session(page: Page) -> None:
    page.goto(f"/{SESSION}")
    keep(page, "session")


def replay(page: Page) -> None:
    page.goto(f"/{SESSION}")
    page.click("button:has-text('Replay')")
    page.wait_for_selector(".verdict-words:has-text('eproduced')", timeout=60_000)
    keep(page, "report")


def what_if(page: Page) -> None:
    page.goto(f"/{SESSION}?step=3&what_if=form")
    page.fill("#in-result", EDITED)
    page.click("text=Write the model's answer at step 4 now")
    page.fill("#in-answer_text", SAID)
    page.click("#what-if button[value=check]")
    page.wait_for_selector("#foretold:has-text('ends at step 4')")
    page.click("#what-if button[value=queue]")
    page.wait_for_selector("#what-if .is-end:has-text('Travel kettle')", timeout=60_000)
    page.evaluate("document.querySelector('#what-if').scrollIntoView()")
    keep(page, "what-if")


def diff(page: Page) -> None:
    address = page.get_attribute("#what-if a:has-text('Full diff')", "href")
    page.goto(urljoin(page.url, address))
    keep(page, "diff")


def keep(page: Page, name: str) -> None:
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
