"""Makes the screenshots of the documentation from the example incidents of a fresh server.

    REPLAY_HOME=/tmp/shots PORT=8010 python3 manage.py up &
    .venv/bin/python docs/screenshots.py /tmp/shots

It replays an example and asks what if, so the server should be a throwaway one. Needs Chromium: `playwright install
chromium`, or its path in CHROMIUM.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from urllib.parse import urljoin

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent / "images"
SIZE = ViewportSize(width=1280, height=800)
SECONDS = 4
"""For each picture of the walk."""
SESSION = "p/examples/s/chat_7710_1117"
EDITED = '[{"order": "#4398", "user_id": "u_7710", "item": "Travel kettle", "status": "processing"}]'
SAID = "Your Travel kettle, order #4398, is being processed."


def main(home: Path) -> None:
    said = json.loads((home / "connection.json").read_text())
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM"))
        page = browser.new_page(base_url=said["url"], viewport=SIZE, color_scheme="light")
        sign_in(page, said)
        shots = [shot(page) for shot in (sessions, session, replay, what_if, diff)]
        browser.close()
    (IMAGES / "walk.svg").write_text(walk(shots))


def sign_in(page: Page, said: dict[str, str]) -> None:
    page.goto("/sign-in")
    page.fill("[name=username]", said["username"])
    page.fill("[name=password]", said["password"])
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda address: "/sign-in" not in address)


def sessions(page: Page) -> bytes:
    page.goto("/p/examples/sessions?q=order")
    return keep(page, "sessions")


def session(page: Page) -> bytes:
    page.goto(f"/{SESSION}")
    return keep(page, "session")


def replay(page: Page) -> bytes:
    page.goto(f"/{SESSION}")
    page.click("button:has-text('Replay')")
    page.wait_for_selector(".verdict-words:has-text('eproduced')", timeout=60_000)
    return keep(page, "report")


def what_if(page: Page) -> bytes:
    page.goto(f"/{SESSION}?step=3&what_if=form")
    page.fill("#in-result", EDITED)
    page.click("#what-if summary:text-is('Options')")
    page.click("text=Write the model's answer at step 4 now")
    page.fill("#in-answer_text", SAID)
    page.locator("#in-answer_text").blur()
    page.wait_for_selector("#foretold:has-text('ends at step 4')")
    page.click("#what-if button[value=queue]")
    page.wait_for_selector("#what-if a:has-text('Full diff')", timeout=60_000)
    page.evaluate("document.querySelector('#what-if').scrollIntoView()")
    return keep(page, "what-if")


def diff(page: Page) -> bytes:
    address = page.get_attribute("#what-if a:has-text('Full diff')", "href")
    page.goto(urljoin(page.url, address))
    return keep(page, "diff")


def keep(page: Page, name: str) -> bytes:
    """The same picture as JPEG, for the walk."""
    page.wait_for_load_state("networkidle")
    page.mouse.move(0, 0)
    page.screenshot(path=IMAGES / f"{name}.png")
    return page.screenshot(type="jpeg", quality=60)


def walk(shots: list[bytes]) -> str:
    """One after another, without end; the first alone for readers who asked for no motion."""
    whole, shown = len(shots) * SECONDS, 100 / len(shots)
    images = "".join(
        f'<image {_area()} style="animation-delay: {number * SECONDS}s" href="data:image/jpeg;base64,{_text(shot)}"/>'
        for number, shot in enumerate(shots)
    )
    style = (
        f"@keyframes turn {{ 0%, {shown}% {{ opacity: 1 }} {shown + 0.1}%, 100% {{ opacity: 0 }} }} "
        f"image {{ opacity: 0; animation: turn {whole}s infinite step-end }} image:first-of-type {{ opacity: 1 }} "
        "@media (prefers-reduced-motion: reduce) { image { animation: none } }"
    )
    box = f"0 0 {SIZE['width']} {SIZE['height']}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}"><style>{style}</style>{images}</svg>\n'


def _area() -> str:
    return " ".join(f'{name}="{length}"' for name, length in SIZE.items())


def _text(shot: bytes) -> str:
    return base64.b64encode(shot).decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
