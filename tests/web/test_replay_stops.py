"""Where a replay waits for a person: stopped at what nothing knows, or paused at a breakpoint."""

import html
import json
import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.core.replay.parts import NOT_WITH_SDK
from sessions_app.models import Replay
from tests.web.browsing import arrive, looks, press
from tests.web.forked import ASKED, PAUSED, UNKNOWN, load_forked, load_parent, make_fork, make_paused, make_waiting
from tests.web.making import HOSTILE, client_of, make_user, match

pytestmark = pytest.mark.django_db
TOKEN = f"4-{ASKED}"


@pytest.fixture
def waiting(shop):
    return make_waiting(load_parent(shop), produced_run=load_forked(shop))


@pytest.fixture
def paused(shop):
    return make_paused(load_parent(shop), produced_run=load_forked(shop))


def page_of(client, replay):
    response = client.get(reverse("replay", args=["shop", replay.replay_id]))
    assert response.status_code == 200
    return response.content.decode()


def post(client, name, replay, **fields):
    return client.post(reverse(name, args=["shop", replay.replay_id]), {"stop": TOKEN} | fields)


def answers_of(replay):
    replay.refresh_from_db()
    return replay.course.get("answers", [])


# --- stopped at unknown ---------------------------------------------------------------------------


def test_a_stop_says_first_what_nothing_knows(waiting, bob):
    page = page_of(bob, waiting)

    words = match(r'<p class="verdict-words"[^>]*>(.*?)</p>', page)
    assert "Stopped at step 4: the answer of lookup_order to {&quot;query&quot;: &quot;my order&quot;" in words


def test_a_stop_within_a_tool_shows_the_request_that_it_sent(waiting, bob):
    assert "The request without a recorded answer" not in page_of(bob, waiting)
    sent = {"method": "POST", "url": "http://shop.test/book", "body": "n=7", "reason": "no exchange", "recorded": []}
    asked = {"tool": "lookup_order", "arguments": {}, "http": sent}
    Replay.objects.filter(pk=waiting.pk).update(facts=waiting.facts | {"asked_for": asked})

    page = page_of(bob, waiting).replace("<wbr>", "")

    assert "The request without a recorded answer" in page
    assert "POST http://shop.test/book n=7" in page
    assert 'class="answer-form"' in page


def test_a_request_with_another_body_shows_the_first_place_that_differs(waiting, bob):
    other = {"path": "body.count", "recorded": 61, "now": 72}
    sent = {
        "method": "POST",
        "url": "http://shop.test/book",
        "body": "{}",
        "reason": "x",
        "recorded": [],
        "other": other,
    }
    asked = {"tool": "lookup_order", "arguments": {}, "http": sent}
    found = {"step": 3, "path": "http.body.count", "recorded": 61, "replayed": 72}
    Replay.objects.filter(pk=waiting.pk).update(facts=waiting.facts | {"asked_for": asked}, divergence=found)

    page = page_of(bob, waiting).replace("<wbr>", "")

    assert "http.body.count" in page
    assert ">61<" in page
    assert ">72<" in page


def test_the_nearest_recording_marks_the_arguments_that_differ(waiting, bob):
    near = match(r'<h2 id="near-title">(.*?)</section>', page_of(bob, waiting))

    assert "args.user_id" in near.replace("<wbr>", "")
    assert "<del>&quot;u_7710&quot;</del>" in near
    assert "args.tenant" in near.replace("<wbr>", "")
    assert "args.query" not in near.replace("<wbr>", "")


def test_a_stop_does_not_poll_and_a_fork_that_has_ended_shows_no_form(shop, waiting, bob):
    ended = make_fork(waiting.run, 2)

    assert "hx-trigger" not in page_of(bob, waiting)
    assert 'class="answer-form"' in page_of(bob, waiting)
    assert 'class="answer-form"' not in page_of(bob, ended)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"way": "value", "value": '{"orders": [1.5]}'}, {"value": {"orders": [1.5]}}),
        ({"way": "value", "value": "nothing found"}, {"value": "nothing found"}),
        ({"way": "value", "value": '"42"'}, {"value": "42"}),
        ({"way": "error", "error": "429"}, {"error": {"message": "429", "crashes": False}}),
        ({"way": "crash", "error": "boom"}, {"error": {"message": "boom", "crashes": True}}),
        ({"way": "not_found"}, {"not_found": True}),
    ],
)
def test_an_answer_by_hand_lets_the_same_replay_go_on(waiting, bob, fields, kept):
    response = post(bob, "answer_by_hand", waiting, **fields)

    assert response["Location"] == reverse("replay", args=["shop", waiting.replay_id])
    assert answers_of(waiting) == [{"at": 4, "asked": ASKED} | kept]
    assert (waiting.state, waiting.verdict) == ("queued", None)


def test_a_model_that_nothing_answers_is_offered_what_was_recorded_there(shop, bob):
    stop = UNKNOWN | {"kind": "model", "name": "gpt-4o", "arguments": None, "nearest": []}
    waiting = make_waiting(load_parent(shop), stopped_at=stop, produced_run=load_forked(shop))
    box = r'<textarea name="text"[^>]*>\s*(.*?)</textarea>'

    page = page_of(bob, waiting)
    link = html.unescape(match(r'href="([^"]*use=recorded[^"]*)"', page))
    used = bob.get(link).content.decode()

    said = html.unescape(match(r'Recorded here:</span> <span class="recorded words">(.*?)</span>', page))
    assert said
    assert (match(box, page), html.unescape(match(box, used))) == ("", said)
    assert "Its last message" in page
    assert match(r'<h3>Its last message</h3>\s*<article class="message message-(\w+)', page)
    assert "part_kind" not in match(r"<h3>Its last message</h3>(.*?)<h3>State", page)
    assert "Answer it here, or <a" in page


def test_edit_and_continue_begins_with_the_recorded_result(shop, bob):
    at_3 = PAUSED | {"at": 3, "step": 3, "name": "lookup_order"}
    paused = make_paused(load_parent(shop), stopped_at=at_3)

    typed = html.unescape(match(r'<textarea name="value"[^>]*>\s*(.*?)</textarea>', page_of(bob, paused)))

    assert json.loads(typed) == {"orders": [2]}


def test_the_answer_of_a_twin_is_one_press(waiting, bob):
    page = page_of(bob, waiting)
    run_id = match(r'name="run_id" value="([^"]*)"', page)

    post(bob, "answer_by_hand", waiting, run_id=run_id, step="2")

    (given,) = answers_of(waiting)
    assert (given["twin"], given["value"]) == ({"run_id": "parent", "step": 2}, {"orders": [1]})


def test_a_twin_that_is_not_there_is_refused_in_words(waiting, bob):
    response = bob.post(
        reverse("answer_by_hand", args=["shop", waiting.replay_id]),
        {"stop": TOKEN, "run_id": "gone", "step": "2"},
        follow=True,
    )

    assert "There is no such recorded call: step 2 of gone." in response.content.decode()
    assert answers_of(waiting) == []


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"way": "value", "value": '{"orders": [1}'}, "line 1, column 14"),
        ({"way": "value", "value": '{"a": 1, "a": 2}'}, "stands twice"),
        ({"way": "value", "value": " "}, "Enter the result"),
        ({"way": "error", "value": "typed in the wrong place"}, "Enter the error."),
        ({"way": "value", "value": "a\x00b"}, "Null characters are not allowed"),
        ({"way": "guess", "value": "kept words"}, "not one of the available choices"),
        ({"value": "kept words"}, "This field is required"),
    ],
)
def test_a_refused_answer_keeps_what_was_typed(waiting, bob, fields, words):
    response = post(bob, "answer_by_hand", waiting, **fields)

    page = response.content.decode()
    assert response.status_code == 422
    assert words in page
    typed = match(r"<textarea name=\"value\"[^>]*>\n?(.*?)</textarea>", page)
    assert typed.replace("&quot;", '"') == fields.get("value", "")
    assert answers_of(waiting) == []


def test_a_model_request_is_answered_with_text_and_calls(shop, bob):
    stop = UNKNOWN | {"kind": "model", "name": "gpt-4o", "arguments": None, "nearest": []}
    waiting = make_waiting(load_parent(shop), stopped_at=stop)
    calls = [{"name": "lookup_order", "arguments": {"query": "4421"}}]

    page = page_of(bob, waiting)
    refused = post(bob, "answer_by_hand", waiting, text="", tool_calls='[{"name": 1}]')
    post(bob, "answer_by_hand", waiting, text="One moment.", tool_calls=json.dumps(calls))

    assert "the model&#x27;s answer is unknown" in page
    assert "Nearest recordings" not in page
    assert refused.status_code == 422
    assert "[{&quot;name&quot;: 1}]" in refused.content.decode()
    assert answers_of(waiting) == [{"at": 4, "asked": ASKED, "answer": {"text": "One moment.", "tool_calls": calls}}]


def test_an_answer_to_an_earlier_stop_changes_nothing(waiting, bob):
    response = bob.post(
        reverse("answer_by_hand", args=["shop", waiting.replay_id]),
        {"stop": f"3-{ASKED}", "way": "value", "value": "1"},
        follow=True,
    )

    assert "is no longer waiting for that" in response.content.decode()
    assert answers_of(waiting) == []


def test_viewers_see_the_stop_and_cannot_answer(shop, waiting, paused_too):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert "the answer of lookup_order" in page_of(vera, waiting)
    assert '<form method="post"' not in match(r'<article class="report">(.*)</article>', page_of(vera, waiting))
    assert post(vera, "answer_by_hand", waiting, way="not_found").status_code == 403
    for name in ("continue_replay", "step_replay"):
        assert post(vera, name, paused_too).status_code == 403


@pytest.fixture
def paused_too(waiting):
    return make_paused(waiting.run, number=2)


def test_what_was_asked_is_text_and_never_markup(shop, bob):
    hostile = UNKNOWN | {"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "call_id": HOSTILE}
    near = UNKNOWN["nearest"][0] | {"run_id": HOSTILE, "is_same_run": False, "arguments": {"x": HOSTILE}}
    waiting = make_waiting(load_parent(shop), stopped_at=hostile | {"nearest": [near]})

    page = page_of(bob, waiting)

    assert "<script>alert" not in page
    assert "\u202e" in page  # in what is copied or posted, which has to be exact
    assert "\u202e" not in re.sub(r' (data-copy|value)="[^"]*"', "", page)


# --- paused at a breakpoint -----------------------------------------------------------------------


def test_a_pause_shows_what_comes_and_why(paused, bob):
    page = page_of(bob, paused)

    assert "Paused before step 4: cancel_order" in page
    assert '<code class="recorded">tool cancel_order</code>' in page
    assert '<dt>messages</dt><dd><a href="' in page, "of a call there is no number of messages"
    assert "view=messages" in page
    assert "parent_fork_0a1b2c3d" in page
    assert "hx-trigger" not in page
    assert 'href="/p/shop/s/chat_1/fork?run=parent_fork_0a1b2c3d&amp;step=4"' in page


def test_a_paused_replay_of_sdk_code_offers_no_other_answer(shop, bob):
    """That would be a fork, which such code cannot make. Control: one that is rebuilt may be edited."""
    parent = load_parent(shop, agent={"name": "desk", "framework": "openai-agents"})
    of_code = make_paused(parent, produced_run=load_forked(shop), mode="code", queue="code")

    page = page_of(bob, of_code)
    Replay.objects.filter(pk=of_code.pk).update(mode="recording", queue="replays")
    rebuilt = page_of(bob, of_code)

    assert NOT_WITH_SDK in html.unescape(page)
    assert ['id="answer-title"' in each for each in (page, rebuilt)] == [False, True]
    assert reverse("continue_replay", args=["shop", of_code.replay_id]) in page
    assert NOT_WITH_SDK not in html.unescape(rebuilt)


def test_the_state_at_the_pause_is_shown(shop, bob):
    made = load_forked(shop, initial_state={"plan": "refund"})
    paused = make_paused(load_parent(shop), produced_run=made)

    assert "refund" in match(r"State at this point</h3>(.*?)</section>", page_of(bob, paused))


@pytest.mark.parametrize(("name", "is_stepping"), [("continue_replay", False), ("step_replay", True)])
def test_a_paused_replay_goes_on(paused, bob, name, is_stepping):
    post(bob, name, paused)

    paused.refresh_from_db()
    assert (paused.state, paused.course["passed"], paused.course["is_stepping"]) == ("queued", 4, is_stepping)


@pytest.mark.parametrize("name", ["continue_replay", "step_replay"])
def test_what_does_not_pause_does_not_go_on(waiting, bob, name):
    response = bob.post(reverse(name, args=["shop", waiting.replay_id]), {"stop": TOKEN}, follow=True)

    assert "is no longer waiting for that" in response.content.decode()
    waiting.refresh_from_db()
    assert waiting.state == "done"


@pytest.mark.parametrize("name", ["continue_replay", "step_replay", "answer_by_hand"])
def test_nothing_goes_on_by_looking(paused, bob, name):
    assert bob.get(reverse(name, args=["shop", paused.replay_id])).status_code == 405


def test_edit_and_continue_gives_the_answer(paused, bob):
    post(bob, "answer_by_hand", paused, way="value", value="[]")

    assert answers_of(paused) == [{"at": 4, "asked": ASKED, "value": []}]
    assert paused.state == "queued"


def test_editing_a_recording_replay_leads_to_the_fork_that_goes_on(shop, bob):
    stop = PAUSED | {"at": 3, "step": 3, "name": "lookup_order"}
    paused = make_paused(load_parent(shop), mode="recording", order={}, fork_id=None, stopped_at=stop)

    response = bob.post(
        reverse("answer_by_hand", args=["shop", paused.replay_id]),
        {"stop": f"3-{ASKED}", "way": "value", "value": "[]"},
    )

    fork = Replay.objects.get(mode="fork")
    assert response["Location"] == reverse("replay", args=["shop", fork.replay_id])
    assert fork.order["changes"] == [{"kind": "tool_result", "step": 3, "value": []}]


def test_a_paused_replay_can_be_stopped(paused, bob):
    bob.post(reverse("cancel_replay", args=["shop", paused.replay_id]))

    paused.refresh_from_db()
    assert (paused.state, paused.verdict) == ("cancelled", "cancelled")
    assert "Paused before" not in page_of(bob, paused)


def test_lists_find_what_waits_and_what_is_paused(shop, waiting, paused_too, bob):
    make_fork(waiting.run, 3)
    Replay.objects.create(
        project=shop, run=waiting.run, content=waiting.run.content, number=4, state="done", verdict="unknown_from_step"
    )

    def shown(name):
        return bob.get(reverse("replays", args=["shop"]), {"state": name}).content.decode()

    assert shown("paused").count("data-row-link") == 1
    assert shown("waiting for an answer").count("data-row-link") == 1
    assert shown("forks").count("data-row-link") == 3
    assert shown("different").count("data-row-link") == 1
    assert shown("all").count("data-row-link") == 4
    assert "fork at step 3 of" in shown("paused")
    row = match(r'cell" class="r-state">(.*?)<td role="cell" class="r-run">', shown("waiting for an answer"))
    assert "<span>needs an answer</span>" in row
    assert ">at step 4: lookup_order&#x27;s answer is unknown</span>" in row
    assert "fork at step 3 of" in shown("different")
    assert "fork at step" not in shown("failed")
    assert shown("failed").count("data-row-link") == 1


def test_a_list_of_paused_replays_does_not_poll(shop, bob):
    paused = make_paused(load_parent(shop))
    address = reverse("replays", args=["shop"])

    still = bob.get(address).content.decode()
    Replay.objects.filter(pk=paused.pk).update(state="queued")
    moving = bob.get(address).content.decode()

    assert "hx-trigger" not in still
    assert "hx-trigger" in moving


# --- in a browser ---------------------------------------------------------------------------------


def open_replay(page, live_server, replay):
    arrive(page, f"{live_server.url}{reverse('replay', args=['shop', replay.replay_id])}", "ann")


@pytest.mark.django_db(transaction=True)
def test_an_answer_is_typed_refused_mended_and_given_without_scripts(browser, live_server, shop, waiting):
    make_user("ann", shop)
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_replay(page, live_server, waiting)

    page.fill("[name=value]", '{"orders": [}')
    page.get_by_role("button", name="Answer and continue").click()
    expect(page.get_by_role("alert")).to_contain_text("line 1, column 13")
    assert page.input_value("[name=value]") == '{"orders": [}'
    page.fill("[name=value]", '{"orders": []}')
    page.get_by_role("button", name="Answer and continue").click()

    expect(page.locator(".verdict-words")).to_contain_text("Waiting for a worker")
    assert answers_of(waiting) == [{"at": 4, "asked": ASKED, "value": {"orders": []}}]
    context.close()


@pytest.mark.django_db(transaction=True)
def test_a_running_replay_that_pauses_turns_into_the_stop_and_enter_goes_on(page, live_server, shop, paused):
    make_user("ann", shop)
    Replay.objects.update(state="running", stopped_at=None, progress_total=4)
    open_replay(page, live_server, paused)
    expect(page.locator(".verdict-words")).to_contain_text("Replaying step")

    Replay.objects.update(state="paused", stopped_at=PAUSED)
    expect(page.locator(".verdict-words")).to_contain_text("Paused before step 4")
    press(page, "Enter")

    expect(page.locator(".verdict-words")).to_contain_text("Waiting for a worker")


@pytest.mark.django_db(transaction=True)
@looks
def test_a_stop_is_accessible_and_fits(page, live_server, shop, scheme, width):
    make_user("ann", shop)
    name = f"lookup_{'x' * 90}"
    near = UNKNOWN["nearest"][0] | {"run_id": "y" * 200, "is_same_run": False, "arguments": {"q": HOSTILE * 3}}
    stop = UNKNOWN | {"name": name, "arguments": {"q": HOSTILE * 9, "rows": list(range(80))}, "nearest": [near]}
    page.set_viewport_size({"width": width, "height": 800})
    page.emulate_media(color_scheme=scheme)
    open_replay(page, live_server, make_waiting(load_parent(shop), stopped_at=stop))

    assert [(each["id"], each["nodes"][0]["html"]) for each in Axe().run(page).response["violations"]] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".verdict-words").bounding_box()["width"] <= 900
