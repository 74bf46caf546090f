"""The histogram above the list, facets beside it, saved queries, times as people type them, and Back."""

import re
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from playwright.sync_api import Page, expect

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import Query, parse_query
from sessions_app.models import Project, SavedQuery, Session
from sessions_app.queries.session_overview import BARS, session_overview
from sessions_app.queries.sessions import ALWAYS, Span, count_matching
from sessions_app.services.cold_cases import mark_cold
from sessions_app.web.session_list.overview import drawn_height
from sessions_app.web.session_list.typed_times import read_time
from tests.web.browsing import arrive
from tests.web.making import HOSTILE, another_run, client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/sessions"
PART = {"HX-Request": "true", "HX-Target": "overview"}


@pytest.fixture
def shop() -> Project:
    return make_project()


@pytest.fixture
def bob(shop):
    return client_of(make_user("bob", shop))


# --- histogram


def test_each_session_stands_once_in_its_bar(shop):
    now = timezone.now()
    make_session(shop, "old", minutes_ago=59)
    failed = make_session(shop, "new", minutes_ago=1, status="error")
    mark_cold(run=failed, reason="no tool answers")

    found = session_overview(shop, Query(), Span(since=now - timedelta(hours=1)), now)

    filled = {number: (bar.outcomes, bar.cold) for number, bar in enumerate(found.bars) if bar.count}
    assert len(found.bars) == BARS
    assert list(filled.values()) == [({"ok": 1}, 0), ({"error": 1}, 1)]
    assert min(filled) <= 1
    assert max(filled) >= BARS - 2


def test_a_session_stands_for_the_run_that_its_row_shows(shop):
    """Of the bars as of the list: neither one that its agent called later, nor an older turn."""
    run = make_session(shop, "chat", status="error")
    turn = another_run(run.session, run, "later", status="ok")
    another_run(run.session, run, "helper", status="cut_off", parent_run_id=turn.run_id)

    bars = session_overview(shop, Query(), ALWAYS, timezone.now()).bars

    assert [bar.outcomes for bar in bars if bar.count] == [{"ok": 1}]


def test_one_old_session_does_not_squeeze_the_others_into_the_last_bars(bob, shop):
    """It is counted beside the bars, and one press away."""
    make_session(shop, "old", minutes_ago=60 * 24 * 280)
    for number in range(8):
        make_session(shop, f"s{number}", minutes_ago=10 * number + 1)

    found = session_overview(shop, Query(), ALWAYS, timezone.now())
    page = bob.get(f"{ADDRESS}?overview=1").content.decode()

    assert (found.older, sum(bar.count > 0 for bar in found.bars)) == (1, 8)
    older = match(r'<a href="([^"]+)">1 older</a>', page).replace("&amp;", "&")
    listed = bob.get(ADDRESS + older).content.decode()
    assert ["/s/old" in listed, "/s/s1" in listed] == [True, False]


def test_one_outlier_does_not_flatten_the_others(shop):
    now = timezone.now()
    for number in range(40):
        make_session(shop, f"s{number}", minutes_ago=number)
    bars = session_overview(shop, Query(), Span(since=now - timedelta(hours=1)), now).bars
    bars[3].outcomes["ok"] += 1_000

    assert drawn_height(bars) <= 4
    assert drawn_height(()) == 1


def test_a_bar_narrows_the_list_to_its_time(bob, shop):
    make_session(shop, "old", minutes_ago=50)
    make_session(shop, "new", minutes_ago=5)
    bars = bob.get(ADDRESS, {"range": "1h", "overview": "1"}, headers=PART).context["bars"]

    listed = bob.get(ADDRESS + bars[0].href).content.decode()

    assert "/s/old" in listed
    assert "/s/new" not in listed


# --- facets


def test_values_are_counted_and_narrow_the_list(bob, shop):
    make_session(shop, "a", tool_names=["look", "send"], model="m-1")
    make_session(shop, "b", tool_names=["look"], model="m 2")

    part = bob.get(ADDRESS, {"overview": "1"}, headers=PART).content.decode()
    facets = {facet.key: facet for facet in session_overview(shop, Query(), ALWAYS, timezone.now()).facets}

    assert facets["tool"].counts == (("look", 2), ("send", 1))
    assert "?q=tool%3Asend" in part
    assert "?q=-tool%3Asend" in part
    assert "?q=model%3A%22m+2%22" in part


def test_a_value_counts_the_sessions_that_it_narrows_the_list_to(bob, shop):
    run = make_session(shop, "chat", status="error")
    another_run(run.session, run, "later", status="ok")
    make_session(shop, "other", status="error")

    found = session_overview(shop, Query(), ALWAYS, timezone.now())
    listed = {value: count_matching(shop, parse_query(f"status:{value}")) for value in ("error", "ok")}

    assert (
        dict(next(facet.counts for facet in found.facets if facet.key == "status")) == listed == {"error": 2, "ok": 1}
    )


def test_a_value_that_is_chosen_is_marked_and_taken_back(bob, shop):
    make_session(shop, "a", tool_names=["look"])

    context = bob.get(ADDRESS, {"overview": "1", "q": "tool:look odd"}, headers=PART).context
    assert [facet for facet in context["facets"] if facet.key == "tool"] == []  # nothing matches `odd`

    context = bob.get(ADDRESS, {"overview": "1", "q": "tool:look status:ok"}, headers=PART).context
    (value,) = next(facet for facet in context["facets"] if facet.key == "tool").values
    assert (value.is_on, value.only) == (True, "?q=status%3Aok")


def test_facets_say_what_the_column_says(bob, shop):
    make_session(shop, "whole", verdict="replayable")
    make_session(shop, "part", verdict="replayable_to_step", verdict_step=3, status="cut_off")

    facets = {facet.key: facet for facet in bob.get(ADDRESS, {"overview": "1"}, headers=PART).context["facets"]}

    assert {value.words for value in facets["replay"].values} == {"replayable", "replayable to a step"}
    assert {value.words for value in facets["status"].values} == {"ok", "cut off"}


def test_without_scripts_the_chart_is_a_page(bob, shop):
    make_session(shop, "a")

    page = bob.get(ADDRESS, {"overview": "1"}).content.decode()

    assert "<html" in page
    assert 'class="histogram"' in page
    assert 'class="facet"' in page
    assert "overview=1" in bob.get(ADDRESS).content.decode()


def test_names_of_any_characters_are_counted_as_they_are(shop):
    names = ["a,b", 'say "hi"', "{x}", "back\\slash", "Grüße"]
    Session.objects.filter(pk=make_session(shop, "a", tool_names=names).session_id).update(tags=names)

    facets = {facet.key: facet for facet in session_overview(shop, Query(), ALWAYS, timezone.now()).facets}

    assert facets["tool"].counts == facets["tag"].counts == tuple((name, 1) for name in sorted(names))


def test_what_went_wrong_is_told_as_by_the_failure_groups_with_the_agent_where_several_failed_alike(bob, shop):
    for number, (agent, group) in enumerate((("desk", "aa"), ("desk", "aa"), ("shop", "bb"), ("shop", "bb"))):
        error = f"RendererError: worker {8100 + number} ran out of memory"
        make_session(shop, f"s{number}", agent_name=agent, failure_group=group * 5, error_preview=error, status="error")

    page = bob.get(ADDRESS, {"overview": "1"}, headers=PART).content.decode()

    told = match(r"<summary>what went wrong</summary>(.*?)</details>", page)
    assert told.count('<span class="cut recorded">RendererError: worker … ran out of memory</span>') == 2
    assert sorted(re.findall(r'facet-note">(\w+)<', told)) == ["desk", "shop"]


def test_the_overview_takes_as_many_queries_for_many(bob, shop, django_assert_num_queries):
    def ask():
        bob.get(ADDRESS, {"overview": "1"}, headers=PART)

    make_session(shop, "first", failure_group="f0")
    ask()  # whatever is asked once in a process
    with CaptureQueriesContext(connection) as for_one:
        ask()
    for number in range(12):
        make_session(shop, f"s{number}", model=f"m{number}", failure_group=f"f{number}")

    with django_assert_num_queries(len(for_one)):
        ask()


def test_a_run_more_takes_few_calls(shop):
    """Five thousand are read: what Python does for each of them is most of what the overview takes."""

    def calls():
        return calls_during(lambda: session_overview(shop, Query(), ALWAYS, timezone.now()))

    make_session(shop, "first")
    calls()
    for_one = calls()
    for number in range(20):
        make_session(shop, f"s{number}", tool_names=["look", "send"])

    assert (calls() - for_one) / 20 < 8


def calls_during(act):
    """How many functions written in Python are called."""
    events = Counter()
    sys.setprofile(lambda frame, event, arg: events.update([event]))
    try:
        act()
    finally:
        sys.setprofile(None)
    return events["call"]


def test_recorded_values_are_text(bob, shop):
    make_session(shop, "a", model=HOSTILE, tool_names=[HOSTILE])

    assert "<script>alert" not in bob.get(ADDRESS, {"overview": "1"}, headers=PART).content.decode()


# --- saved queries


def test_a_list_is_saved_for_everybody_in_the_project(bob, shop):
    bob.post(f"{ADDRESS}/saved", {"name": "Failed today", "back": "?q=status%3Aerror&range=24h&cursor=x"})
    ann = client_of(make_user("ann", shop))

    page = ann.get(ADDRESS).content.decode()

    assert "Failed today" in page
    assert [row.address for row in SavedQuery.objects.all()] == ["?q=status%3Aerror&range=24h"]

    ann.post(f"{ADDRESS}/saved/{SavedQuery.objects.get().pk}/delete", {"back": "?"})
    assert not SavedQuery.objects.exists()


def test_viewers_save_nothing(shop):
    vera = client_of(make_user("vera", shop, role="viewer"))

    assert vera.post(f"{ADDRESS}/saved", {"name": "x", "back": "?"}).status_code == 403


# --- times


NOW = datetime(2026, 3, 29, 12, 0, tzinfo=UTC)  # the day on which clocks in Berlin go ahead


@pytest.mark.parametrize(
    ("typed", "zone", "read"),
    [
        ("2026-03-01T08:30Z", "Europe/Berlin", datetime(2026, 3, 1, 8, 30, tzinfo=UTC)),
        ("2026-03-01 08:30", "Europe/Berlin", datetime(2026, 3, 1, 7, 30, tzinfo=UTC)),
        ("2026-03-01 08:30", "UTC", datetime(2026, 3, 1, 8, 30, tzinfo=UTC)),
        ("9:05", "Europe/Berlin", datetime(2026, 3, 29, 7, 5, tzinfo=UTC)),
        ("today", "Europe/Berlin", datetime(2026, 3, 28, 23, 0, tzinfo=UTC)),
        ("Yesterday 14:30", "Asia/Tokyo", datetime(2026, 3, 28, 5, 30, tzinfo=UTC)),
        ("", "UTC", None),
    ],
)
def test_times_are_read_in_the_zone_that_is_shown(typed, zone, read):
    assert read_time("from", typed, NOW, ZoneInfo(zone)) == read


@pytest.mark.parametrize("typed", ["25:00", "tomorrow", "2026-13-01", "today today"])
def test_other_times_are_refused(typed):
    with pytest.raises(QueryError):
        read_time("from", typed, NOW, UTC)


def test_the_zone_is_that_of_the_person_once_times_are_shown_in_it(bob, shop):
    make_session(shop, "a")
    bob.cookies["zone"] = "Asia/Tokyo"
    assert "<span data-zone>UTC</span>" in bob.get(ADDRESS).content.decode()

    bob.cookies["clock"] = "mine"
    page = bob.get(ADDRESS, {"from": "2026-03-01 08:30"}).content.decode()

    assert "<span data-zone>Asia/Tokyo</span>" in page
    assert "from=2026-02-28T23%3A30%3A00Z" in page  # the link to copy means the same for everybody


# --- in a browser


@pytest.mark.django_db(transaction=True)
def test_back_finds_rows_place_and_focus(page: Page, live_server, shop):
    make_user("ann", shop)
    for number in range(75):
        make_session(shop, f"s{number}", minutes_ago=number)
    arrive(page, f"{live_server.url}{ADDRESS}", "ann")
    page.click("#more a")
    expect(page.locator("[data-row] a[data-row-link]")).to_have_count(75)
    link = page.locator("a[data-row-link]").nth(70)
    link.scroll_into_view_if_needed()
    before = page.evaluate("scrollY")

    link.click()
    page.wait_for_url("**/s/s70*")
    page.go_back()

    expect(page.locator("[data-row] a[data-row-link]")).to_have_count(75)
    expect(page.locator("a[data-row-link]").nth(70)).to_be_focused()
    assert abs(page.evaluate("scrollY") - before) < 40


@pytest.mark.django_db(transaction=True)
def test_bars_are_walked_by_arrow_keys_and_narrow_by_enter(page: Page, live_server, shop):
    make_user("ann", shop)
    make_session(shop, "old", minutes_ago=500)
    make_session(shop, "new", minutes_ago=5)
    arrive(page, f"{live_server.url}{ADDRESS}", "ann")
    page.locator(".histogram a").first.focus()

    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")

    page.wait_for_url("**from=*")
    expect(page.locator("[data-row] a[data-row-link]")).to_have_count(1)
    assert page.locator("a[data-row-link]").inner_text() == "new"
