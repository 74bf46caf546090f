"""What people do in a browser, for the tests of pages."""

import os
from itertools import product
from urllib.parse import urljoin

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from playwright.sync_api import Page

from tests.web.making import client_of

_LOOKS = list(product((1280, 320), ("light", "dark")))
looks = pytest.mark.parametrize(
    ("width", "scheme"), _LOOKS if os.environ.get("TRIAL_SIZE") == "full" else [_LOOKS[0], _LOOKS[-1]]
)
"""Colours do not change with the width: each width and each scheme once, unless all of them are asked for."""


def arrive(page: Page, address: str, name: str = "bob") -> None:
    """Go to a page as somebody who has signed in before."""
    session = client_of(User.objects.get(username=name)).cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": urljoin(address, "/")}])
    page.goto(address)


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
