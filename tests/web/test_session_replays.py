"""All runs of a session replayed: the button, the page while they are open and when they are over, the files."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from sessions_app.models import Replay, Run, SessionReplay
from sessions_app.services.cold_cases import mark_cold
from sessions_app.services.session_replays import request_session_replay
from tests.contradicting import turns_that_contradict
from tests.proofs import make_proof
from tests.web.making import client_of, make_project, make_user, match
from tests.web.records import load_record, model_step, tool_step

pytestmark = pytest.mark.django_db
MARKUP = "<script>alert(1)</script>"
FACTS = {"proof": make_proof(1).to_json()}


def make_session(project, count=2, session_id="chat"):
    names = [f"{session_id}_{number}" for number in range(1, count + 1)]
    runs = [load_record(project, run_id=name, session_id=session_id, steps=[tool_step()]) for name in names]
    return runs[0].session


def ask(project, **more):
    return request_session_replay(session=make_session(project, **more))


def finish(asked, *verdicts, **columns):
    for replay, verdict in zip(asked.replays.order_by("pk"), verdicts, strict=True):
        Replay.objects.filter(pk=replay.pk).update(state="done", verdict=verdict, facts=FACTS, **columns)


def page_of(client, asked, **headers):
    response = client.get(reverse("session_replay", args=["shop", asked.session_replay_id]), headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def words_of(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def rows_of(page):
    return [words_of(row) for row in re.findall(r"<tr.*?</tr>", page, re.DOTALL)[1:]]


def test_the_button_replays_all_runs_and_leads_to_the_page(shop, bob):
    session = make_session(shop)
    page = bob.get(reverse("session", args=["shop", "chat"])).content.decode()
    address = reverse("replay_all", args=["shop", "chat"])
    assert f'action="{address}"' in page

    response = bob.post(address)

    asked = SessionReplay.objects.get()
    assert response["Location"] == reverse("session_replay", args=["shop", asked.session_replay_id])
    assert (asked.session, asked.replays.count(), asked.requested_by.get_username()) == (session, 2, "bob")
    again = bob.get(reverse("session", args=["shop", "chat"])).content.decode()
    assert response["Location"] in again


def test_a_session_of_one_run_has_no_such_button(shop, bob):
    make_session(shop, 1)

    page = bob.get(reverse("session", args=["shop", "chat"])).content.decode()

    assert "Replay all runs" not in page


def test_while_runs_are_open_the_page_asks_again(shop, bob):
    asked = ask(shop)

    page = page_of(bob, asked)

    assert "0 of 2 runs have finished" in page
    assert 'hx-trigger="every 2s, refresh"' in page
    assert "Cancel" in page
    assert rows_of(page) == [
        "1 check all done queued #1 of chat_1",
        "2 check all done queued #1 of chat_2",
    ]


def test_the_final_answer_asks_no_more(shop, bob):
    asked = ask(shop)
    finish(asked, "reproduced", "reproduced")

    part = page_of(bob, asked, **{"HX-Request": "true"})

    assert "hx-trigger" not in part
    assert "Reproduced: all 2 runs" in part
    assert rows_of(part)[0] == "1 check all done reproduced #1 of chat_1"


def test_the_number_in_the_bar_ends_with_the_replay_of_all_runs(shop, bob):
    asked = ask(shop)
    counter = re.compile(r'<span id="open-replays" hx-swap-oob="true">(.*?)</span>\s*$', re.DOTALL)

    running = counter.search(page_of(bob, asked, **{"HX-Request": "true"}))
    finish(asked, "reproduced", "reproduced")
    over = counter.search(page_of(bob, asked, **{"HX-Request": "true"}))

    assert running is not None
    assert over is not None
    assert "2 replays in progress" in running[1]
    assert over[1].strip() == ""


def test_a_paused_session_waits_for_somebody_and_does_not_poll(shop, bob):
    asked = ask(shop)
    asked.replays.update(state="paused")

    page = page_of(bob, asked)

    assert "hx-trigger" not in page
    assert "paused" in words_of(page)


def test_a_run_that_is_not_reproduced_names_the_place(shop, bob):
    asked = ask(shop, count=3)
    finish(asked, "reproduced", "diverged", "diverged", divergence=None)
    found = {"step": 4, "path": "args.user_id", "recorded": "a", "replayed": "b"}
    asked.replays.filter(run__run_id="chat_2").update(divergence=found)

    page = page_of(bob, asked)

    assert "1 of 3 runs reproduced, 2 diverged" in page
    assert "at step 4: argument user_id: &quot;a&quot; → &quot;b&quot;" in rows_of(page)[1]


def test_what_several_runs_lack_is_told_once_above_them(shop, bob):
    asked = ask(shop, count=4)
    finish(asked, "reproduced", *["unknown_from_step"] * 3)
    limit = {
        "step": 9,
        "code": "instructions_contradicted",
        "reason": "It is not the same.",
        "fix": "Set `instructions`.",
    }
    asked.replays.exclude(verdict="reproduced").update(facts=FACTS | {"limit": limit})

    page = page_of(bob, asked)

    assert "1 of 4 runs reproduced, 3 in part" in page
    assert words_of(match(r'<ul class="shared-reasons">(.*?)</ul>', page)) == (
        "in part 3 runs (2–4) It is not the same. Set instructions ."
    )
    assert page.count("It is not the same.") == 1
    assert rows_of(page)[3] == "4 check all done in part same 1 step #1 of chat_4"


def test_the_run_that_went_wrong_is_marked_in_the_table(shop, bob):
    asked = ask(shop, count=3)
    finish(asked, *["reproduced"] * 3)
    found = {"code": "refusal_unsaid", "message": "charge answered declined", "steps": [1], "level": "warning"}
    Run.objects.filter(run_id="chat_2").update(anomalies=[found])

    rows = rows_of(page_of(bob, asked))

    assert ["charge answered declined" in row for row in rows] == [False, True, False]


def test_list_tabs_and_head_say_which_run_is_cold_or_did_not_reproduce(shop, bob):
    asked = ask(shop, count=3)
    finish(asked, "reproduced", "diverged", "reproduced")
    Run.objects.update(verdict="replayable")

    def shown():
        row = match(r"(<tr role=\"row\"\s+data-row.*?</tr>)", bob.get("/p/shop/sessions").content.decode())
        head = match(r'<nav class="runs(.*?)<div class="views-line"', bob.get("/p/shop/s/chat").content.decode())
        return words_of(row), words_of(head)

    row, head = shown()
    assert "3 runs" in row
    assert "diverged 1 of 3" in row
    assert "2 diverged chat_2 3 chat_3" in head
    assert "2 of 3 runs reproduced" in head

    chat_2 = Replay.objects.filter(run__run_id="chat_2")
    chat_2.update(verdict="unknown_from_step", facts=FACTS | {"limit": {"message": "It ends.", "step": 2}})
    assert "2 chat_2 3 chat_3" in shown()[1]
    chat_2.update(verdict="diverged", facts=FACTS)

    mark_cold(run=Run.objects.get(run_id="chat_1"), reason="lost")
    Run.objects.filter(run_id="chat_3").update(status="error", failure_group="f" * 10)
    row, head = shown()
    assert "1 of 3 went wrong" in row
    assert "cold 1 of 3" in row
    assert "1 cold chat_1 2 diverged chat_2 3 error chat_3" in head


def test_runs_are_told_apart_by_what_they_were_asked_and_those_that_went_wrong_are_linked(shop, bob):
    load_record(shop, run_id="chat_1", session_id="chat", input="Is breakfast included?")
    load_record(shop, run_id="chat_2", session_id="chat", input="Pay with the card on file")

    def head(run="chat_1"):
        page = bob.get(f"/p/shop/s/chat?run={run}").content.decode()
        return words_of(match(r'<nav class="runs(.*?)<div class="top"', page))

    assert "2 cold Pay with the card on" in head()
    assert "went wrong" not in head()

    Run.objects.filter(run_id="chat_2").update(failure_group="f" * 10)

    assert "1 of 2 runs went wrong: 2 Pay with the card on file" in head()
    assert "may repeat what was wrong" not in head()
    load_record(shop, run_id="chat_3", session_id="chat", input="Did it work?", steps=[model_step()])
    assert "this run came after it and called no tool" in head("chat_3")
    assert "runs went wrong" not in head("chat_2")


def test_a_conversation_says_which_of_its_turns_went_wrong(shop, bob):
    load_record(shop, run_id="chat_1", session_id="chat", input="Pay with the card on file")
    odd = {"code": "refusal_unsaid", "message": "charge_card answered declined", "steps": [1], "level": "warning"}

    def thread():
        return words_of(bob.get("/p/shop/s/chat?view=messages").content.decode().partition('class="turn')[2])

    assert "declined" not in thread()

    Run.objects.update(failure_group="f" * 10, anomalies=[odd])

    assert "step 1 charge_card answered declined" in thread()


def test_an_orchestrator_stands_before_its_sub_agents(shop, bob):
    began = "2026-11-17T15:14:0{}Z"
    called = {"session_id": "brief", "parent": {"run_id": "lead", "step": 2}}
    load_record(shop, run_id="writer", started_at=began.format(5), **called)
    load_record(shop, run_id="lead", session_id="brief", started_at=began.format(1))

    head = words_of(match(r'<nav class="runs(.*?)</nav>', bob.get("/p/shop/s/brief").content.decode()))

    assert re.search(r"1 \w* ?lead 2 \w* ?writer", head)


def test_why_runs_could_not_run_is_said_once(shop, bob):
    asked = ask(shop)
    asked.replays.update(state="failed", verdict="could_not_run", error="no agent")

    page = page_of(bob, asked)

    assert "0 of 2 runs reproduced, 2 could not run" in page
    assert page.count("no agent") == 1


def test_runs_that_contradict_each_other_are_named_on_every_page(shop, bob):
    run, _ = [load_record(shop, **turn) for turn in turns_that_contradict()]
    asked = request_session_replay(session=run.session)
    finish(asked, "reproduced", "reproduced", finished_at=timezone.now())

    page = page_of(bob, asked)

    place = "run 2 (turn_2), step 1: messages[1].parts[0].content is not what run 1 (turn_1) says at step 1"
    words = f"All 2 runs reproduced, but they contradict each other: {place}"
    assert "verdict-diverged" in page
    assert words_of(page).count(words) == 1
    assert "their recordings cannot both be right" in page
    tabs = bob.get(reverse("session", args=["shop", "chat"])).content.decode()
    assert f'title="{words}"' in tabs
    [row] = rows_of(bob.get(reverse("replays", args=["shop"])).content.decode())
    assert row.startswith("contradictory 2 reproduced 2 runs of chat")
    now = bob.get(reverse("project", args=["shop"])).content.decode()
    assert "contradictory" in words_of(now.partition('id="now-replays"')[2])


def test_a_part_that_has_not_changed_is_not_sent_again(shop, bob):
    asked = ask(shop)
    address = reverse("session_replay", args=["shop", asked.session_replay_id])
    first = bob.get(address, headers={"HX-Request": "true"})

    same = bob.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})
    finish(asked, "reproduced", "reproduced")
    other = bob.get(address, headers={"HX-Request": "true", "If-None-Match": first["ETag"]})

    assert (same.status_code, other.status_code) == (304, 200)


def test_cancelled_is_no_error(shop, bob):
    asked = ask(shop)

    bob.post(reverse("cancel_session_replay", args=["shop", asked.session_replay_id]))

    page = page_of(bob, asked)
    assert rows_of(page)[0] == "1 check all done cancelled #1 of chat_1"
    assert "rror" not in match(r"(<article.*</article>)", page)
    assert "Cancelled" in match(r"(<article.*</article>)", page)


def test_the_same_order_is_given_again(shop, bob):
    asked = ask(shop)
    finish(asked, "reproduced", "diverged")

    bob.post(reverse("session_replay_again", args=["shop", asked.session_replay_id]))

    newest = SessionReplay.objects.latest("pk")
    assert (newest.pk != asked.pk, newest.mode, newest.order) == (True, asked.mode, asked.order)
    assert [replay.number for replay in newest.replays.all()] == [2, 2]


def test_a_replay_leads_to_the_session_replay_that_asked_for_it(shop, bob):
    asked = ask(shop)
    replay = asked.replays.first()

    page = bob.get(reverse("replay", args=["shop", replay.replay_id])).content.decode()

    assert reverse("session_replay", args=["shop", asked.session_replay_id]) in page


@pytest.mark.parametrize("suffix", ["md", "txt", "json"])
def test_the_report_as_a_file_is_never_markup(shop, bob, suffix):
    load_record(shop, run_id=MARKUP, session_id="chat", steps=[tool_step()])
    asked = ask(shop)

    response = bob.get(reverse("session_replay_report", args=["shop", asked.session_replay_id, suffix]))

    assert response.status_code == 200
    assert response["Content-Type"] in ("text/plain; charset=utf-8", "application/json")
    assert (response["X-Content-Type-Options"], response["Content-Security-Policy"][:7]) == ("nosniff", "sandbox")


def test_recorded_text_is_never_markup_on_the_page(shop, bob):
    load_record(shop, run_id=MARKUP, session_id="chat", steps=[tool_step()])

    page = page_of(bob, ask(shop))

    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page


def test_a_viewer_may_look_but_not_replay(shop):
    asked = ask(shop)
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert vera.post(reverse("replay_all", args=["shop", "chat"])).status_code == 403
    for name in ("cancel_session_replay", "session_replay_again"):
        assert vera.post(reverse(name, args=["shop", asked.session_replay_id])).status_code == 403
    page = page_of(vera, asked)
    assert "Cancel" not in page
    assert "Replay all runs" not in vera.get(reverse("session", args=["shop", "chat"])).content.decode()


def test_another_project_sees_nothing_of_it(shop, bob):
    asked = ask(shop)
    other = make_project("other")
    carol = client_of(make_user("carol", other))

    for slug in ("shop", "other"):
        assert carol.get(reverse("session_replay", args=[slug, asked.session_replay_id])).status_code == 404
        assert carol.post(reverse("cancel_session_replay", args=[slug, asked.session_replay_id])).status_code == 404
        report = reverse("session_replay_report", args=[slug, asked.session_replay_id, "json"])
        assert carol.get(report).status_code == 404
    assert set(Replay.objects.values_list("state", flat=True)) == {"queued"}


@pytest.mark.parametrize("name", ["replay_all", "cancel_session_replay", "session_replay_again"])
def test_sessions_are_replayed_by_post_alone(shop, bob, name):
    asked = ask(shop)
    argument = "chat" if name == "replay_all" else asked.session_replay_id

    assert bob.get(reverse(name, args=["shop", argument])).status_code == 405


def test_the_page_has_the_same_number_of_queries_for_one_and_for_three(shop, bob):
    counts = []
    for count, name in ((1, "one"), (3, "three")):
        asked = ask(shop, count=count, session_id=name)
        finish(asked, *["diverged"] * count)
        with CaptureQueriesContext(connection) as seen:
            page_of(bob, asked)
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_replays_of_one_session_are_one_row_of_the_list(shop, bob):
    asked = ask(shop, count=3)
    finish(asked, "reproduced", "diverged", "reproduced")
    other = load_record(shop, run_id="alone", session_id="other", input="Where is it?", steps=[tool_step()])
    Replay.objects.create(
        project=shop, run=other, content=other.content, number=1, state="failed", error="No tool answered."
    )

    page = bob.get(reverse("replays", args=["shop"])).content.decode()

    alone, batch = rows_of(page)
    assert "could not run No tool answered." in alone
    assert "#1 Where is it?" in alone
    assert batch.startswith("diverged 2 reproduced · 1 diverged 3 runs of chat")
    assert reverse("session_replay", args=["shop", asked.session_replay_id]) in page
    assert f'action="{reverse("session_replay_again", args=["shop", asked.session_replay_id])}"' in page


def test_what_is_not_over_comes_first_in_the_list_with_who_asked_for_it(shop, bob):
    run = load_record(shop, run_id="old", session_id="old", steps=[tool_step()])
    made = {"project": shop, "run": run, "content": run.content}
    Replay.objects.create(**made, number=1, state="running")
    Replay.objects.create(**made, number=2, state="failed", error="No tool answered.")

    Replay.objects.create(**made, number=3, state="failed", requested_by=make_user("ann", shop))

    page = bob.get(reverse("replays", args=["shop"])).content.decode()

    rows = rows_of(page)
    assert [re.search(r"#\d", row)[0] for row in rows] == ["#1", "#3", "#2"]
    assert ["ann" in row for row in rows] == [False, True, False]
