"""What needs somebody now, and what runs cost."""

import html
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from sessions_app.core.cost_figures import CostFigures
from sessions_app.core.pricing import Cost
from sessions_app.models import ModelPrice, Project, Replay, Run, SessionReplay
from sessions_app.queries.failing_now import failing_now
from sessions_app.services.cold_cases import mark_cold
from sessions_app.services.ingest import ingest_document
from sessions_app.web.costs.chart import colours_of, cost_chart
from sessions_app.web.goldens.standing import Standing
from tests.builders import make_record, make_tool_step
from tests.web.making import client_of, make_project, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture
def bob(shop):
    return client_of(make_user("bob", shop, role="admin"))


def model_step(model: str, tokens: int | None = 1_000_000) -> dict[str, Any]:
    return {"kind": "model", "model": model, "input_tokens": tokens, "output_tokens": 0}


def send(project: Project, run_id: str, *steps: dict[str, Any], at: datetime | None = None, **fields: Any) -> Any:
    facts = {"status": "ok", "output": "Done.", "started_at": (at or timezone.now()).isoformat()} | fields
    return ingest_document(project, json.dumps(make_record(run_id, *steps, **facts)).encode()).run


def fail(project: Project, run_id: str, message: str, **fields: Any) -> Any:
    return send(project, run_id, status="error", error={"type": "IOError", "message": message}, **fields)


# --- failures


def test_failures_are_grouped_with_their_first_and_last_time(shop):
    now = timezone.now()
    first, last = now - timedelta(days=3), now - timedelta(hours=1)
    fail(shop, "r1", "order 1 is gone", at=first)
    fail(shop, "r2", "order 2 is gone", at=last)
    send(shop, "r3")

    (failure,) = failing_now(shop, now).failures

    assert (failure.count, failure.today, failure.first_at, failure.last_at) == (2, 1, first, last)
    assert (failure.days[-1], failure.days[-4], sum(failure.days)) == (1, 1, 2)
    assert failure.newest.newest.run_id == "r2"
    assert failure.is_rising
    assert not failure.is_new


def test_a_title_leaves_out_what_differs_between_the_runs_of_a_group(bob, shop):
    for number in (1, 2):
        fail(shop, f"r{number}", f"worker 400{number} ran out of memory")
    fail(shop, "other", "worker 7 is gone")

    pages = [bob.get(address).content.decode() for address in ("/p/shop/", FAILURES)]

    for page in pages:
        assert "IOError: worker … ran out of memory" in page
        assert "worker 400" not in page
        assert "IOError: worker 7 is gone" in page


def test_the_same_failure_of_several_agents_is_one_and_leads_to_all_its_runs(bob, shop):
    for name in ("desk", "bot", "bot"):
        fail(shop, f"{name}{timezone.now().microsecond}", "order 1 is gone", agent={"name": name, "version": "1"})
    fail(shop, "other", "connection reset", agent={"name": "desk"})

    page, found = bob.get("/p/shop/").content.decode(), failing_now(shop, timezone.now())

    assert [(each.count, each.agents) for each in found.failures] == [(3, ["bot", "desk"]), (1, ["desk"])]
    assert "2 failures or anomalies, 2 of them in the last 24 hours" in page
    listed = bob.get("/p/shop/sessions", {"q": found.failures[0].query}).content.decode()
    assert (listed.count("order 1 is gone") >= 3, "connection reset" in listed) == (True, False)


def test_failures_are_as_many_on_both_pages_and_the_list_of_a_group_names_it(bob, shop):
    for name in ("desk", "bot"):
        fail(shop, name, "order 1 is gone", agent={"name": name})
    fail(shop, "other", "connection reset", agent={"name": "desk"})

    assert "2 failures or anomalies, 2 of them in the last 24 hours" in bob.get("/p/shop/").content.decode()
    page = bob.get(FAILURES).content.decode()
    assert "2 failures or anomalies, 2 of them in the last 24 hours" in page
    assert "A row for each agent that it happened to." in page
    (query,) = {each.query for each in failing_now(shop, timezone.now()).failures if each.count == 2}
    listed = bob.get("/p/shop/sessions", {"q": query}).content.decode()
    assert "Runs with this failure: <strong>IOError: order 1 is gone</strong>" in listed
    assert "Runs with this failure" not in bob.get("/p/shop/sessions").content.decode()


def test_a_run_that_ended_well_is_told_by_what_went_wrong_in_it(bob, shop):
    failed = make_tool_step("send_mail", error={"type": "IOError", "message": "reset"})
    send(shop, "r1", failed, output="I have sent the mail.")

    (group,) = failing_now(shop, timezone.now()).failures

    assert group.told == "Error swallowed: send_mail failed and the answer does not say so"
    assert group.told in bob.get("/p/shop/").content.decode()


def test_a_group_opens_its_runs_in_the_list(bob, shop):
    fail(shop, "r1", "order 1 is gone")
    fail(shop, "r2", "connection reset")
    failures = failing_now(shop, timezone.now()).failures
    name = next(each.newest.fingerprint for each in failures if each.newest.newest.run_id == "r1")

    page = bob.get("/p/shop/").content.decode()
    listed = bob.get(f"/p/shop/sessions?q=group%3A{name}").content.decode()

    assert f"/p/shop/sessions?q=group%3A{name}" in page
    assert "2 failures or anomalies, 2 of them in the last 24 hours" in page
    assert "/p/shop/s/r1" in listed
    assert "/p/shop/s/r2" not in listed


def test_more_groups_than_are_shown_are_all_counted(bob, shop):
    for number in range(13):
        fail(shop, f"r{number}", f"{'abcdefghijklm'[number]} is gone")

    page = bob.get("/p/shop/").content.decode()

    assert "13 failures or anomalies, 13 of them in the last 24 hours" in page
    assert "top 12 of 13 rising first" in page
    assert page.count("failing-what") == 12
    assert 'run=r12"' in page.partition("Open the top failure")[0]


def test_of_what_grew_runs_that_failed_stand_above_anomalies(shop):
    now = timezone.now()
    fail(shop, "crash", "out of memory", at=now - timedelta(hours=9))
    for number in range(2):
        fail(shop, f"odd{number}", "refused", at=now - timedelta(hours=1))
    odd = [{"code": "refusal_unsaid", "message": "pay was declined", "steps": [2], "level": "warning"}]
    Run.objects.filter(run_id__startswith="odd").update(status="ok", error_preview=None, anomalies=odd)

    told = [failure.newest.newest.run_id for failure in failing_now(shop, now).failures]

    assert told == ["crash", "odd1"]


def test_what_failed_today_stands_above_what_did_not_also_where_it_shrinks(shop):
    now = timezone.now()
    for number, hours in enumerate((5, 30, 31, 32)):
        fail(shop, f"live{number}", "rate limit", at=now - timedelta(hours=hours))
    fail(shop, "dead", "connection reset", at=now - timedelta(hours=26))

    told = [failure.today for failure in failing_now(shop, now).failures]

    assert told == [1, 0]


def test_what_was_marked_cold_stands_below_what_nobody_looked_at(bob, shop):
    now = timezone.now()
    cold = fail(shop, "cold", "slot s2 is taken", at=now - timedelta(hours=1))
    fail(shop, "open", "connection reset", at=now - timedelta(hours=9))
    mark_cold(run=cold, reason="cannot_reproduce")

    told = [failure.newest.newest.run_id for failure in failing_now(shop, now).failures]

    assert told == ["open", "cold"]
    assert bob.get("/p/shop/").content.decode().partition("slot s2")[2].index("state-cold") > 0


def test_of_two_that_grew_alike_the_later_stands_above(shop):
    now = timezone.now()
    for name, hours in (("early", 20), ("late", 1)):
        for number in range(2):
            fail(shop, f"{name}{number}", f"{name} is gone", at=now - timedelta(hours=hours, minutes=number))

    assert [failure.newest.newest.run_id[:-1] for failure in failing_now(shop, now).failures] == ["late", "early"]


def head_of(bob):
    return bob.get("/p/shop/").content.decode().partition("<h1")[2].partition("</header>")[0]


def test_no_worker_is_told_in_the_head(bob, shop):
    run = send(shop, "r1")
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1)

    assert "No worker is picking up replays" not in head_of(bob)

    Replay.objects.filter(pk=replay.pk).update(created_at=timezone.now() - timedelta(minutes=2))

    assert "No worker is picking up replays" in head_of(bob)


def test_a_run_that_goes_on_and_is_quiet_is_told_in_the_head(bob, shop):
    ago = {minutes: timezone.now() - timedelta(minutes=minutes) for minutes in (1, 9)}
    for name, minutes in (("fresh", 1), ("quiet", 9)):
        step = make_tool_step("look") | {"started_at": ago[minutes].isoformat(), "duration_ms": 5}
        send(shop, name, step, status="running", output=None, at=ago[minutes])

    head = head_of(bob)

    assert "Running, but quiet" in head
    assert ("/p/shop/s/quiet" in head, "/p/shop/s/fresh" in head) == (True, False)


def test_forks_that_wait_for_an_answer_are_one_line(bob, shop):
    run = send(shop, "r1")
    for number in range(3):
        Replay.objects.create(
            project=shop, run=run, content=run.content, number=number, mode="fork", fork_id=f"f{number}", state="done",
            verdict="unknown_from_step", finished_at=timezone.now(),
        )  # fmt: skip

    told = bob.get("/p/shop/").content.decode().partition('id="now-replays"')[2]

    assert (told.count("now-waiting"), told.count("needs an answer"), told.count("fork #")) == (1, 1, 3)


def test_the_button_opens_the_newest_run_of_the_first_row(bob, shop):
    now = timezone.now()
    for name, hours in (("rising_1", 5), ("rising_2", 4)):
        fail(shop, name, "rate limit", at=now - timedelta(hours=hours))
    fail(shop, "single", "connection reset", at=now - timedelta(hours=1))

    page = bob.get("/p/shop/").content.decode()

    assert page.index("rate limit") < page.index("connection reset")
    assert 'run=rising_2"' in page.partition("Open the top failure")[0]


def test_a_group_has_the_same_words_on_all_pages_and_for_users_of_any_script(bob, shop):
    for name in ("u_7710", "u_ليلى", "佐藤さん"):
        called = make_tool_step("lookup_order", arguments={"user_id": name})
        send(shop, f"for {name}", called, user_id="u_1")

    pages = [bob.get(address).content.decode() for address in ("/p/shop/", FAILURES, "/p/shop/sessions?overview=1")]

    assert [page.count("lookup_order was called for a different user<") for page in pages] == [1, 1, 1]
    assert "u_7710" not in pages[1]


FAILURES = "/p/shop/goldens/failures"


def test_a_paused_replay_is_not_called_running(bob, shop):
    run = send(shop, "r1")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="paused")

    assert "1 paused</a>" in bob.get("/p/shop/").content.decode()


def replay_of(run: Run, number: int, **facts: Any) -> Replay:
    of_run = {"project": run.project, "run": run, "content": run.content, "number": number}
    return Replay.objects.create(**of_run, state="done", finished_at=timezone.now(), **facts)


def test_replays_of_a_run_that_came_to_the_same_are_one_line(bob, shop):
    run = send(shop, "r1")
    for number in range(1, 8):
        replay_of(run, number, verdict="diverged" if number == 3 else "reproduced")

    told = bob.get("/p/shop/").content.decode().partition('id="now-replays"')[2]

    assert (told.count("now-replay"), "6 replays, last #7" in told, "replay #3" in told) == (2, True, True)


def test_the_replays_of_a_session_are_one_line_with_what_they_came_to(bob, shop):
    runs = [send(shop, f"r{n}", session_id="chat") for n in range(4)]
    asked = SessionReplay.objects.create(project=shop, session=runs[0].session)
    for run in runs:
        replay_of(run, 1, session_replay=asked, verdict="diverged" if run.run_id == "r2" else "reproduced")

    told = bob.get("/p/shop/").content.decode().partition('id="now-replays"')[2]

    assert (told.count("now-replay"), "4 runs" in told) == (1, True)
    assert "3 reproduced · 1 diverged" in told
    assert f"/p/shop/session-replays/{asked.session_replay_id}" in told


def test_a_loop_is_told_as_the_session_tells_it(bob, shop):
    send(shop, "r1", *[make_tool_step("look", arguments={"n": 1}, result="1") for _ in range(12)])

    told = bob.get("/p/shop/").content.decode().partition('id="now-loops"')[2]

    assert "look called 12 × with the same arguments" in told
    assert "look called 12 × with the same arguments" in bob.get("/p/shop/s/r1").content.decode()


def test_the_bars_of_all_failures_have_one_scale(bob, shop):
    for number in range(4):
        fail(shop, f"many{number}", "rate limit")
    fail(shop, "once", "connection reset")

    for address in ("/p/shop/", FAILURES):
        bars = re.findall(r'<rect[^>]* height="(\d+)"', bob.get(address).content.decode())
        assert sorted(map(int, bars)) == [4, 16]


def test_goldens_that_failed_are_told_in_the_headline(bob, shop, monkeypatch):
    fail(shop, "r1", "order 1 is gone")
    standing = Standing(
        ranked=[1, 2], tells_of_code=True, counted={"fail": 1, "pass": 1}, without_code=0, of_recordings=0
    )
    monkeypatch.setattr("sessions_app.web.now.views.standing_of", lambda project: standing)

    story = re.search(r'<p class="story">(.*?)</p>', bob.get("/p/shop/").content.decode(), re.DOTALL)

    assert story is not None
    assert "1 failure or anomaly, 1 of them in the last 24 hours" in story[1]
    assert "1 of 2 goldens failed." in story[1]


def test_a_clock_that_is_ahead_makes_no_failure_later_than_its_arrival(shop):
    fail(shop, "r1", "order 1 is gone", at=timezone.now() + timedelta(days=3))

    assert failing_now(shop, timezone.now()).failures[0].last_at <= timezone.now()


def test_a_fork_that_ended_otherwise_than_expected_is_told_so(bob, shop):
    run = send(shop, "r1")
    ended = {"state": "done", "verdict": "diverged", "finished_at": timezone.now()}
    of_run = {"project": shop, "run": run, "content": run.content, "number": 1}
    Replay.objects.create(**of_run, **ended, mode="fork", expectation_met=False)

    page = bob.get("/p/shop/").content.decode()

    assert "fork #1" in page
    assert "expectation not met" in page
    assert "diverged" not in page.partition('id="now-replays"')[2]


def test_a_quiet_project_says_so(bob, shop):
    send(shop, "r1")

    assert "Quiet. No recorded run has failed." in bob.get("/p/shop/").content.decode()


def test_a_cold_case_that_failed_again_in_a_replayable_run_is_named(bob, shop):
    cold, twin = fail(shop, "r1", "order 1 is gone"), fail(shop, "r2", "order 2 is gone")
    mark_cold(run=cold, reason="no tool answers")
    type(twin).objects.filter(pk=twin.pk).update(verdict="replayable")

    assert "replayable runs" in bob.get("/p/shop/").content.decode()


def test_many_groups_take_as_many_queries_as_one(bob, shop, django_assert_num_queries):
    fail(shop, "r0", "order is gone")
    bob.get("/p/shop/")
    with django_assert_num_queries(QUERIES):
        bob.get("/p/shop/")
    for number, words in enumerate(("connection reset", "deadline passed", "out of memory")):
        fail(shop, f"s{number}", words)

    with django_assert_num_queries(QUERIES):
        bob.get("/p/shop/")


QUERIES = 27


# --- costs


def test_without_prices_costs_are_unknown(bob, shop):
    send(shop, "r1", model_step("gpt-4o"))

    page = bob.get("/p/shop/costs").content.decode()

    assert "Cost unknown: 1 model without a price." in " ".join(page.split())
    assert "1 model call in 1 run · 1,000,000 tokens in, 0 out" in page
    assert "Runs with the most tokens" in page
    assert "/p/shop/settings/prices?model=gpt-4o" in page


def test_a_run_is_listed_with_the_model_that_its_tokens_are_counted_for(bob, shop):
    send(shop, "r1", model_step("gpt-4o-2024-08-06"), model="gpt-4o")

    listed = bob.get("/p/shop/costs").content.decode().partition('id="dearest"')[2]

    assert ">gpt-4o-2024-08-06<" in listed
    assert ">gpt-4o<" not in listed


def test_a_price_gives_runs_a_cost_on_all_pages(bob, shop):
    send(shop, "r1", model_step("gpt-4o"), agent={"name": "desk"})
    send(shop, "r2", model_step("other"))

    bob.post("/p/shop/settings/prices", {"model": "gpt-4o", "input_price": "2.5", "output_price": "10"})

    page = " ".join(bob.get("/p/shop/costs?by=agent").content.decode().split())
    assert "At least $2.50 for 2 runs" in page
    assert "· 1 call without a price (1,000,000 tokens)" in page
    assert "desk" in page
    assert "<dt>cost</dt><dd>$2.50</dd>" in bob.get("/p/shop/s/r1").content.decode()


def test_the_run_with_the_most_tokens_stays_on_top_while_its_model_has_no_price(bob, shop):
    send(shop, "largest", model_step("own-model-7", 9_000_000))
    for number in range(21):
        send(shop, f"r{number}", model_step("gpt-4o", 40_000))
    bob.post("/p/shop/settings/prices", {"model": "gpt-4o", "input_price": "2.5", "output_price": "10"})

    page = " ".join(bob.get("/p/shop/costs").content.decode().split())

    by_model, listed = page.partition('id="series"')[2].split('id="dearest"')
    assert re.findall(r'title="(largest|r\d+)"', listed)[0] == "largest"
    assert "Share of tokens" in by_model
    assert re.findall(r"(\d+) %<", by_model) == ["91", "9"]


def test_the_share_is_of_the_cost_once_every_model_has_a_price(bob, shop):
    for model, dollars in (("cheap", "1"), ("dear", "3")):
        send(shop, model, model_step(model))
        bob.post("/p/shop/settings/prices", {"model": model, "input_price": dollars, "output_price": "1"})

    page = bob.get("/p/shop/costs").content.decode()

    assert re.findall(r"(\d+) %<", page) == ["75", "25"]
    assert "Share of tokens" not in page


def test_a_priced_model_whose_tokens_were_not_recorded_needs_no_price(bob, shop):
    send(shop, "r1", model_step("gpt-4o"))
    send(shop, "r2", model_step("gpt-4o", tokens=None))
    bob.post("/p/shop/settings/prices", {"model": "gpt-4o", "input_price": "2.5", "output_price": "10"})

    page = bob.get("/p/shop/costs").content.decode()

    assert "1 call: tokens not recorded" in page
    assert "Set a price" not in page


def test_a_clock_that_is_ahead_does_not_stretch_the_chart():
    now = datetime(2026, 3, 2, 9, tzinfo=UTC)
    figures: CostFigures[Run] = CostFigures()
    for days in (-1, 0, 40):
        figures.in_time[now + timedelta(days=days), "desk"] += Cost(dollars=Decimal(1), priced=1)
        figures.of_names["desk"] += Cost(dollars=Decimal(1), priced=1)
        figures.total += Cost(dollars=Decimal(1), priced=1)

    chart = cost_chart(figures, now)

    assert chart is not None
    assert chart.last <= now + timedelta(hours=1)
    assert [bar.amount for bar in chart.bars] == [1, 2]


def figures_of(amounts):
    """Tokens by the hours ago and the name."""
    now = datetime(2026, 3, 2, 9, tzinfo=UTC)
    figures: CostFigures[Run] = CostFigures()
    for (hours, name), tokens in amounts.items():
        cost = Cost(input_tokens=tokens, unpriced_tokens=tokens, unpriced=1)
        figures.in_time[now - timedelta(hours=hours), name] += cost
        figures.of_names[name] += cost
        figures.total += cost
    return figures, now


def test_one_high_bar_does_not_flatten_the_others():
    chart = cost_chart(*figures_of({(1, "m"): 10, (30, "m"): 8, (60, "m"): 900}))

    assert chart is not None
    assert chart.most == 20
    assert [(int(bar.amount), bar.is_torn) for bar in chart.bars] == [(900, True), (8, False), (10, False)]
    assert [round(sum(part.height for part in bar.parts)) for bar in chart.bars] == [120, 48, 60]


def test_a_model_keeps_its_colour_when_a_price_is_set():
    figures, _ = figures_of({(1, "mini"): 900, (2, "sonnet"): 500, (3, "flash"): 100})
    before = colours_of(figures)

    figures.of_names["flash"] += Cost(dollars=Decimal(50), priced=1)

    assert before == {"mini": 0, "sonnet": 1, "flash": 2}
    assert colours_of(figures) == before


def test_the_same_model_and_day_is_written_over(bob, shop):
    for amount in ("1", "2"):
        bob.post("/p/shop/settings/prices", {"model": "m", "since": "", "input_price": amount, "output_price": "3"})

    assert [str(row) for row in ModelPrice.objects.filter(input_price=2)] == ["m since None"]
    assert ModelPrice.objects.count() == 1


@pytest.mark.parametrize("wrong", [{"model": ""}, {"input_price": "-1"}, {"output_price": "much"}, {"since": "soon"}])
def test_a_price_that_cannot_be_is_refused_and_stays_typed(bob, shop, wrong):
    typed = {"model": "gpt-typed", "since": "", "input_price": "1", "output_price": "7"}

    answer = bob.post("/p/shop/settings/prices", typed | wrong)

    assert answer.status_code == 422
    assert 'value="7"' in answer.content.decode() or "much" in answer.content.decode()
    assert not ModelPrice.objects.exists()


def test_prices_are_changed_by_administrators_alone(shop):
    row = ModelPrice.objects.create(project=shop, model="m", input_price=1, output_price=1)
    ann = client_of(make_user("ann", shop))

    answers = [
        ann.post("/p/shop/settings/prices", {"model": "x", "input_price": "1", "output_price": "1"}),
        ann.post(f"/p/shop/settings/prices/{row.pk}/delete"),
    ]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert list(ModelPrice.objects.all()) == [row]


def test_models_in_use_without_a_price_are_offered(bob, shop):
    send(shop, "r1", model_step("gpt-4o"), model_step("other"))
    page = bob.get("/p/shop/settings/prices").content.decode()
    assert "2 models in use have no price." in page
    assert 'href="?model=other"' in page

    bob.post("/p/shop/settings/prices", {"model": "*", "input_price": "1", "output_price": "1"})

    page = bob.get("/p/shop/settings/prices").content.decode()
    assert "Every model in use has a price." in page
    assert "?model=" not in page


def test_one_click_takes_the_list_price_of_a_model_and_stays_on_the_page(bob, shop):
    send(shop, "r1", model_step("gpt-4o"))
    assert "Use list price" in bob.get("/p/shop/costs").content.decode()

    answer = bob.post("/p/shop/settings/prices/list?range=7d", {"model": "gpt-4o"}, follow=True)

    page = html.unescape(answer.content.decode())
    assert answer.redirect_chain == [("/p/shop/costs?range=7d", 302)]
    assert "gpt-4o now costs $2.50 in and $10.00 out per million tokens, as listed in genai-prices " in page
    assert "Use list price" not in page
    assert [(price.model, price.input_price) for price in ModelPrice.objects.all()] == [("gpt-4o", Decimal("2.5"))]


def test_a_list_price_is_offered_with_its_amount_and_only_where_one_is_known(bob, shop):
    for run_id, model in (("r1", "gpt-4o"), ("r2", "gpt-4o-mini"), ("r3", "own-model-7")):
        send(shop, run_id, model_step(model))

    page = " ".join(bob.get("/p/shop/costs").content.decode().split())

    assert page.count("Use list price ") == 2
    assert "$2.50 in, $10.00 out per M" in page
    assert page.count("Set a price") == 3
    bob.post("/p/shop/settings/prices/list", {"model": ["gpt-4o", "gpt-4o-mini", "own-model-7"]})
    assert sorted(price.model for price in ModelPrice.objects.all()) == ["gpt-4o", "gpt-4o-mini"]


def test_list_prices_of_all_models_are_taken_at_once_where_prices_are_kept(bob, shop):
    """A dated version of a model costs what the model does, by whose name its price is offered."""
    for run_id, model in (("r1", "gpt-4o"), ("r2", "gpt-4.1-2099-08-06"), ("r3", "own-model-7")):
        send(shop, run_id, model_step(model))

    costs, prices = (bob.get(f"/p/shop/{page}").content.decode() for page in ("costs", "settings/prices"))
    answer = bob.post("/p/shop/settings/prices/list", {"model": ["gpt-4o", "gpt-4.1-2099-08-06"], "to": "prices"})

    for page in (costs, prices):
        assert "Use list prices for 2 of 3 models" in page
        assert "Use list price of gpt-4.1 <" in page
    assert answer["Location"] == "/p/shop/settings/prices"
    assert ModelPrice.objects.get(model="gpt-4.1-2099-08-06").input_price == ModelPrice(input_price=2).input_price
    assert '<th scope="col" class="num">Cost</th>' not in costs


def test_a_model_without_a_known_list_price_leads_to_the_form(bob, shop):
    answer = bob.post("/p/shop/settings/prices/list", {"model": "own-model-7"}, follow=True)

    assert "No public list price" in answer.content.decode()
    assert not ModelPrice.objects.exists()


def test_a_known_model_is_offered_with_its_list_price(bob, shop):
    page = bob.get("/p/shop/settings/prices?model=openai:gpt-4o").content.decode()

    assert 'value="2.5"' in page
    assert re.search(r"List price from genai-prices [\d.]+", page)
    assert re.search(r"does not date its prices: check <code>https://\S+openai.com/\S+</code>\s+or your contract", page)
    assert "No public list price" in bob.get("/p/shop/settings/prices?model=own-model-7").content.decode()
