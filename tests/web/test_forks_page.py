"""The page of a fork, the forks of a run as tree and table, and their words in lists and reports."""

import html
import json
import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import Replay
from tests.proofs import make_proof
from tests.web.forked import FACTS, ORDER, load_forked, load_parent, make_fork, make_waiting
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_record, tool_step

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent(shop):
    return load_parent(shop)


def page_of(client, replay):
    response = client.get(reverse("replay", args=["shop", replay.replay_id]))
    assert response.status_code == 200
    return response.content.decode()


def forks_of(client, run, **query):
    response = client.get(reverse("forks", args=["shop", run.session.session_id]), {"run": run.run_id} | query)
    assert response.status_code == 200
    return response.content.decode()


def report_of(client, replay, suffix):
    return client.get(reverse("replay_report", args=["shop", replay.replay_id, suffix])).content.decode()


# --- the report of a fork -------------------------------------------------------------------------


def test_a_fork_says_what_was_changed_and_whether_it_ended_as_expected(shop, parent, bob):
    load_record(shop, run_id="older", session_id="old", steps=[tool_step(), tool_step()])

    page = page_of(bob, make_fork(parent, produced_run=load_forked(shop)))

    assert "Fork #1 at step 3 of" in page
    assert "Expectation met: the outcome contains" in match(r'<p class="verdict-words">(.*?)</p>', page)
    assert "answer of lookup_order at step 3: " in match(r'<ul class="changes-words">(.*?)</ul>', page)
    assert "see below" not in page
    assert "It asks for the id when nothing is found." in page
    assert "<span>expectation met</span>" in page
    assert f"{bytes(parent.content_digest).hex()[:12]}…" in page
    assert "abababababab…" in page
    assert "Message 2 answers a call" in page
    assert "/p/shop/s/old?run=older&amp;step=2" in page
    assert "Attempts <span" not in page
    outcomes = match(r'<table class="plain ends-of-both">(.*?)</table>', page)
    assert "done" in outcomes
    assert "Which order id?" in outcomes


def test_each_step_after_the_fork_says_who_answered_it(shop, parent, bob):
    page = page_of(bob, make_fork(parent, produced_run=load_forked(shop)))

    answers = match(r'<table class="plain ends-of-both fork-steps">(.*?)</table>', page)
    assert answers.count('<th scope="row">') == 2
    assert "orders" in match(r'<td data-label="recorded">(.*?)</td>', answers)
    assert "<span>by hand</span>" in answers
    assert "<span>borrowed</span>" in answers
    assert ("<del>2</del>" in answers, "First difference" in page) == (True, False)
    assert "other" not in answers


def test_a_key_that_is_not_there_is_absent_in_the_first_difference_and_not_null(shop, parent, bob):
    divergence = {"step": 3, "path": "result.error", "recorded": "gateway timeout", "replayed": None}
    made = make_fork(parent, divergence=divergence, facts=FACTS | {"absent": "replayed"})
    null = make_fork(parent, 2, divergence=divergence)

    page, other = (match(r"(<h2>First difference.*?</section>)", page_of(bob, each)) for each in (made, null))

    assert ('<span class="none">absent</span>' in page, "null" in page) == (True, False)
    assert ("absent" in other, "null" in other) == (False, True)
    assert 'recorded "gateway timeout", replayed absent' in report_of(bob, made, "txt")


def test_the_table_of_forks_says_of_each_where_it_first_differs_from_its_parent(shop, parent, bob):
    facts = FACTS | {"first_difference": {"step": 3, "path": "result.orders"}}
    make_waiting(parent, facts=facts, produced_run=load_forked(shop))
    make_fork(parent, 2, produced_run=load_forked(shop, run_id="second"))

    page = forks_of(bob, parent)

    assert "first difference" in page
    assert "fork-tree" not in page
    assert page.count(">step 3</a>") == 2
    assert '<span class="soft">not finished</span>' in page


# --- an outcome that does not follow from the change ----------------------------------------------


WITH_WORDS = [
    ("recorded_for_another_request", " (reusing old model answers)", "old model answers were reused"),
    ("by_hand", " (outcome written by hand)", "the outcome was written by hand"),
    ("rule", " (outcome given by a rule)", "a rule gave the outcome"),
    ("no_difference", "; same outcome as the original", "the outcome is the original one"),
]


def make_unproven(parent, source, **columns):
    expectation = {"words": "the outcome contains 'order id'", "met": True, "seen": None, "source": source}
    facts = FACTS | {"expectation": expectation}
    return make_fork(parent, facts=facts, produced_run=load_forked(parent.project), **columns)


@pytest.mark.parametrize(("source", "words", "reason"), WITH_WORDS)
def test_an_expectation_that_an_old_or_written_answer_met_is_not_shown_as_proven(
    shop, parent, bob, source, words, reason
):
    """On every page, in words and without the green of a proof."""
    replay = make_unproven(parent, source, finished_at=timezone.now())
    session, now = (
        bob.get(reverse(name, args=args)).content.decode()
        for name, args in (("session", ["shop", parent.session.session_id]), ("project", ["shop"]))
    )

    page = page_of(bob, replay)

    told = f"Expectation met, but {reason}: it proves nothing about the agent"
    assert told in match(r'<p class="verdict-words">(.*?)</p>', page)
    assert 'class="report-verdict verdict-unproven"' in page
    assert re.search(r'class="verdict-words"><svg[^>]*><use href="[^"]*#check"', page)
    assert "<span>expectation met</span>" not in page
    assert f"<span>expectation met{words}</span>" in session
    assert "<span>expectation met</span>" not in session
    line = match(r'<li data-row class="now-replay">(.*?)</li>', now)
    assert "state-partial" in line
    assert reason in line
    table = match(r'<table class="fork-table">(.*?)</table>', forks_of(bob, parent))
    assert "state-partial" in table
    assert reason in table
    row = match(
        r'cell" class="r-state">(.*?)<td role="cell" class="r-run">', bob.get("/p/shop/replays").content.decode()
    )
    assert "state-partial" in row
    assert reason in row
    assert told in report_of(bob, replay, "md")
    assert f"met{words}" in report_of(bob, replay, "txt")


@pytest.mark.parametrize(("source", "words", "reason"), WITH_WORDS)
def test_what_an_old_or_written_answer_did_not_meet_is_not_shown_as_proven_either(
    shop, parent, bob, source, words, reason
):
    page = page_of(bob, make_unproven(parent, source, expectation_met=False))

    assert f"not met{words}: the outcome does not contain" in match(r'<p class="verdict-words">(.*?)</p>', page)
    assert f"<span>expectation not met{words}</span>" in page
    assert "verdict-unproven" in page


def test_a_rule_whose_condition_never_held_is_said_to_have_never_applied(shop, parent, bob):
    rule = {"kind": "rule", "when": "docs is empty", "answer": {"text": "Nothing."}}
    told = "The rule never applied: no step from step 3 on meets its condition (docs is empty). Change the condition."
    order = {"at_step": 3, "changes": [rule]}
    columns: dict[str, Any] = {"order": order, "verdict": "reproduced", "expectation_met": False}
    facts = FACTS | {"proof": make_proof(4).to_json()}

    idle = make_fork(parent, produced_run=load_forked(shop), facts=facts, **columns)
    used = make_fork(parent, 2, facts=facts | {"sources": {"rule": 1}}, **columns)

    assert told in report_of(bob, idle, "txt")
    assert told in page_of(bob, idle)
    assert "never applied" not in page_of(bob, used)


@pytest.mark.parametrize("verdict", ["diverged", "unknown_from_step"])
def test_an_expectation_that_was_not_judged_is_told_with_its_reason(parent, bob, verdict):
    words = "not judged: the outcome depends on code that did not run"

    replay = make_unproven(parent, "code_not_run", expectation_met=None, verdict=verdict)

    assert f"<span>expectation {words}</span>" in page_of(bob, replay)
    listed = forks_of(bob, parent)
    assert "<span>expectation not judged</span>" in listed
    assert "it depends on code that did not run" in listed
    assert words in report_of(bob, replay, "txt")


SAME_COURSE = {
    "expectation_met": None,
    "verdict": "reproduced",
    "facts": {**FACTS, "proof": make_proof(4).to_json()},
}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"expectation_met": False}, "Expectation not met: the outcome does not contain"),
        ({"expectation_met": None}, "Different course: ended with an answer after 4 steps"),
        (SAME_COURSE, "Same course: the same 4 steps and the same answer"),
        ({"expectation_met": None, "mode": "resume", "order": {"at_step": 3}}, "Continued: ended with an answer"),
    ],
)
def test_the_verdict_of_a_fork_is_in_words(shop, parent, bob, columns, words):
    page = page_of(bob, make_fork(parent, produced_run=load_forked(shop), **columns))

    assert words in match(r'<p class="verdict-words">(.*?)</p>', page)


def test_the_world_is_off_unless_something_was_live(parent, bob):
    """What was asked for makes no difference: a tool that might go live and did not left the world off."""
    order = ORDER | {"agent": "support", "tools": {"live": ["lookup_order"]}}
    code = make_fork(parent, 2, order=order, live_calls=2, facts=FACTS | {"live_tools": {"lookup_order": 2}})
    might = page_of(bob, make_fork(parent, 3, order=order))

    off, on = page_of(bob, make_fork(parent, 1)), page_of(bob, code)

    assert "isolated: 0 network calls, 0 writes" in off
    assert "badge-amber" not in off
    assert ("isolated" in might, "badge-amber" in might) == (True, False)
    assert "live tools: lookup_order × 2" in on
    assert "badge-amber" in on
    assert "runs your code: support" in on
    assert "isolated" not in on


def test_a_live_model_is_named_while_it_runs(parent, bob):
    order = {"at_step": 3, "samples": 20, "expect": {"contains": "x"}}
    running = make_fork(parent, mode="sampling", order=order, state="running", verdict=None, progress_total=60)

    page = page_of(bob, running)

    assert "20 samples from step 3" in page
    assert "live model" in page
    assert "nothing is called" not in page


def test_an_open_fork_shows_its_order_and_the_steps_so_far(shop, parent, bob):
    running = make_fork(parent, state="running", verdict=None, progress_total=4, produced_run=load_forked(shop))

    page = page_of(bob, running)

    assert "It asks for the id when nothing is found." in page
    assert "<span>by hand</span>" in match(r'<ol class="answers" reversed>(.*?)</ol>', page)
    assert "no model is called and no tool runs" in page


def test_samples_say_how_many_were_as_expected_and_how_sure_that_is(shop, parent, bob):
    made = load_forked(shop)
    samples = {
        "n": 20, "done": 20, "met": 7, "unjudged": 0, "interval": [0.181, 0.567],
        "groups": [{"words": "Which order id?", "count": 7, "run_ids": [made.run_id, "gone"]}],
        "errors": [{"words": "429", "count": 2}],
        "budget": {"requests": 60, "input_tokens": 9000, "output_tokens": 120},
    }  # fmt: skip
    order = ORDER | {"samples": 20}
    replay = make_fork(parent, mode="sampling", order=order, facts=FACTS | {"samples": samples}, expectation_met=None)

    page = page_of(bob, replay)

    assert "7 of 20 as expected (35 %, 95 % interval 18–57 %)" in page
    assert f"run={made.run_id}" in match(r'<table class="plain groups">(.*?)</table>', page)
    assert "2 failed" in page
    assert "7 of 20 as expected" in bob.get(reverse("replays", args=["shop"])).content.decode()
    assert "7 of 20 as expected" in match(r'<table class="fork-table">(.*?)</table>', forks_of(bob, parent))
    assert 'class="held-pinned"' not in page
    assert "60 requests, 9,000 tokens in and 120 out" in page


def test_drift_shows_what_a_live_tool_answers_now(parent, bob):
    drift = [{"step": 2, "tool": "lookup_order", "path": "stock", "recorded": 4, "now": 0}]
    acts = [{"step": 3, "kind": "tool", "name": "guard", "recorded": {"ok": True}, "now": "refused"}]
    facts: dict[str, Any] = {"drift": drift, "own_code": acts, "prompt_differs": {"step": 1, "path": "parameters"}}
    facts["commit"] = None
    replay = make_fork(parent, mode="code", order={"agent": "support"}, facts=facts, fork_id=None)

    page = page_of(bob, replay)

    drifted, acted = match(r'id="drift-title">(.*?)</section>', page), match(r'id="acts-title">(.*?)</section>', page)
    assert "<del>4</del>" in drifted
    assert "<ins>0</ins>" in drifted
    assert "guard" in acted
    assert "guard" not in drifted
    assert "Instructions or tools have changed since the recording, first at step 1" in page
    assert 'ran: <span class="recorded">support</span>' in page


def test_the_report_as_a_file_holds_the_fork_and_its_sources(shop, parent, bob):
    replay = make_fork(parent, produced_run=load_forked(shop))

    text, markdown = report_of(bob, replay, "txt"), report_of(bob, replay, "md")
    fork = json.loads(report_of(bob, replay, "json"))["replay"]["fork"]

    assert "Hypothesis: It asks for the id when nothing is found." in text
    assert 'Expected: the outcome contains "order id": met' in text
    assert "  4 sonnet-4: borrowed from older step 2" in text
    assert "| by hand | 1 |" in markdown
    assert "- `3 lookup: by hand`" in markdown.replace("lookup_order", "lookup")
    assert fork["at_step"] == 3
    assert [step["source"] for step in fork["steps"]] == ["by_hand", "borrowed"]
    assert fork["steps"][1]["taken_from"] == {"run_id": "older", "step": 2}


def test_a_fork_is_no_attempt_to_reproduce_the_run(parent, bob):
    attempt = Replay.objects.create(
        project=parent.project, run=parent, content=parent.content, number=1, state="done", verdict="reproduced"
    )
    make_fork(parent, 2)

    report = json.loads(report_of(bob, attempt, "json"))

    assert [each["number"] for each in report["attempts"]] == [1]
    assert report["replay"]["fork"] is None


def test_an_attempt_of_a_golden_is_told_from_a_replay_of_the_same_number(parent, bob):
    attempt = {"project": parent.project, "run": parent, "content": parent.content, "number": 1, "state": "done"}
    for is_golden in (False, True):
        Replay.objects.create(**attempt, verdict="reproduced", is_golden=is_golden)

    page = forks_of(bob, parent)

    assert set(re.findall(r">(\w[\w ]*#1)<", page)) == {"golden run #1", "replay #1"}


def test_a_fork_can_be_queued_again_as_it_was_asked_for(parent, bob):
    waiting = make_waiting(parent, course={"answers": [{"at": 4}], "passed": 4})

    bob.post(reverse("replay_again", args=["shop", waiting.replay_id]))

    again = Replay.objects.exclude(pk=waiting.pk).get()
    assert (again.mode, again.order, again.course) == ("fork", ORDER, {})


# --- the forks of a run ---------------------------------------------------------------------------


def test_no_forks_yet_leads_to_the_first_one(parent, bob):
    page = forks_of(bob, parent)

    assert "No forks yet." in page
    assert reverse("fork", args=["shop", "chat_1"]) in page


def test_forks_of_forks_stand_under_their_parents(shop, parent, bob):
    made = load_forked(shop)
    first = make_fork(parent, 1, produced_run=made)
    make_fork(made, 1, fork_id="deep", order=ORDER | {"at_step": 4}, expectation_met=False)
    make_fork(parent, 2)

    page = forks_of(bob, parent)

    tree = match(r'<ul class="fork-tree">(.*?)</section>', page)
    under_first = match(rf"{first.replay_id}(.*)", tree)
    assert "fork at step 4" in match(r"<ul>(.*?)</ul>", under_first)
    assert page.count("<tbody>") == 1
    assert "<span>expectation not met</span>" in page


def test_the_table_shows_change_outcome_divergence_and_sources(shop, parent, bob):
    make_fork(parent, produced_run=load_forked(shop, run_id="forked"))

    table = match(r'<table class="fork-table">(.*?)</table>', forks_of(bob, parent))

    assert "tool answer at step 3: → {" in table
    assert "Which order id?" in table
    assert "/p/shop/diff/parent...forked?step=3" in table
    assert "<span>borrowed</span></span> 1" in table
    assert "three columns" not in table


def test_a_reproduced_run_can_be_ticked_beside_a_fork(shop, parent, bob):
    attempt = load_record(shop, run_id="parent_replay_1", session_id="chat_1", origin="replay", steps=[tool_step()])
    Replay.objects.create(
        project=shop,
        run=parent,
        content=parent.content,
        number=1,
        state="done",
        verdict="reproduced",
        produced_run=attempt,
    )
    make_fork(parent, 2, produced_run=load_forked(shop, run_id="forked"))

    page = forks_of(bob, parent)

    ticked = re.findall(r'name="with"\s+value="(\w+)"', page)
    assert ticked == ["forked", "parent_replay_1"]
    assert "three columns" not in page


def test_a_fork_in_the_table_says_its_hypothesis_and_what_it_waits_for(shop, parent, bob):
    order = {"at_step": 3, "changes": [], "hypothesis": "It asks again.", "expect": {"contains": "again"}}
    stop = {"kind": "tool", "step": 4, "name": "lookup_order", "why": "unknown"}
    make_fork(parent, order=order, verdict="unknown_from_step", stopped_at=stop, expectation_met=None)

    table = match(r'<table class="fork-table">(.*?)</table>', forks_of(bob, parent))
    words = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", table)).split())

    assert "It asks again." in words
    assert "needs the answer of lookup_order (step 4)" in words
    assert 'not finished the outcome contains "again"' in words


@pytest.mark.parametrize(
    ("picked", "address"),
    [
        (["one"], "/p/shop/diff/parent...one"),
        (["one", "two"], "/p/shop/diff/parent...one?third=two"),
        (["one", "two", "three"], "/p/shop/s/chat_1/forks?run=parent"),
    ],
)
def test_ticked_runs_open_beside_the_recording(parent, bob, picked, address):
    response = bob.get(reverse("forks", args=["shop", "chat_1"]), {"run": "parent", "with": picked})

    assert response["Location"] == address


def test_the_page_has_the_same_number_of_queries_for_one_fork_and_for_three(shop, parent, bob):
    counts = []
    for numbers in ([1], [2, 3]):
        for number in numbers:
            make_fork(parent, number, produced_run=load_forked(shop, run_id=f"fork_{number}"))
        with CaptureQueriesContext(connection) as seen:
            forks_of(bob, parent)
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_hostile_forks_are_text(shop, parent, bob):
    order = ORDER | {"hypothesis": HOSTILE, "expect": HOSTILE, "changes": [{"kind": "instructions", "value": HOSTILE}]}
    replay = make_fork(parent, order=order, facts=FACTS | {"lint": [HOSTILE]}, expectation_met=None)
    pages = page_of(bob, replay) + forks_of(bob, parent) + bob.get(reverse("replays", args=["shop"])).content.decode()

    assert "<script>alert" not in pages
    assert "\u202e" not in pages


def test_charlie_finds_no_forks(parent):
    charlie = client_of(make_user("charlie", make_project("elsewhere")))

    assert charlie.get(reverse("forks", args=["shop", "chat_1"])).status_code == 404


# --- where forks are named elsewhere --------------------------------------------------------------


def test_steps_that_were_not_recorded_carry_a_chip(shop, parent, bob):
    made = load_forked(shop)
    make_fork(parent, produced_run=made)
    address = reverse("session", args=["shop", "chat_1"])

    forked = bob.get(address, {"run": made.run_id}).content.decode()
    recorded = bob.get(address, {"run": "parent"}).content.decode()

    assert 'title="an answer that somebody wrote"' in forked
    assert 'title="the same request, answered in another recorded run of this project"' in forked
    assert 'title="an answer that somebody wrote"' not in recorded


def test_a_loop_is_folded_only_where_the_answers_came_from_the_same_place(shop, bob):
    asked = [tool_step("search", source=source) for source in ("recorded",) * 3 + ("rule",) * 3]
    load_record(shop, run_id="mixed", session_id="mixed", steps=asked)
    load_record(shop, run_id="plain", session_id="plain", steps=[tool_step("search")] * 6)

    mixed = bob.get("/p/shop/s/mixed").content.decode()
    plain = bob.get("/p/shop/s/plain").content.decode()

    assert (mixed.count("× 3</strong>"), mixed.count("× 6</strong>")) == (2, 0)
    assert (plain.count("× 3</strong>"), plain.count("× 6</strong>")) == (0, 1)


def test_the_session_names_forks_among_its_replays(shop, parent, bob):
    make_fork(parent)

    tried = match(r'<section class="tried"(.*?)</section>', bob.get("/p/shop/s/chat_1").content.decode())

    assert ">fork #1</a>" in tried
    assert "at step 3" in tried
    assert "/p/shop/s/chat_1/forks?run=parent" in tried


def test_the_table_of_forks_offers_to_play_on_where_one_waits(shop, parent, bob):
    waiting, ended = make_waiting(parent, number=1), make_fork(parent, number=2)
    viewer = client_of(make_user("eve", shop, "viewer"))
    address = reverse("forks", args=["shop", "chat_1"])

    page, read = (client.get(address).content.decode() for client in (bob, viewer))

    assert page.count("Answer and continue") == 1
    assert f"/p/shop/replays/{waiting.replay_id}#answer-title" in page
    assert f"/p/shop/replays/{ended.replay_id}#answer-title" not in page
    assert "Answer and continue" not in read
