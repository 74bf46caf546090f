"""Forks through the real engine and the pages: stopped, answered by hand, gone on; paused, stepped, edited."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse

from sessions_app.agents.process.sandbox import ChildPool
from sessions_app.models import Replay
from sessions_app.services import replay_work
from sessions_app.services.forks import request_fork
from sessions_app.services.replays import request_replay
from tests.web.making import match
from tests.web.records import load_example

pytestmark = pytest.mark.django_db(transaction=True)
ASKS_FOR_USER = {
    "kind": "model_answer",
    "step": 2,
    "value": {"tool_calls": [{"name": "lookup_order", "arguments": {"query": "my order", "user_id": "u_7710"}}]},
}


@pytest.fixture(scope="module")
def children() -> Iterator[ChildPool]:
    pool = ChildPool()
    yield pool
    pool.close()


def work(replay: Replay, children: ChildPool) -> Replay:
    assert replay_work.work_on(replay.pk, worker="a", children=children)
    replay.refresh_from_db()
    return replay


def page_of(client, replay):
    response = client.get(reverse("replay", args=["shop", replay.replay_id]))
    assert response.status_code == 200
    return response.content.decode()


def post(client, name, replay, page, **fields):
    token = match(r'name="stop" value="([^"]*)"', page)
    return client.post(reverse(name, args=["shop", replay.replay_id]), {"stop": token} | fields)


def title_of(page):
    return match(r'class="verdict-words"[^>]*>(.*?)</p>', page)


def test_a_fork_stops_is_answered_by_hand_twice_and_ends_as_expected(shop, bob, children):
    run = load_example(shop, "r_8821")
    order = {"at_step": 2, "changes": [ASKS_FOR_USER], "hypothesis": "It finds it.", "expect": {"contains": "#4398"}}
    replay = work(request_fork(run=run, order=order), children)

    at_tool = page_of(bob, replay)
    post(bob, "answer_by_hand", replay, at_tool, way="value", value='[{"order": "#4398"}]')
    at_model = page_of(bob, work(replay, children))
    post(bob, "answer_by_hand", replay, at_model, text="Your order is #4398.")
    ended = page_of(bob, work(replay, children))

    assert "the answer of lookup_order to" in title_of(at_tool)
    assert "args.user_id" in at_tool.replace("<wbr>", "")
    assert "the model&#x27;s answer is unknown" in title_of(at_model)
    assert "Expectation met, but the outcome was written by hand" in title_of(ended)
    assert "Your order is #4398." in re.sub(r"</?(ins|wbr)>", "", ended).replace("·", " ")
    assert (
        match(r'<table class="plain ends-of-both fork-steps">(.*?)</table>', ended).count("<span>by hand</span>") == 3
    )


def test_a_replay_pauses_goes_one_step_and_on_to_its_end(shop, bob, children):
    run = load_example(shop, "cancel_bug")
    replay = work(request_replay(run=run, order={"breakpoints": [{"tool": "cancel_order"}]}), children)

    paused = page_of(bob, replay)
    post(bob, "step_replay", replay, paused)
    stepped = page_of(bob, work(replay, children))
    post(bob, "continue_replay", replay, stepped)
    ended = page_of(bob, work(replay, children))

    assert "Paused before step 4: cancel_order" in title_of(paused)
    assert "tool cancel_order" in paused
    assert "Paused before step 5" in title_of(stepped)
    assert "Paused after one step." in stepped
    assert "Reproduced: same 5 steps" in title_of(ended)


def test_what_a_paused_replay_stands_at_is_edited_and_a_fork_goes_on(shop, bob, children):
    run = load_example(shop, "cancel_bug")
    replay = work(request_replay(run=run, order={"breakpoints": [{"tool": "cancel_order"}]}), children)

    post(bob, "answer_by_hand", replay, page_of(bob, replay), way="error", error="409 already shipped")
    fork = work(Replay.objects.get(mode="fork"), children)
    page = page_of(bob, fork)

    assert "the model&#x27;s answer is unknown" in title_of(page)
    assert "409 already shipped" in page
    assert "<span>by hand</span>" in match(r'<table class="plain ends-of-both fork-steps">(.*?)</table>', page)


def test_a_paused_fork_can_be_forked_and_read_where_it_stands(shop, bob, children):
    run = load_example(shop, "cancel_bug")
    order = {
        "at_step": 2,
        "changes": [{"kind": "instructions", "value": "Be careful."}],
        "hypothesis": "It asks first.",
        "expect": "It does not cancel.",
        "breakpoints": [{"step": 2}],
    }
    replay = work(request_fork(run=run, order=order), children)

    page = page_of(bob, replay)
    fork_page = bob.get(match(r'href="([^"]*/fork\?[^"]*)"', page).replace("&amp;", "&"))
    messages = bob.get(match(r'href="([^"]*view=messages[^"]*)"', page).replace("&amp;", "&"))

    assert "Paused before step 2: lookup_order" in title_of(page)
    assert fork_page.status_code == 200
    assert messages.status_code == 200
