"""The page of the reproduction workflow: states, evidence, the branch of runs that do not reproduce, roles."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.models import Golden, GoldenBatch, GoldenRun, Replay
from sessions_app.queries import workflow as queries
from sessions_app.queries.workflow import workflow_facts
from tests.losing import lose_payloads
from tests.web.forked import ORDER, load_forked, load_parent, make_fork, make_paused, make_waiting
from tests.web.making import HOSTILE, client_of, make_user, match
from tests.web.records import load_example, load_record, long_run, model_step, tool_step

pytestmark = pytest.mark.django_db


@pytest.fixture
def parent(shop):
    return load_parent(shop)


def make_replay(run, number=1, verdict="reproduced", **columns):
    columns = {"state": "done"} | columns
    return Replay.objects.create(
        project=run.project, run=run, content=run.content, number=number, verdict=verdict, **columns
    )


def make_diverged(run, number=1, **columns):
    return make_replay(run, number, "diverged", divergence={"step": 2, "path": "args"}, **columns)


def address_of(run):
    return f"{reverse('workflow', args=['shop', run.session.session_id])}?run={run.run_id}"


def page_of(client, run):
    response = client.get(address_of(run))
    assert response.status_code == 200
    return response.content.decode()


def step_of(page, number):
    return match(rf'(<li id="step-{number}".*?)(?:<li id="step-|</ol>)', page)


def words_of(text):
    return " ".join(re.sub(r"<[^>]*>", " ", text).split())


def next_step(page):
    return match(r'<li id="step-(\d)"\s+class="[^"]*"\s+aria-current="step"', page)


def header(page):
    return match(r'<div class="head-next">(.*?)</div>\s*</div>', page)


def test_a_run_that_was_not_replayed_asks_for_a_replay(bob, parent):
    page = page_of(bob, parent)

    assert page.count('<li id="step-') == 7
    assert next_step(page) == "4"
    assert "Not reproduced yet." in page
    assert 'action="/p/shop/s/chat_1/replay"' in header(page)
    assert 'name="run" value="parent"' in header(page)
    assert "data-next" in header(page)
    assert "New attempt" not in page


@pytest.mark.parametrize(
    ("mode", "words"), [("code", "code replay #1"), ("code_and_tools", "replay #1 with code and tools")]
)
def test_a_replay_of_own_code_is_evidence_by_its_name(bob, parent, mode, words):
    make_replay(parent, mode=mode)

    assert f"{words} reproduced the run" in words_of(step_of(page_of(bob, parent), 4))


def test_a_step_that_was_done_links_to_its_evidence(bob, parent):
    replay = make_replay(parent)
    fork = make_fork(parent, 2, produced_run=load_forked(parent.project))
    page = page_of(bob, parent)

    assert f'<a href="/p/shop/replays/{replay.replay_id}">replay #1 reproduced the run</a>' in step_of(page, 4)
    assert f"/p/shop/replays/{fork.replay_id}" in step_of(page, 5)
    assert f"/p/shop/replays/{fork.replay_id}" in step_of(page, 7)
    assert "fork #2 at step 3 ended as expected" in words_of(step_of(page, 7))
    assert fork.replay_id not in step_of(page, 4)


def test_a_run_that_reproduces_is_debugged_and_needs_no_world(bob, parent):
    make_replay(parent)

    page = page_of(bob, parent)

    assert "Replay #1 reproduced the run." in page
    assert next_step(page) == "5"
    assert "not needed" in words_of(step_of(page, 6))
    assert re.search(r'class="flow-factors"\s*>', step_of(page, 6))
    assert "/p/shop/s/chat_1/replay-options?run=parent" in header(page)
    assert "New attempt" in step_of(page, 4)
    assert "#step-3" not in page


def test_a_run_that_does_not_reproduce_shows_three_factors_and_a_new_attempt(bob, parent):
    make_diverged(parent)

    page = page_of(bob, parent)
    branch = step_of(page, 6)

    assert "It does not reproduce: replay #1 took a different course at step 2." in page
    assert next_step(page) == "6"
    assert re.search(r'class="flow-factors"\s+open', branch)
    for title in ("Time-dependent data?", "API changes?", "Rate limits?"):
        assert title in branch
    assert 'href="#step-3"' in branch
    assert 'action="/p/shop/s/chat_1/replay"' in branch
    assert "New attempt" in branch
    assert "New attempt" in header(page)


def test_a_new_attempt_is_queued_by_the_button(bob, parent):
    make_diverged(parent)
    action = match(r'<form method="post" action="([^"]*)"', step_of(page_of(bob, parent), 6))

    response = bob.post(action, {"run": "parent"})

    made = parent.replays.get(number=2)
    assert (made.mode, made.state, made.verdict) == ("recording", "queued", None)
    assert response["Location"] == f"/p/shop/replays/{made.replay_id}"


def test_a_fork_that_did_not_end_as_expected_leads_to_the_factors(bob, parent):
    make_fork(parent, expectation_met=False)

    page = page_of(bob, parent)

    assert "It does not reproduce: fork #1 at step 3 did not end as expected" in page
    assert next_step(page) == "4"
    assert "New attempt" in step_of(page, 6)


def test_what_the_recording_knows_of_a_limit_leads_to_its_step(shop, bob):
    run = load_example(shop, "price_429")
    make_diverged(run)

    branch = step_of(page_of(bob, run), 6)
    limits = match(r'id="factor-rate_limit">(.*?)</section>', branch)

    assert "HTTP 429." in limits
    assert re.search(r'href="/p/shop/s/chat_1187_1118/steps/2(\?[^"]*)?">2</a>', limits)
    assert "not seen" in words_of(limits)
    assert "not captured" in words_of(match(r'id="factor-api">(.*?)</section>', branch))


def test_a_paused_replay_is_debugging(bob, parent):
    paused = make_paused(parent)

    assert paused.replay_id in step_of(page_of(bob, parent), 5)


def test_a_replay_with_breakpoints_is_debugging_and_one_without_is_not(bob, parent):
    plain = make_replay(parent, 1)
    stopping = make_replay(parent, 2, order={"breakpoints": [{"step": 2}]})

    debugging = step_of(page_of(bob, parent), 5)

    assert stopping.replay_id in debugging
    assert plain.replay_id not in debugging


def test_code_replays_decide_and_forks_that_wait_do_not(bob, parent):
    make_waiting(parent, number=1)
    assert "Not reproduced yet" in page_of(bob, parent)

    make_replay(parent, 2, "diverged", mode="code", divergence={"step": 3}, order={"agent": "support"})
    assert "It does not reproduce: code replay #2 took a different course at step 3." in page_of(bob, parent)


@pytest.mark.parametrize("state", ["crashed", "cancelled"])
def test_a_replay_that_died_says_nothing(bob, parent, state):
    make_replay(parent, 1, "could_not_run", state=state)

    assert "Not reproduced yet" in page_of(bob, parent)
    assert "replay #1 did not finish" in step_of(page_of(bob, parent), 4)


def test_forks_of_forks_are_named_with_their_parent(bob, parent):
    made = load_forked(parent.project)
    make_fork(parent, 1, produced_run=made)
    deep = make_fork(made, 1, fork_id="deep", order=ORDER | {"at_step": 4})
    make_replay(made, 2, mode="code", order={"agent": "support"})

    page = page_of(bob, parent)

    assert deep.replay_id in step_of(page, 5)
    assert f"fork #1 at step 4 of {made.run_id}" in page
    assert "It reproduces: code replay" not in page


def test_when_all_is_done_but_a_fix_a_fork_is_next_and_then_a_golden(bob, parent):
    make_replay(parent)
    make_fork(parent, 2, expectation_met=False)

    page = page_of(bob, parent)

    assert next_step(page) == "7"
    assert 'href="/p/shop/s/chat_1/fork?run=parent"' in header(page)

    make_fork(parent, 3)
    assert 'href="/p/shop/s/chat_1/golden?run=parent"' in header(page_of(bob, parent))


def test_a_golden_that_passed_ends_the_work(bob, parent):
    make_replay(parent)
    make_fork(parent, 3)
    golden = Golden.objects.create(
        project=parent.project, run=parent, name="Own orders", checks=[], fails_on=["parent"], passes_on=["fixed"]
    )
    deploy = GoldenBatch.objects.create(project=parent.project, label="v2", is_deploy=True)
    run = GoldenRun.objects.create(golden=golden, batch=deploy, replay=make_replay(parent, 2), result="pass")

    page = page_of(bob, parent)

    assert f'href="/p/shop/goldens/{golden.golden_id}"' in step_of(page, 7)
    assert f'href="/p/shop/golden-runs/{run.golden_run_id}"' in step_of(page, 7)
    words = words_of(step_of(page, 7))
    red, fix, green = (
        words.index(each)
        for each in (
            "red: golden Own orders fails on parent",
            "fix: fork #3",
            "green: golden Own orders: passed after the deploy of v2",
        )
    )
    assert red < fix < green
    assert "There is nothing left to do here." in page


def test_without_a_fork_the_fix_is_the_run_on_which_the_golden_passed(bob, parent):
    Golden.objects.create(
        project=parent.project, run=parent, name="Own orders", checks=[], fails_on=["parent"], passes_on=["fixed"]
    )

    assert "fix: golden Own orders passes on fixed" in words_of(step_of(page_of(bob, parent), 7))


def test_a_cold_run_has_no_button_to_replay_it(shop, bob):
    run = load_record(shop, run_id="cold", session_id="cold", steps=[tool_step(result=None)])
    assert run.verdict == "cold"

    page = page_of(bob, run)

    assert next_step(page) == "6"
    assert "not possible" in words_of(step_of(page, 4))
    assert "/replay" not in re.sub(r"/p/shop/replays\b", "", page)


def test_viewers_read_all_and_change_nothing(shop, parent):
    make_diverged(parent)
    viewer = client_of(make_user("vera", shop, "viewer"))

    page = page_of(viewer, parent)
    main = page[page.index('<main id="main"') :]
    main = main[: main.index("</main>")]

    assert "Time-dependent data?" in main
    assert "replay #1 took a different course" in main
    assert "<form" not in main
    assert "<button" not in main
    assert 'class="btn' not in main


def test_strangers_do_not_find_the_page(parent):
    charlie = client_of(make_user("charlie"))

    assert charlie.get(address_of(parent)).status_code == 404


def test_a_run_that_is_not_there_is_not_found(bob, parent):
    assert bob.get(reverse("workflow", args=["shop", "chat_1"]), {"run": "nobody"}).status_code == 404
    assert bob.get(reverse("workflow", args=["shop", "nothing"])).status_code == 404


def test_recorded_text_is_escaped(shop, bob):
    run = load_record(shop, run_id="x<b>", session_id="s<b>", steps=[tool_step()])
    steps = [model_step(answered_model="<b>"), tool_step("a<script>alert(1)</script>", result=HOSTILE)]
    other = load_record(shop, run_id="other", session_id="other", model=HOSTILE, provider=HOSTILE, steps=steps)
    make_fork(other, order=ORDER | {"expect": {"contains": HOSTILE}}, expectation_met=False)

    pages = page_of(bob, run) + page_of(bob, other)

    assert "requested sonnet-4, &lt;b&gt; answered" in pages
    assert "<b>" not in pages
    assert "<script>alert" not in pages
    assert "&lt;script&gt;alert(1)" in pages
    assert "\u202e" not in pages


def test_the_session_leads_to_its_workflow_and_a_shared_one_does_not(shop, bob, parent):
    session = bob.get(reverse("session", args=["shop", "chat_1"])).content.decode()

    assert 'href="/p/shop/s/chat_1/workflow?run=parent"' in session
    response = client_of(make_user("ann", shop, "admin")).post(reverse("share", args=["shop", "chat_1"]), {"days": "7"})
    link = match(r"(/shared/[\w-]+)", response.content.decode())
    shared = bob.get(link).content.decode()
    assert "lookup_order" in shared
    assert "/workflow" not in shared


def test_the_page_takes_the_same_number_of_queries_however_much_was_tried(bob, parent):
    make_diverged(parent, 1)
    make_fork(parent, 2, produced_run=load_forked(parent.project))
    few = queries_of(bob, parent)

    for number in range(3, 9):
        make_diverged(parent, number)
        run_id = f"parent_fork_{number}"
        make_fork(parent, number + 10, produced_run=load_forked(parent.project, run_id=run_id))

    assert queries_of(bob, parent) == few


def queries_of(client, run):
    with CaptureQueriesContext(
        connection,
    ) as caught:
        page_of(client, run)
    return len(caught)


def test_a_long_run_takes_no_more_queries_and_only_its_first_steps_are_read(shop, monkeypatch):
    short = load_record(shop, run_id="short", session_id="short", steps=long_run(2))
    long = load_record(shop, run_id="long", session_id="long", steps=long_run(40))
    monkeypatch.setattr(queries, "STEPS", 30)

    with CaptureQueriesContext(connection) as of_short:
        assert not workflow_facts(short).is_part
    with CaptureQueriesContext(connection) as of_long:
        facts = workflow_facts(long)

    assert (facts.is_part, len(facts.run.steps)) == (True, 30)
    assert len(of_long) == len(of_short)


def test_bytes_that_are_gone_are_not_captured_and_not_unseen(shop, bob):
    steps = [tool_step(result={"day": "no day " * 40})]
    run = load_record(shop, run_id="gone", session_id="gone", steps=steps)
    assert "without arguments or without an answer" not in page_of(bob, run)

    lose_payloads(shop)

    page = page_of(bob, run)
    assert "1 step without arguments or without an answer to look in." in page
