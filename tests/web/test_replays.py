"""The list of replays, and one of them while it is open."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import Golden, GoldenRun, Replay
from sessions_app.web.badges import state_of
from tests.web.making import client_of, make_project, make_user, match
from tests.web.records import load_example, load_record, model_step, tool_step

pytestmark = pytest.mark.django_db


def make_replay(run, number=1, **columns) -> Replay:
    return Replay.objects.create(project=run.project, run=run, content=run.content, number=number, **columns)


def test_pressing_replay_queues_one_and_leads_to_it(shop, bob):
    run = load_example(shop, "r_8821")

    response = bob.post(reverse("replay_session", args=["shop", run.session.session_id]), {"run": "r_8821"})

    replay = Replay.objects.get()
    assert response["Location"] == reverse("replay", args=["shop", replay.replay_id])
    assert (replay.run, replay.number, replay.state) == (run, 1, "queued")
    assert replay.requested_by is not None
    assert replay.requested_by.get_username() == "bob"


def test_a_viewer_may_look_but_not_replay(shop):
    run = load_example(shop, "r_8821")
    vera = client_of(make_user("vera", shop, role="viewer"))
    replay = make_replay(run)

    assert vera.post(reverse("replay_session", args=["shop", run.session.session_id])).status_code == 403
    assert vera.post(reverse("cancel_replay", args=["shop", replay.replay_id])).status_code == 403
    assert vera.post(reverse("replay_again", args=["shop", replay.replay_id])).status_code == 403
    assert vera.get(reverse("replay", args=["shop", replay.replay_id])).status_code == 200


@pytest.mark.parametrize("name", ["replay_session", "cancel_replay", "replay_again"])
def test_replays_are_changed_by_post_alone(shop, bob, name):
    run = load_example(shop, "r_8821")
    argument = run.session.session_id if name == "replay_session" else make_replay(run).replay_id

    assert bob.get(reverse(name, args=["shop", argument])).status_code == 405


def test_an_open_replay_shows_counted_steps_and_asks_again(shop, bob):
    replay = make_replay(
        load_example(shop, "r_8821"), state="running", progress_done=2, progress_total=5, attempt=2,
        takeovers=["2026-11-21T03:14:20Z"],
    )  # fmt: skip

    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()

    assert "Replaying step 3 of 5" in page
    assert "Steps so far" in page
    assert page.count('<span class="recorded cut">') == 2
    assert "2 of 3" in page
    assert '<span class="recorded soft answers-end">→ lookup_order' in page
    assert "03:14:20" in page
    assert 'hx-trigger="every 1s, refresh"' in page
    assert 'data-key="Shift+X"' in page


def test_a_step_that_failed_then_is_told_as_failed_while_the_replay_runs(shop, bob):
    failed = tool_step("book_room", result=None, error={"type": "HTTPError", "message": "502 Bad Gateway"})
    run = load_record(shop, steps=[model_step(1), tool_step("find_room"), failed])
    replay = make_replay(run, state="running", progress_done=3, progress_total=4)

    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()

    _, before, newest = re.findall(r'<li><span class="num">.*?</li>', page)
    assert "502 Bad Gateway" in match(r'<span class="wrong">(.*?)</span>', newest)
    assert "book_room" in newest
    assert "wrong" not in before
    assert re.search(r"1 failed: step <a [^>]+>3</a>", page)


def test_the_steps_are_one_list_that_fills_in_place_and_turns_a_page_where_it_is_full(shop, bob):
    run = load_record(shop, steps=[step for at in range(30) for step in (model_step(1), tool_step(f"tool_{at}"))])
    replay = make_replay(run, state="queued")

    def listed(**columns):
        Replay.objects.update(**columns)
        page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()
        rows = re.findall(r'<li><span class="num">(\d+)</span> .*?state-(\w+)', page)
        return [int(number) for number, _ in rows], [css for _, css in rows].count("queued")

    first = list(range(1, 21))
    assert listed() == ([], 0)
    assert listed(state="claimed") == (first, 20)
    assert listed(state="running", progress_done=5, progress_total=60) == (first, 15)
    assert listed(progress_done=25) == (list(range(21, 41)), 15)


@pytest.mark.parametrize(
    ("state", "words"), [("claimed", "Continuing after step 2"), ("running", "Replaying step 3 of 5")]
)
def test_a_continued_replay_counts_the_steps_before_its_pause(shop, bob, state, words):
    run = load_example(shop, "r_8821")
    made = load_record(shop, run_id="made", origin="replay", steps=[model_step(1), tool_step()])
    replay = make_replay(run, state=state, progress_done=0, progress_total=5, produced_run=made)

    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()

    assert words in page
    assert "<strong>2</strong> of 5 steps answered" in page
    assert page.count('<span class="recorded cut">') == 2


def test_the_final_answer_asks_no_more(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"), state="cancelled", verdict="cancelled")

    part = bob.get(reverse("replay", args=["shop", replay.replay_id]), headers={"HX-Request": "true"})

    assert "hx-trigger" not in part.content.decode()
    assert "Cancelled" in part.content.decode()


def test_a_part_that_has_not_changed_is_not_sent_again(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"), state="running", progress_total=5)
    address = reverse("replay", args=["shop", replay.replay_id])
    first = bob.get(address, headers={"HX-Request": "true"})

    same = bob.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})
    Replay.objects.update(progress_done=1)
    other = bob.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})

    assert (same.status_code, other.status_code) == (304, 200)


def test_a_waiting_replay_is_cancelled_at_once(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"))

    bob.post(reverse("cancel_replay", args=["shop", replay.replay_id]))

    replay.refresh_from_db()
    assert (replay.state, replay.verdict) == ("cancelled", "cancelled")


def test_a_queue_that_nobody_serves_is_called_stalled(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"))
    Replay.objects.update(created_at=timezone.now() - timedelta(minutes=3))

    assert "stalled" in bob.get(reverse("replays", args=["shop"])).content.decode()
    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()
    assert "Stalled: no worker is picking up replays" in match(r'<p class="verdict-words wrong">(.*?)</p>', page)
    assert "Start a worker with <code>manage.py up</code>." in page
    assert "Waiting for a worker" not in page


def test_a_replay_that_has_not_begun_leads_to_the_steps_and_does_not_list_them(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"), progress_total=3)

    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()

    assert "Steps of the recorded run" in page
    assert "Waiting for a worker" in page
    assert "so-far-title" not in page


def test_an_expectation_that_was_not_met_looks_otherwise_than_one_that_was_met_without_proof():
    for table in ("expectation", "expectation_short"):
        assert state_of(table, "met_by_hand").css == "partial"
        assert state_of(table, "not_met_by_hand").css == state_of(table, "not_met").css == "error"


def test_a_busy_worker_is_no_stall(shop, bob):
    run = load_example(shop, "r_8821")
    make_replay(run)
    Replay.objects.update(created_at=timezone.now() - timedelta(minutes=3))
    make_replay(run, 2, state="running", worker="w:1", lease_until=timezone.now() + timedelta(seconds=20))

    page = bob.get(reverse("replays", args=["shop"])).content.decode()

    assert "stalled" not in page
    assert "w:1" in page


def test_the_list_has_the_same_number_of_queries_for_one_and_for_three(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    counts = []
    for numbers in ([1], [2, 3]):
        for number in numbers:
            make_replay(run, number, state="done", verdict="reproduced")
        with CaptureQueriesContext(connection) as seen:
            bob.get(reverse("replays", args=["shop"]))
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_the_list_is_paged_by_key(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    for number in range(1, 53):
        make_replay(run, number, state="done", verdict="reproduced")

    first = bob.get(reverse("replays", args=["shop"])).content.decode()
    before = Replay.objects.get(number=3).pk
    second = bob.get(reverse("replays", args=["shop"]), {"before": before}).content.decode()

    assert first.count("data-row-link") == 50
    assert f"before={before}" in first
    assert second.count("data-row-link") == 2


@pytest.mark.parametrize(
    ("name", "shown"), [("open", 1), ("reproduced", 1), ("different", 1), ("failed", 1), ("all", 4), ("nonsense", 4)]
)
def test_the_list_can_be_narrowed(shop, bob, name, shown):
    run = load_record(shop, steps=[tool_step()])
    make_replay(run, 1)
    make_replay(run, 2, state="done", verdict="reproduced")
    make_replay(run, 3, state="done", verdict="diverged")
    make_replay(run, 4, state="crashed", verdict="could_not_run")

    page = bob.get(reverse("replays", args=["shop"]), {"state": name}).content.decode()

    assert page.count("data-row-link") == shown


def test_the_list_is_narrowed_by_time_agent_and_the_runs_that_match(shop, bob):
    for name, agent in (("old", "desk"), ("new", "bot")):
        run = load_record(shop, run_id=name, session_id=name, agent={"name": agent}, steps=[tool_step(name)])
        make_replay(run, state="done", verdict="reproduced")
    Replay.objects.filter(run__run_id="old").update(created_at=timezone.now() - timedelta(days=2))

    def listed(**asked):
        page = bob.get(reverse("replays", args=["shop"]), asked).content.decode()
        return re.findall(r'data-row-link[^>]*title="([^"]*)"', page)

    assert listed() == ["new", "old"]
    assert listed(range="24h") == ["new"]
    assert listed(agent="desk") == ["old"]
    assert listed(q="tool:new") == ["new"]
    assert listed(q="tool:none") == []


def test_a_search_that_is_not_understood_lists_no_replay(shop, bob):
    make_replay(load_record(shop, steps=[tool_step()]), state="done", verdict="reproduced")

    answer = bob.get(reverse("replays", args=["shop"]), {"q": "foo:bar"})

    assert answer.status_code == 400
    assert "There is no key foo." in answer.content.decode()
    assert "data-row-link" not in answer.content.decode()


def test_the_filters_of_the_list_keep_what_it_was_narrowed_by(shop, bob):
    page = bob.get(reverse("replays", args=["shop"]), {"q": "tool:x", "range": "7d"}).content.decode()

    assert 'href="?state=forks&amp;range=7d&amp;q=tool%3Ax"' in page


def test_an_empty_list_says_what_to_do(shop, bob):
    assert "No replay has run yet." in bob.get(reverse("replays", args=["shop"])).content.decode()


def test_replays_of_other_projects_are_not_found(shop, bob):
    replay = make_replay(load_example(make_project("other"), "r_8821"))

    assert bob.get(reverse("replay", args=["shop", replay.replay_id])).status_code == 404
    assert bob.post(reverse("cancel_replay", args=["shop", replay.replay_id])).status_code == 404


LIMIT = {"step": 4, "code": "broke_off", "reason": "The recording breaks off at step 4.", "fix": None}
MISSING = {
    "verdict": "fixture_missing",
    "state": "done",
    "divergence": {"step": 4, "path": "result", "recorded": "a", "replayed": "b"},
}


def places_of(client, run, replay):
    """All pages that show how one replay ended."""
    session = run.session.session_id
    pages = {
        "list": reverse("replays", args=["shop"]),
        "replay": reverse("replay", args=["shop", replay.replay_id]),
        "session": reverse("session", args=["shop", session]),
        "sessions": reverse("sessions", args=["shop"]),
        "peek": f"{reverse('sessions', args=['shop'])}?peek={session}",
        "forks": reverse("forks", args=["shop", session]),
    }
    return {name: client.get(address).content.decode() for name, address in pages.items()}


@pytest.mark.parametrize("verdict", ["fixture_missing", "ran_past_recording", "unknown_from_step"])
def test_a_replay_that_ended_with_its_recording_is_one_in_part_on_every_page(shop, bob, verdict):
    run = load_example(shop, "r_8821")
    replay = make_replay(run, **MISSING | {"verdict": verdict, "facts": {"limit": LIMIT}})

    for name, page in places_of(bob, run, replay).items():
        assert "<span>in part</span>" in page, name
        assert f"<span>{verdict.replace('_', ' ')}" not in page, name
    told = bob.get(reverse("replay_report", args=["shop", replay.replay_id, "json"])).json()
    assert [attempt["outcome"] for attempt in told["attempts"]] == ["partial"]


def test_where_a_replay_in_part_stopped_is_said_alike_for_the_run_of_a_golden(shop, bob):
    run = load_example(shop, "r_8821")
    in_part = MISSING | {"facts": {"limit": LIMIT}, "divergence": {"step": 3, "path": "steps[3]"}}
    make_replay(run, 1, **in_part)
    golden = Golden.objects.create(project=shop, run=run, name="Own", golden_id="gd_1", mode="recording", checks=[])
    replay = make_replay(run, 2, **in_part, is_golden=True)
    GoldenRun.objects.create(golden=golden, replay=replay, result="could_not_run", words="")

    rows = bob.get(reverse("replays", args=["shop"])).content.decode()

    assert "Nothing was compared: the recording breaks off at step 4<" in rows
    assert "replay in part at step 3" in rows


def test_what_cannot_be_compared_behind_the_last_step_is_at_no_step(shop, bob):
    """There the limit of the recording has the number after the last."""
    run = load_record(shop, steps=[model_step(1), tool_step()])
    limit = {"step": 3, "code": "not_compared", "reason": "The outcome was not recorded.", "fix": None}
    at = {"step": 3, "path": "steps[3]", "recorded": None, "replayed": None}
    in_part = {"state": "done", "verdict": "unknown_from_step", "divergence": at, "facts": {"limit": limit}}
    replay = make_replay(run, 1, **in_part)

    for name, page in places_of(bob, run, replay).items():
        assert "<span>in part</span>" in page, name
        assert "step 3" not in page, name
    assert replay.shown_divergence == {"step": None, "path": "output", "recorded": None, "replayed": None}
    inside = {"divergence": at | {"step": 2}, "facts": {"limit": limit | {"step": 2}}}
    assert make_replay(run, 2, **in_part | inside).shown_divergence["step"] == 2


def test_a_replay_that_lacks_an_answer_says_so_on_every_page(shop, bob):
    """Also where something went another way before the recording ends, which is no end in part."""
    run = load_example(shop, "r_8821")
    replay = make_replay(run, **MISSING)

    for name, page in places_of(bob, run, replay).items():
        assert "<span>fixture missing</span>" in page, name
        assert "<span>in part</span>" not in page, name

    other = make_replay(run, 2, **MISSING | {"verdict": "diverged", "facts": {"limit": LIMIT}})
    told = bob.get(reverse("replay_report", args=["shop", other.replay_id, "json"])).json()
    assert [attempt["outcome"] for attempt in told["attempts"]] == ["unknown", "different"]


def test_an_end_in_part_does_not_say_that_the_run_does_not_reproduce(shop, bob):
    run = load_example(shop, "r_8821")
    workflow = reverse("workflow", args=["shop", run.session.session_id])

    make_replay(run, 1, **MISSING | {"facts": {"limit": LIMIT}})
    assert "Not reproduced yet." in bob.get(workflow).content.decode()

    make_replay(run, 2, **MISSING)
    assert "It does not reproduce: replay #2 asked for an answer" in bob.get(workflow).content.decode()


def test_the_filters_tell_replays_in_part_from_different_ones(shop, bob):
    run = load_example(shop, "r_8821")
    in_part = make_replay(run, 1, **MISSING | {"facts": {"limit": LIMIT}})
    missing = make_replay(run, 2, **MISSING)
    fork = {"mode": "fork", "state": "done", "verdict": "unknown_from_step"}
    ended, waiting = make_replay(run, 3, **fork | {"facts": {"limit": LIMIT}}), make_replay(run, 4, **fork)

    def listed(name):
        page = bob.get(reverse("replays", args=["shop"]), {"state": name}).content.decode()
        return [each.number for each in (in_part, missing, ended, waiting) if each.replay_id in page]

    assert listed("in part") == [1, 3]
    assert listed("different") == []
    assert listed("failed") == [2]
    assert listed("waiting for an answer") == [4]
    for page, words in (("replays", r'answer <span class="count">1</span>'), ("project", "1 waiting for an answer")):
        assert re.search(f"{words}</a>", bob.get(reverse(page, args=["shop"])).content.decode())


def test_a_fork_that_diverged_is_listed_under_diverged_and_the_tabs_count(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    fork = make_replay(run, 1, mode="fork", fork_id="f", state="done", verdict="diverged")
    make_replay(run, 2, state="done", verdict="reproduced")

    page = bob.get(reverse("replays", args=["shop"]), {"state": "different"}).content.decode()

    assert fork.replay_id in page
    assert page.count("data-row-link") == 1
    tabs = re.findall(r'\?state=[^>]*>([a-z ]+?) <span class="count">(\d+)<', page)
    assert tabs == [("all", "2"), ("forks", "1"), ("reproduced", "1"), ("diverged", "1")]


def test_a_row_says_once_how_its_replay_ended(shop, bob):
    run = load_record(shop, steps=[tool_step()])
    make_replay(run, 1, state="done", verdict="reproduced")
    make_replay(run, 2, state="crashed", verdict="could_not_run")
    make_replay(run, 3, state="running", progress_done=0, progress_total=1)

    page = bob.get(reverse("replays", args=["shop"])).content.decode()

    states = re.findall(r'class="state state-[^>]*>.*?<span>([^<]*)</span>', page)
    assert states == ["running", "crashed", "reproduced"]


def test_a_polled_replay_brings_the_number_of_open_replays_so_that_it_ends_with_them(shop, bob):
    replay = make_replay(load_example(shop, "r_8821"), state="running", progress_done=2, progress_total=5)
    address = reverse("replay", args=["shop", replay.replay_id])

    running = bob.get(address, headers={"HX-Request": "true"}).content.decode()
    Replay.objects.update(state="cancelled", verdict="cancelled")
    over = bob.get(address, headers={"HX-Request": "true"}).content.decode()

    counter = r'<span id="open-replays" hx-swap-oob="true">(.*?)</span>\s*$'
    assert "1 replay in progress" in match(counter, running)
    assert match(counter, over).strip() == ""
