"""The timeline of a run: where the time went, the overview, and the rows of the waterfall."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.services.sharing import create_link
from sessions_app.web.timeline.axis import WIDTH, step_axis, time_axis, time_words
from tests.web.browsing import arrive, press
from tests.web.making import make_user, match
from tests.web.records import load_example, load_record, long_run, model_step, tool_step
from tests.web.test_session import page_of

pytestmark = pytest.mark.django_db
START = datetime(2026, 11, 17, 15, 14, tzinfo=UTC)


def timed(step, start, end, **fields):
    """The step from and to so many seconds since the start of the run."""
    at = START + timedelta(seconds=start)
    return step | {"started_at": at.isoformat(), "duration_ms": (end - start) * 1000} | fields


def trip():
    """4½ minutes: parallel calls of which one fails, a pause, and a sub-agent with a tool of 137 ms."""
    first_token = (START + timedelta(seconds=2)).isoformat()
    return [
        timed(model_step(1), 0, 8, input_tokens=800, output_tokens=20, first_token_at=first_token),
        timed(tool_step("flights", parent=1), 8, 30),
        timed(tool_step("rates", parent=1, error={"type": "RateLimit", "message": "429"}), 8, 60),
        timed(model_step(4), 80, 100, input_tokens=5000, output_tokens=20),
        timed({"kind": "agent", "name": "booker", "parent": 4}, 100, 200),
        timed(model_step(6), 100, 199.8, parent=5, input_tokens=90, output_tokens=20),
        timed(tool_step("hold", parent=6), 199.8, 199.937),
        timed(model_step(8), 200, 270, input_tokens=9000, output_tokens=20),
    ]


def timeline_of(client, run, **query):
    return page_of(client, run, view="timeline", **query)


def row_of(page, index):
    return match(rf'(<tr id="s{index}".*?</tr>)', page)


def bars_of(row):
    """Left edge and width of each bar, in units of the drawing."""
    return [(int(x), int(w)) for d in re.findall(r'class="tl-bar[^"]*" d="([^"]*)"', row)
            for x, w in re.findall(r"M(\d+) \d+h(\d+)", d)]  # fmt: skip


def test_it_says_first_what_the_run_waited_for(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip(), duration_ms=270_000))
    words = re.sub(r"<[^>]+>|\s+", " ", match(r'<header class="tl-head">(.*?)</header>', page))
    words = re.sub(r" +", " ", words)

    assert "4 min 30 s · model 3 min 18 s (73 %) · tool 52.14 s (19 %) · between steps 20.00 s (7 %)" in words
    assert "longest step 6 sonnet-4 1 min 40 s, step 8" in words
    assert "nothing ran for 20.00 s before step 4 , after step 3 failed" in words
    assert "critical path (thick bars) 7 of 8 steps" in words


def test_it_takes_as_long_as_the_head_says(shop, bob):
    """A run ends a moment after its last step."""
    page = timeline_of(bob, load_record(shop, steps=trip(), duration_ms=272_000))

    assert match(r'<p class="tl-story"><strong>([^<]*)<', page) == "4 min 32 s"
    assert "between steps <strong>22.00 s" in page


def test_each_step_has_a_bar_where_it_ran_and_the_smallest_is_seen(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()))

    assert bars_of(row_of(page, 1)) == [(0, 59)]
    assert bars_of(row_of(page, 8)) == [(round(200 / 270 * WIDTH), 519)]
    assert bars_of(row_of(page, 7)) == [(1480, 4)]


def test_errors_first_tokens_and_pauses_are_marked(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()))

    assert 'class="tl-failed"' in row_of(page, 3)
    assert 'class="tl-failed"' not in row_of(page, 2)
    assert 'class="tl-first" d="M0 3h15v10' in row_of(page, 1)
    assert '<td class="num">2.00 s</td>' in row_of(page, 1)
    assert "nothing ran for 20.00 s before it" in row_of(page, 4)
    assert 'class="tl-gap"' in row_of(page, 4)


def test_a_failure_is_marked_where_it_ended_and_its_bar_is_outlined(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip(), duration_ms=270_000))

    row = row_of(page, 3)
    ((left, width),) = bars_of(row)
    assert f'class="tl-failed" d="M{left + width} 0v16"' in row
    assert re.search(rf'class="tl-outline" d="M{left} \d+h{width}v', row)
    assert "tl-outline" not in row_of(page, 2)


def test_a_sub_agent_that_ran_outside_the_time_of_its_caller_says_when_it_started(shop, bob):
    began = {"late": START + timedelta(seconds=70), "inside": START + timedelta(seconds=1)}
    for name, at in began.items():
        made = {"agent": {"name": name}, "started_at": at.isoformat(), "duration_ms": 500}
        load_record(shop, run_id=name, session_id="team", parent={"run_id": "boss"}, steps=[model_step()], **made)
    steps = [timed(model_step(1), 0, 8)]
    boss = load_record(shop, run_id="boss", session_id="team", started_at=START.isoformat(), steps=steps)

    page = timeline_of(bob, boss)

    labels = re.sub(r"<[^>]*>", " ", match(r'<ul class="tl-labels">(.*?)</ul>', page))
    assert " ".join(labels.split()) == "model inside late started +1:10"
    assert len(re.findall(r'<path class="tl-bar k-agent" d="M', page)) == 1


def test_bars_beside_the_critical_path_are_thin(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()))

    assert re.search(r'd="M59 6h\d+v5', row_of(page, 2))
    assert re.search(r'd="M59 3h\d+v10', row_of(page, 3))


def test_by_step_every_step_is_as_wide_and_a_sub_agent_holds_its_steps(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()), axis="step")

    assert [bars_of(row_of(page, index)) for index in (1, 7)] == [[(0, 250)], [(1500, 250)]]
    assert bars_of(row_of(page, 5)) == [(1000, 750)]
    assert match(r'href="([^"]*)" data-key="a">time', page).startswith("?view=timeline&amp;step=")


def test_the_overview_has_a_track_for_each_kind_and_each_sub_agent(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()))
    labels = re.findall(r'<li title="([^"]*)"', match(r'(<ul class="tl-labels">.*?</ul>)', page))

    assert labels == ["model", "tool", "agent", "booker, model", "booker, tool"]


def test_a_few_rows_that_show_every_step_need_no_overview(shop, bob):
    few = [timed(tool_step(f"t{at}"), at, at + 1) for at in range(12)]
    more = [*few, timed(tool_step("last"), 12, 13)]
    runs = [
        load_record(shop, run_id=f"of_{len(steps)}", session_id=f"of_{len(steps)}", steps=steps)
        for steps in (few, more)
    ]

    assert ["tl-overview" in timeline_of(bob, run) for run in runs] == [False, True]


def test_the_context_is_that_of_the_runs_own_agent(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=trip()))

    assert "up to 9,000 tokens" in page
    assert match(r'class="tl-context" d="([^"]*)"', page).count("V") == 2


def test_the_run_of_a_sub_agent_has_a_track_that_leads_to_it(shop, bob):
    run = load_record(shop, steps=[timed(model_step(1), 0, 4), timed(tool_step("ask", parent=1), 4, 20)])
    load_record(
        shop, run_id="helper", agent={"name": "helper"}, parent={"run_id": "run_1", "step": 2},
        started_at=(START + timedelta(seconds=5)).isoformat(), duration_ms=10_000, steps=[timed(model_step(1), 5, 15)],
    )  # fmt: skip

    overview = match(r'(<div class="tl-overview">.*?</svg>)', timeline_of(bob, run))

    assert 'href="?run=helper&amp;view=timeline"' in overview
    assert 'd="M500 3h1000v10' in overview


def test_a_loop_is_one_row_with_its_count(shop, bob):
    run = load_example(shop, "run_xyz789")
    folded, opened = timeline_of(bob, run), timeline_of(bob, run, unfold="1")

    assert "× 20" in folded
    assert len(bars_of(match(r'(<tr class="fold.*?</tr>)', folded))) == 40
    assert folded.count('<tr id="s') == 2
    assert opened.count('<tr id="s') == 41
    assert "?view=timeline&amp;step=2&amp;unfold=1#f1" in folded


def test_calls_of_one_tool_are_one_row_whatever_they_were_asked_and_a_failed_one_stands_alone(shop, bob):
    steps = [
        step
        for number in range(1, 21, 2)
        for step in (
            timed(model_step(number), number, number + 1),
            timed(tool_step("migrate", arguments={"table": number}, parent=number), number + 1, number + 2),
        )
    ]
    steps[13] |= {"error": {"type": "Deadlock", "message": "blocked"}}

    page = timeline_of(bob, load_record(shop, steps=steps))

    assert re.findall(r'<tr id="s(\d+)"|<strong class="times">(× \d+)', page) == [
        ("", "× 6"), ("13", ""), ("14", ""), ("", "× 3"),
    ]  # fmt: skip


def test_steps_without_times_are_drawn_in_their_order(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=[model_step(1), tool_step(parent=1)]))

    assert "When the steps ran." in page
    assert [bars_of(row_of(page, index)) for index in (1, 2)] == [[(0, 1000)], [(1000, 1000)]]
    assert 'data-key="a"' not in page


def test_a_step_whose_time_is_missing_says_so(shop, bob):
    page = timeline_of(bob, load_record(shop, steps=[timed(model_step(1), 0, 4), tool_step(parent=1)]))

    assert '<em class="missing">not captured</em>' in match(r'class="tl-cell">(.*?)</td>', row_of(page, 2))


def test_a_run_without_steps_says_so(shop, bob):
    assert "A timeline is drawn from the times of the steps" in timeline_of(bob, load_record(shop))


def test_thousands_of_steps_are_a_small_page_that_leads_everywhere(shop, bob):
    steps = [timed(step, at, at + 0.8) for at, step in enumerate(long_run(5000))]
    run = load_record(shop, steps=steps)
    page = timeline_of(bob, run, step=2500, unfold="2401,2501")

    assert len(page) < 300_000
    assert page.count('<tr id="s') == 200
    assert 'class="tl-shown"' in page
    leads_to = [int(step) for step in re.findall(r'tabindex="-1"><title>step (\d+)', page)]
    assert leads_to == sorted(leads_to)
    assert (len(leads_to), leads_to[-1]) == (100, 5000)


def test_a_long_run_needs_no_more_queries_than_a_short_one(shop, bob):
    short = load_record(shop, session_id="short", run_id="short", steps=[timed(tool_step(), 0, 1)])
    long = load_record(shop, session_id="long", run_id="long", steps=[timed(s, 1, 2) for s in long_run(450)])
    counts = []
    for run in (short, long):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            timeline_of(bob, run, step=1)
        counts.append(len(queries))

    assert counts[0] == counts[1]


def test_a_shared_page_has_the_timeline_too(shop):
    run = load_record(shop, steps=trip())
    token = create_link(run=run, user=make_user("ann", shop))[1]

    page = Client().get(reverse("shared", args=[token]), {"view": "timeline"}).content.decode()

    assert 'class="tl-overview"' in page
    assert "/p/shop/" not in page


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0"), (250, "250 ms"), (1500, "1.5 s"), (90_000, "1:30"), (7_500_000, "2:05:00"), (-30_000, "-30 s")],
)
def test_marks_of_the_axis_are_short(milliseconds, words):
    assert time_words(milliseconds) == words


def test_an_axis_of_nothing_has_no_marks():
    assert (time_axis([]).ticks, step_axis([]).x(1)) == ([], 0)


# --- in a browser


@pytest.mark.django_db(transaction=True)
def test_keys_walk_the_rows_with_the_playhead_and_switch_the_axis(page, live_server, shop):
    make_user("bob", shop)
    load_record(shop, steps=trip())
    arrive(page, f"{live_server.url}/p/shop/s/chat_1?step=1")

    press(page, "2")
    page.wait_for_url("**view=timeline*")
    press(page, "J")
    page.wait_for_url("**step=2*")
    assert page.get_attribute("#playhead", "x") == "59"
    press(page, "a")
    page.wait_for_url("**axis=step*")
    page.locator(".tl-overview svg").click(position={"x": 5, "y": 5})
    page.wait_for_url("**step=1*")

    found = Axe().run(page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in {"serious", "critical", "moderate"}] == []
