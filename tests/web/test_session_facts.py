"""What a session's page says above its steps: what was asked, what was answered, and which run it is."""

import re
from hashlib import sha256

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import reverse

from sessions_app.models import Replay, Run
from tests.losing import lose_payloads
from tests.web.making import HOSTILE, another_run, make_session, match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


def page_of(client, row, /, **query):
    response = client.get(reverse("session", args=["shop", row.session.session_id]), query)
    assert response.status_code == 200
    return response.content.decode()


def end_of(page, label):
    return match(rf"<dt>{label}</dt>(.*?)</div>", match(r'<dl class="ends">(.*?)</dl>', page) + "</div>")


def instructions_in(page):
    return match(r'<div class="instructions">(.*?)</details>', page)


def test_the_nine_fields_of_a_session_file_are_on_the_page(shop, bob):
    page = page_of(bob, load_example(shop, "abc123.session"))

    assert "abc123" in match(r"<h1>(.*?)</h1>", page)
    assert "2026-02-17T14:23:01" in match(r"<dt>started</dt>(.*?)</dd>", page)
    assert "Cancel my order ORD-5521, wrong item" in end_of(page, "asked")
    assert "I&#x27;ve cancelled order ORD-5521 for you..." in end_of(page, "answered")
    assert "openai:gpt-4o" in match(r"<dt>model</dt>(.*?)</dd>", page)
    assert "You help customers with their orders." in instructions_in(page)
    assert 'view=messages&amp;step=5">6</a>' in match(r"<dt>messages</dt>(.*?)</dd>", page)
    assert "<dd>2</dd>" in match(r"<dt>tool calls</dt>(.*?</dd>)", page)
    assert "2.34 s" in match(r"<dt>took</dt>(.*?)</dd>", page)


def test_flags_are_shown_with_their_values_and_instructions_with_hash_and_version(shop, bob):
    facts = {"flags": {"new_flow": True, "limit": 3}, "instructions": "You help.", "prompt_version": "v7"}
    page = page_of(bob, load_record(shop, **facts))

    assert match(r"<dt>flags</dt>(.*?)</dd>", page).endswith(">new_flow true, limit 3")
    assert f"SHA-256 {sha256(b'You help.').hexdigest()[:12]}, version v7." in instructions_in(page)


def test_flags_that_nobody_recorded_are_said_to_be_missing(shop, bob):
    assert "not captured" in match(r"<dt>flags</dt>(.*?)</dd>", page_of(bob, load_record(shop)))


def test_a_run_without_steps_shows_its_answer(shop, bob):
    page = page_of(bob, load_record(shop, input=None, output="Nothing else was saved."))

    assert "Nothing else was saved." in end_of(page, "answered")
    assert "not captured" in end_of(page, "asked")
    assert "not captured" in match(r"<dt>messages</dt>(.*?)</dd>", page)


def test_a_long_text_shows_its_beginning_and_where_the_whole_is(shop, bob):
    run = load_record(shop, input="word " * 200_000, output="one\ntwo\nthree\nfour\n" * 10_000)

    page = page_of(bob, run)

    assert len(page) < 100_000
    assert "word" in end_of(page, "asked")
    assert "whole" in end_of(page, "asked")
    assert "977 KiB" in end_of(page, "asked")
    assert "three" in end_of(page, "answered")
    assert "four" not in end_of(page, "answered")
    whole = bob.get(match(r'href="(/p/shop/payloads/[^"]+)"', end_of(page, "asked"))).content.decode()
    assert "next part" in whole
    assert "?download=1" in whole


def test_an_error_stands_in_the_place_of_the_answer(shop, bob):
    error = {"type": "TimeoutError", "message": "the model did not answer"}
    page = page_of(bob, load_record(shop, output=None, status="error", error=error))

    assert 'wrong" dir="auto">TimeoutError: the model did not answer' in " ".join(end_of(page, "failed").split())
    assert "<dt>answered</dt>" not in page


def test_values_are_one_line_of_json_as_they_were_spelled(shop, bob):
    page = page_of(bob, load_record(shop, input={"order": [1, 2.0]}, output={"a": "<b>"}))

    assert "{&quot;order&quot;: [1, 2.0]}" in end_of(page, "asked")
    assert "{&quot;a&quot;: &quot;&lt;b&gt;&quot;}" in end_of(page, "answered")


def test_hostile_text_is_text_in_every_place(shop, bob):
    error = {"type": "<i>", "message": HOSTILE}
    page = page_of(bob, load_record(shop, input=HOSTILE, output=HOSTILE, error=error, instructions=HOSTILE))

    block = match(r'<dl class="ends">(.*?)</dl>', page) + instructions_in(page)
    assert "<script" not in block
    assert "\u202e" not in block
    assert block.count(">RLO<") == 4  # asked, failed, answered, and the instructions


def test_base64_is_folded(shop, bob):
    page = page_of(bob, load_record(shop, output="QUJDREVGR0hJSktM" * 400))

    assert "QUJDREVG" not in end_of(page, "answered")
    assert "4.7 KiB" in end_of(page, "answered")


def test_bytes_that_are_gone_leave_the_page_standing(shop, bob):
    run = load_record(shop)
    lose_payloads(shop)

    assert "no longer stored" in end_of(page_of(bob, run), "asked")


def test_the_block_costs_one_query_whatever_it_holds(shop, bob):
    small = load_record(shop, run_id="small", session_id="small", input="a", output="x")
    large = load_record(shop, run_id="large", session_id="large", input={"a": "x" * 90_000}, output="y" * 90_000)
    page_of(bob, small)

    counts = []
    for run in (small, large):
        with CaptureQueriesContext(connection) as seen:
            page_of(bob, run)
        counts.append(len(seen))

    assert counts[0] == counts[1]


# --- which run


def produced(run, number=1):
    made = another_run(run.session, run, f"{run.run_id}_replay_{number}", origin="replay", parent_run_id=run.run_id)
    Replay.objects.create(
        project=run.project,
        run=run,
        content=run.content,
        number=number,
        state="done",
        verdict="reproduced",
        produced_run=made,
    )
    return made


def test_what_a_replay_produced_is_no_turn(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    produced(run)

    page = page_of(bob, run)

    assert '<nav class="runs' not in page
    assert "?run=" not in match(r'<table class="steps">(.*?)</table>', page)
    assert bob.get(reverse("session", args=["shop", run.session.session_id]), {"run": "2"}).status_code == 404


def test_a_produced_run_says_whose_replay_it_is_and_leads_back(shop, bob):
    run = load_record(shop, run_id="r_1", steps=[tool_step()])
    made = produced(run, number=2)

    page = page_of(bob, made, run=made.run_id)

    switcher = match(r'<nav class="runs(.*?)</nav>', page)
    assert "replay #2 of" in switcher
    assert "?run=r_1" in switcher
    assert "1 runs" not in switcher
    assert f"?run={made.run_id}&amp;view=messages" in page


def test_turns_are_numbered_without_the_replays_between_them(shop, bob):
    first = load_record(shop, run_id="one", session_id="chat", steps=[tool_step("first")])
    produced(first)
    second = load_record(shop, run_id="two", session_id="chat", steps=[tool_step("second")])

    page = page_of(bob, second, run="2")

    assert "2 runs" in page
    assert '<span class="recorded cut">second</span>' in page
    assert "one_replay_1" not in match(r'<nav class="runs(.*?)</nav>', page)


def test_a_session_of_replays_alone_still_opens(shop, bob):
    run = make_session(shop, "chat")
    made = produced(run)
    Run.objects.filter(pk=run.pk).update(session=make_session(shop, "other").session)

    assert "replay #1 of" in page_of(bob, made)


@override_settings(REPLAY_MAX_ATTEMPTS=5)
def test_the_number_of_attempts_is_the_one_of_the_settings(shop, bob):
    run = load_example(shop, "r_8821")
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="running", attempt=2)

    assert "2 of 5" in bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()


def test_a_model_that_was_asked_for_by_an_alias_is_one_model(shop, bob):
    run = load_record(shop, model="gpt-4o", steps=[model_step(model="gpt-4o", answered_model="gpt-4o-2024-08-06")])

    name = match(r"<dt>model</dt><dd[^>]*>(.*?)</dd>", page_of(bob, run))

    assert name == '<span title="gpt-4o-2024-08-06, asked for as gpt-4o">gpt-4o-2024-08-06</span>'


def test_a_recording_that_breaks_off_says_so_once_and_by_its_state(shop, bob):
    run = load_record(shop, steps=[model_step(), tool_step()], output=None, status="cut_off")

    top = match(r'<div class="top">(.*?)<div class="views-line">', page_of(bob, run))
    words = " ".join(re.sub(r"<[^>]+>", " ", top).split())

    assert "step 2 Recording cut off without an answer 2 steps · 1 tool call" in words
    assert "answered not captured the recording ends before it" in words
    assert words.count("cut off") == 1
    assert "breaks off" not in words
    assert "send the run" not in words


def test_the_head_of_a_run_without_forks_leads_to_none_and_says_once_that_nothing_was_replayed(shop, bob):
    run = load_example(shop, "r_8821")
    before = match(r'<section class="tried"(.*?)</section>', page_of(bob, run))
    Replay.objects.create(project=shop, run=run, content=run.content, replay_id="rp_1", number=1, mode="fork")

    after = match(r'<section class="tried"(.*?)</section>', page_of(bob, run))

    assert before.count("not replayed yet") == 1
    assert ["fork" in before, "1 fork</a>" in after] == [False, True]


def test_where_all_steps_can_be_replayed_the_head_says_that_the_outcome_is_what_cannot(shop, bob):
    steps = [model_step()]
    run = load_record(shop, steps=steps, instructions="Others than those of the request.", output="Done.")
    reason = {"code": "instructions_contradicted", "message": "The instructions differ.", "step": 2, "fix": None}
    Run.objects.filter(pk=run.pk).update(verdict="replayable_to_step", verdict_step=1, verdict_reasons=[reason])

    why = match(r'<p class="kit-why">(.*?)</p>', page_of(bob, run))

    assert " ".join(re.sub(r"<[^>]+>", " ", why).split()) == "All steps, but not the outcome: The instructions differ."
