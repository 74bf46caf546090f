"""Several forks of one form, the same form sent twice, and forms whose recording vanishes under them."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from django.urls import reverse

from sessions_app.models import ContentBlock, Replay
from tests.losing import lose_payload, lose_payloads
from tests.web.making import client_of, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step
from tests.web.test_fork_form import address, errors_in, is_ticked, options, page_of, post, typed_in

pytestmark = pytest.mark.django_db
ERROR_TIMEOUT = {"type": "TimeoutError", "message": "search did not answer in time.", "crashes": False}


@pytest.fixture
def run(shop):
    """Steps: 1 model, 2 tool with the presets empty, rate_limit, timeout and doubled, 3 model."""
    return load_record(
        shop, steps=[model_step(1), tool_step("search", parent=1, result={"docs": ["refund"]}), model_step(2, after=1)]
    )


def token_in(page):
    return match(r'name="token"\s+value="([^"]+)"', page)


def orders():
    return [replay.order for replay in Replay.objects.order_by("number")]


def ticked_in(page):
    return re.findall(r'name="preset"\s+value="(\w+)"[^>]*\schecked', page)


# --- a fork for each ticked preset


def test_each_ticked_preset_is_a_fork_and_all_else_is_the_same(bob, run):
    typed = {"use_result": "on", "use_clock": "on", "clock": "60", "break_value_1": "3", "break_kind_1": "step"}

    post(bob, run, 2, preset=["empty", "timeout"], **typed)

    same = {"at_step": 2, "hypothesis": "The answer decides.", "expect": "It asks first.", "breakpoints": [{"step": 3}]}
    clock = {"kind": "clock", "value": 60}
    assert orders() == [
        same | {"changes": [{"kind": "tool_result", "step": 2, "value": {"docs": []}}, clock]},
        same | {"changes": [{"kind": "tool_result", "step": 2, "error": ERROR_TIMEOUT}, clock]},
    ]


def test_several_forks_lead_to_the_forks_of_the_run(bob, run):
    response = post(bob, run, 2, use_result="on", preset=["empty", "timeout", "doubled"])

    there = urlsplit(response["Location"])
    assert there.path == reverse("forks", args=["shop", run.session.session_id])
    assert parse_qs(there.query) == {"run": [run.run_id]}
    assert "3 forks queued." in bob.get(response["Location"]).content.decode()


def test_one_ticked_preset_is_one_fork(bob, run):
    response = post(bob, run, 2, use_result="on", preset=["timeout"], result="typed")

    replay = Replay.objects.get()
    assert response["Location"] == reverse("replay", args=["shop", replay.replay_id])
    assert replay.order["changes"] == [{"kind": "tool_result", "step": 2, "error": ERROR_TIMEOUT}]


def test_presets_do_not_count_where_the_answer_is_not_changed(bob, run):
    post(bob, run, 2, use_clock="on", clock="60", preset=["empty", "timeout"])

    assert [order["changes"] for order in orders()] == [[{"kind": "clock", "value": 60}]]


def test_a_preset_that_is_not_offered_refuses_all_and_stays_ticked(bob, run):
    response = post(bob, run, 2, use_result="on", preset=["timeout", "nonsense"])

    page = response.content.decode()
    assert (response.status_code, errors_in(page)) == (422, {"preset": "This answer has no preset 'nonsense'."})
    assert ticked_in(page) == ["timeout", "nonsense"]
    assert not Replay.objects.exists()


def test_a_fork_that_cannot_be_stored_refuses_those_before_it(shop, bob):
    """The cut answer holds a NUL character, which only the service finds."""
    run = load_record(shop, steps=[model_step(1), tool_step("search", parent=1, result="a\x00bcdefgh")])

    response = post(bob, run, 2, use_result="on", preset=["empty", "rate_limit", "timeout"])

    page = response.content.decode()
    words = match(r'id="fork-errors"(.*?)</section>', page)
    assert response.status_code == 422
    assert "Error 429 with cut body: changes holds a NUL character" in words
    assert "None of the 3 forks is queued." in words
    assert ticked_in(page) == ["empty", "rate_limit", "timeout"]
    assert not Replay.objects.exists()

    assert post(bob, run, 2, use_result="on", preset=["empty", "timeout"]).status_code == 302
    assert Replay.objects.count() == 2


def test_checking_says_every_fork_and_queues_none(bob, run):
    page = post(bob, run, 2, use_result="on", preset=["empty", "timeout"], do="check").content.decode()

    said = " ".join(re.sub(r"<[^>]+>", " ", match(r'id="fork-check"(.*?)</div>', page)).split())
    assert "2 forks from step 2" in said
    assert said.count("tool answer at step 2") == 2
    assert "Queue 2 forks" in page
    assert not Replay.objects.exists()


def test_ticked_presets_are_kept_in_the_draft(bob, run):
    post(bob, run, 2, use_result="on", preset=["empty", "timeout"], expect_kind="magic")

    assert ticked_in(page_of(bob, run, 2)) == ["empty", "timeout"]


# --- the same form again


@pytest.mark.parametrize("presets", [["timeout"], ["empty", "timeout"]])
def test_the_same_form_sent_twice_queues_once(bob, run, presets):
    typed = {"use_result": "on", "preset": presets, "token": token_in(page_of(bob, run, 2))}

    first, second = post(bob, run, 2, **typed), post(bob, run, 2, **typed)

    assert first["Location"] == second["Location"]
    assert Replay.objects.count() == len(presets)


def test_presets_that_give_the_same_answer_are_forks_of_their_own(shop, bob):
    """Both leave nothing of an answer of one letter."""
    run = load_record(shop, steps=[model_step(1), tool_step("search", parent=1, result="a")])
    token = token_in(page_of(bob, run, 2))

    post(bob, run, 2, use_result="on", preset=["empty", "rate_limit"], token=token)

    assert [order["changes"][0]["value"] for order in orders()] == ["", ""]


def test_a_form_with_a_secret_sent_twice_queues_once(bob, run):
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    typed = {"use_result": "on", "result": secret, "token": token_in(page_of(bob, run, 2))}

    assert [post(bob, run, 2, **typed).status_code for _ in range(2)] == [302, 302]
    assert Replay.objects.count() == 1
    assert secret not in str(orders())


def test_the_same_form_with_something_changed_is_another_fork(bob, run):
    """As after going back in the browser."""
    typed = {"use_result": "on", "token": token_in(page_of(bob, run, 2))}

    responses = [post(bob, run, 2, result=text, **typed) for text in ("one", "two", "two")]

    assert [response.status_code for response in responses] == [302, 302, 302]
    assert [order["changes"][0]["value"] for order in orders()] == ["one", "two"]


def test_a_new_form_queues_the_same_again(bob, run):
    for _ in range(2):
        post(bob, run, 2, use_result="on", result="x", token=token_in(page_of(bob, run, 2)))

    assert Replay.objects.count() == 2


def test_a_token_is_its_persons_alone(shop, bob, run):
    token = token_in(page_of(bob, run, 2))

    for client in (bob, client_of(make_user("ann", shop))):
        post(client, run, 2, use_result="on", result="x", token=token)

    assert Replay.objects.count() == 2


def test_errors_keep_the_token_and_a_draft_does_not(bob, run):
    token = token_in(page_of(bob, run, 2))

    page = post(bob, run, 2, use_result="on", result="drafted", expect_kind="magic", token=token).content.decode()

    assert token_in(page) == token
    assert typed_in(page_of(bob, run, 2), "result") == "drafted"
    assert token_in(page_of(bob, run, 2)) != token


def test_a_replay_with_options_sent_twice_is_queued_once(bob, run):
    def send(token, **typed):
        return bob.post(options(run), {"mode": "recording", "token": token, **typed})["Location"]

    token = token_in(bob.get(options(run)).content.decode())
    other = token_in(bob.get(options(run)).content.decode())

    same = {send(token), send(token)}
    others = {send(other), send(token, break_kind_1="step", break_value_1="2")}

    assert (len(same), len(same | others), Replay.objects.count()) == (1, 3, 3)


def test_options_that_were_refused_keep_their_token(bob, run):
    page = bob.post(options(run), {"mode": "code", "token": "mine"}).content.decode()

    assert token_in(page) == "mine"


# --- a recording that vanishes


@pytest.fixture
def stateful(shop):
    """Its state is in bytes of its own."""
    return load_example(shop, "cancel_bug")


@pytest.mark.parametrize("do", ["queue", "check", "show"])
def test_what_was_typed_is_kept_when_recorded_bytes_vanish(bob, shop, stateful, do):
    typed = {"use_result": "on", "result": "typed by hand", "result_as": "text", "preset": ["timeout", "rate_limit"]}
    typed |= {"use_state": "on", "patch": '[{"op": "remove", "path": "/memory"}]', "hypothesis": "A long thought."}
    lose_payloads(shop)

    response = post(bob, stateful, 2, **typed, do=do)

    page = response.content.decode()
    assert response.status_code == 410
    assert "no longer stored" in match(r'id="fork-errors"(.*?)</section>', page)
    assert typed_in(page, "result") == "typed by hand"
    assert typed_in(page, "patch") == typed["patch"]
    assert typed_in(page, "hypothesis") == "A long thought."
    assert is_ticked(page, "use_result")
    assert is_ticked(page, "use_state")
    assert set(ticked_in(page)) == {"timeout", "rate_limit"}
    assert not Replay.objects.exists()


def test_the_draft_is_there_when_one_comes_back_to_a_recording_that_vanished(bob, shop, stateful):
    lose_payloads(shop)
    post(bob, stateful, 2, use_result="on", result="typed by hand")

    response = bob.get(address(stateful, 2))

    assert response.status_code == 410
    assert typed_in(response.content.decode(), "result") == "typed by hand"
    assert "You cannot fork from this step" in bob.get(address(stateful, 4)).content.decode()


def test_a_later_answer_that_vanished_is_found_by_who_takes_the_order(bob, shop):
    """The page of the step before can be shown without it."""
    answer = "an answer of its own length"
    run = load_record(shop, steps=[model_step(1), tool_step(parent=1, result=answer), model_step(2, after=1)])
    lose_payload(answer.encode())

    response = post(bob, run, 1, use_result="on", result_step="2", result_of="2", result="typed by hand")

    page = response.content.decode()
    assert (bob.get(address(run, 1)).status_code, response.status_code) == (200, 422)
    assert "no longer stored" in match(r'id="fork-errors"(.*?)</section>', page)
    assert typed_in(page, "result") == "typed by hand"
    assert not Replay.objects.exists()


def test_bytes_that_come_back_let_the_same_form_be_queued(bob, shop, stateful):
    typed = {"use_result": "on", "result": "typed by hand", "token": token_in(page_of(bob, stateful, 2))}
    stored = list(ContentBlock.objects.all())
    lose_payloads(shop)

    assert post(bob, stateful, 2, **typed).status_code == 410
    ContentBlock.objects.all().delete()
    ContentBlock.objects.bulk_create(stored)

    assert post(bob, stateful, 2, **typed).status_code == 302
