"""What a chat shows for a pasted address."""

import pytest
from django.test import Client

from sessions_app.services.sharing import create_link
from tests.web.making import HOSTILE, make_user, match
from tests.web.records import load_example, load_record

pytestmark = pytest.mark.django_db


def preview(address):
    """Title and description, as a stranger gets them."""
    page = Client().get(address, follow=True).content.decode()
    return tuple(match(rf'<meta property="og:{name}"\s+content="([^"]*)"', page) for name in ("title", "description"))


@pytest.mark.parametrize(
    ("address", "title"),
    [
        ("/p/shop/s/chat_7710_1117", "A recorded session"),
        ("/p/shop/s/chat_7710_1117?step=2", "Step 2 of a recorded session"),
        ("/p/shop/s/chat_7710_1117/steps/3", "Step 3 of a recorded session"),
        ("/p/shop/s/none-such?step=%3Cb%3E", "A recorded session"),
        ("/p/shop/diff/r_8821...other", "A comparison of two runs"),
    ],
)
def test_a_page_behind_the_sign_in_says_what_kind_it_is_and_nothing_else(shop, address, title):
    load_example(shop, "r_8821")

    assert preview(address) == (title, "Sign in to Incident replay to open it.")


def test_other_pages_name_the_product():
    assert preview("/sign-in")[0] == preview("/nothing-here")[0] == "Incident replay"


def test_a_shared_page_says_how_long_the_run_is_and_nothing_recorded(shop):
    run = load_record(shop, session_id="secret-session", input=HOSTILE, agent={"name": "secret-agent"})
    link, token = create_link(run=run, user=make_user("ann", shop))

    title, description = preview(f"/shared/{token}")

    assert title == "A recorded run of 0 steps"
    assert description == f"Shared read-only until {link.expires_at:%-d %B %Y}."
