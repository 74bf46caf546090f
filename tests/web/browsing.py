"""What people do in a browser, for the tests of pages."""

from playwright.sync_api import Page


def sign_in(page: Page, address: str, name: str = "bob") -> None:
    """Go to a page as somebody who is asked first who they are."""
    page.goto(address)
    page.fill("[name=username]", name)
    page.fill("[name=password]", "right")
    page.press("[name=password]", "Enter")
    page.wait_for_url(address)


def press(page: Page, *keys: str) -> None:
    """On a page that has loaded: before that nobody listens to keys."""
    page.wait_for_load_state()
    for key in keys:
        page.keyboard.press(key)
