"""Placeholders of redaction are chips; everything that only looks like one is text."""

import pytest
from django.urls import reverse

from sessions_app.core.redaction.builtin import BUILT_IN_RULES
from sessions_app.templatetags.recorded import recorded, visible
from tests.web.making import client_of, make_project, make_user
from tests.web.records import load_record, tool_step


@pytest.mark.parametrize("rule", sorted({rule.name for rule in BUILT_IN_RULES}))
def test_a_placeholder_is_a_chip(rule):
    title = f"redacted: {rule}; equal chips stand for the same value"

    assert recorded(f"to [{rule}:1a2b3c4d]!") == f'to <span class="redacted" title="{title}">{rule}:1a2b3c4d</span>!'


@pytest.mark.parametrize(
    "text",
    ["[email:1a2b3c4]", "[email:1a2b3c4d5]", "[EMAIL:1a2b3c4d]", "[order:12345678]", "[email:1a2b3c4g]", "[email:]"],
)
def test_what_only_looks_like_one_is_text(text):
    assert recorded(text) == text


def test_text_around_a_chip_stays_escaped_and_visible():
    shown = recorded("<b>[email:1a2b3c4d]</b>\u202e[jwt:00000000]")

    assert shown.startswith("&lt;b&gt;<span")
    assert "&lt;/b&gt;" in shown
    assert ">RLO<" in shown
    assert shown.count('class="redacted"') == 2


def test_titles_hold_the_placeholder_as_text():
    assert visible("[email:1a2b3c4d]") == "[email:1a2b3c4d]"


@pytest.mark.django_db
def test_the_same_value_is_the_same_chip_wherever_it_stands():
    shop = make_project()
    steps = [tool_step(arguments={"to": "ann@example.com"}, result={"ann@example.com": ["sent to ann@example.com"]})]
    run = load_record(shop, input="write to ann@example.com", steps=steps)
    bob = client_of(make_user("bob", shop))

    page = bob.get(reverse("session", args=["shop", run.session.session_id])).content.decode()

    chips = {part.partition("<")[0] for part in page.split('equal chips stand for the same value">')[1:]}
    assert len(chips) == 1
    assert page.count('class="redacted"') >= 4  # asked, arguments, a key and a text of the result
    assert "ann@example.com" not in page
