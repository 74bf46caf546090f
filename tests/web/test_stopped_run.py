"""The page of a run that a fork made and that waits for an answer."""

import re

import pytest

from sessions_app.models import Membership, Run
from tests.web.forked import PAUSED, UNKNOWN, load_forked, load_parent, make_fork
from tests.web.making import match
from tests.web.records import model_step, tool_step

pytestmark = pytest.mark.django_db


def load_stopped(shop, stopped_at=UNKNOWN, **columns) -> Run:
    steps = [
        model_step(1),
        tool_step("lookup_order", arguments={"query": "my order"}, result={"orders": [1]}),
        tool_step("lookup_order", arguments={"query": "other"}, result={"orders": []}, source="by_hand"),
        {"kind": "tool", "tool_name": "lookup_order", "arguments": {"query": "my order"}, "source": "unknown"},
    ]
    made = load_forked(shop, steps=steps, output=None, status="cut_off")
    state = {"verdict": "unknown_from_step", "expectation_met": None, "divergence": None} | columns
    make_fork(load_parent(shop), stopped_at=stopped_at, produced_run=made, **state)
    return made


def page_of(client, made, view):
    return client.get("/p/shop/s/chat_1", {"run": made.run_id, "view": view}).content.decode()


def test_the_last_message_of_a_stopped_fork_says_where_and_why_and_what_it_was_last_told(shop, bob):
    made = load_stopped(shop)

    page = page_of(bob, made, "messages")

    last = match(r'<article class="message message-stopped">(.*?)</article>', page)
    assert "step=4" in last
    assert "The answer of lookup_order to query my order, tenant" in last
    assert "is unknown." in last
    assert "The last tool result was from" in last
    assert "step=3" in last
    assert "{&quot;orders&quot;: []}" in last
    assert "Answer and continue" in last
    assert "#in-on_difference" in last
    assert "Connect a model" in last
    assert "send the run&#x27;s output" not in page


def test_the_steps_of_a_stopped_fork_say_that_it_waits_and_not_that_something_was_not_captured(shop, bob):
    made = load_stopped(shop)

    page = page_of(bob, made, "steps")

    story = " ".join(re.sub(r"<[^>]+>", "", match(r'<p class="story">(.*?)</p>', page)).split())
    assert story.startswith("Stopped at step 4: the answer of lookup_order to query my order, tenant")
    assert "forked" in match(r'<dl class="facts">(.*?)</dl>', page)
    assert 'data-shown="4"' in page
    assert "started</dt>" not in page
    assert "this answer is unknown, and the run waits here for one" in page
    facts = match(r'<dl class="facts">(.*?)</dl>', page)
    assert [word for word in ("cut off", "stopped", "took") if word in facts] == []
    assert "This run was made by" not in page
    assert ">reproduction</a>" not in page
    row = match(r'(<tr id="s4".*?</tr>)', page)
    assert ("unknown" in row, "not captured" in row) == (True, False)
    assert "Next time:" not in page


def test_a_paused_run_offers_to_go_on(shop, bob):
    made = load_stopped(shop, PAUSED, state="paused", verdict=None)

    page = page_of(bob, made, "messages")

    assert "Before cancel_order." in page
    assert "Continue or edit" in page


def test_a_viewer_reads_where_it_stopped_and_is_offered_nothing(shop, bob):
    made = load_stopped(shop)
    Membership.objects.update(role="viewer")

    page = page_of(bob, made, "messages")

    assert "message-stopped" in page
    assert "Answer and continue" not in page


def test_a_fork_that_came_to_its_end_is_read_as_any_run(shop, bob):
    made = load_forked(shop)
    make_fork(load_parent(shop), produced_run=made)

    page = page_of(bob, made, "messages")

    assert "message-stopped" not in page
    assert "Which order id?" in page
