"""The list of sessions in other orders and of other times, what it suggests, and what was asked lately."""

from datetime import UTC, datetime, timedelta
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import parse_query
from sessions_app.models import Session
from sessions_app.queries.sessions import NEWEST, ORDERS, Span, make_cursor, read_cursor, session_page
from sessions_app.web.session_list.address import ListAddress
from tests.web.making import HOSTILE, another_run, client_of, make_project, make_session, make_user, match

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/sessions"


def names(project, sort: str = NEWEST, span: Span | None = None) -> list[str]:
    page = session_page(project, parse_query(""), sort=sort, span=span or Span())
    return [row.session.session_id for row in page.items]


# --- order


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("-started", ["c", "b", "a"]),
        ("started", ["a", "b", "c"]),
        ("-took", ["a", "c", "b"]),
        ("took", ["c", "a", "b"]),
        ("-steps", ["b", "c", "a"]),
        ("steps", ["a", "c", "b"]),
    ],
)
def test_orders(shop, sort, expected):
    make_session(shop, "a", minutes_ago=30, duration_ms=900.5, step_count=1)
    make_session(shop, "b", minutes_ago=20, duration_ms=None, step_count=9)
    make_session(shop, "c", minutes_ago=10, duration_ms=0.1, step_count=4)

    assert names(shop, sort) == expected


def test_order_is_by_the_sum_that_the_row_shows(shop):
    run = make_session(shop, "a", duration_ms=9.0)
    another_run(run.session, run, "again", duration_ms=1.0)
    make_session(shop, "b", duration_ms=5.0)

    another_run(run.session, run, "called", duration_ms=70.0, parent_run_id="again")
    make_session(shop, "c", duration_ms=11.0)

    assert names(shop, "-took") == ["c", "a", "b"]


@pytest.mark.parametrize("sort", list(ORDERS))
def test_pages_of_every_order_continue_without_gaps_or_repeats(shop, sort):
    for number in range(11):
        took = None if number % 4 == 3 else number // 3 + 0.1
        make_session(shop, f"s{number:02}", minutes_ago=number // 3, duration_ms=took, step_count=number // 2)
    whole = names(shop, sort)

    found: list[str] = []
    cursor: str | None = None
    for _ in range(4):
        page = session_page(shop, parse_query(""), cursor, 3, sort=sort)
        found += [row.session.session_id for row in page.items]
        cursor = page.next_cursor

    assert found == whole
    assert len(set(found)) == 11
    assert cursor is None


def test_a_cursor_of_one_order_is_refused_by_another(shop):
    make_session(shop, "a")
    cursor = make_cursor(Session.objects.get(), "started")

    assert read_cursor(cursor, "started")
    for sort in (NEWEST, "-took"):
        with pytest.raises(QueryError):
            read_cursor(cursor, sort)


@pytest.mark.parametrize("place", ["nan", "inf", "1e400", "x"])
def test_numbers_that_no_row_has_are_refused(place):
    with pytest.raises(QueryError):
        read_cursor(cursor_of(f"-took {place}/3"), "-took")


def cursor_of(text: str) -> str:
    import base64

    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def test_heads_lead_to_the_order_and_back(shop, bob):
    make_session(shop, "a")

    def head(sort: str) -> str:
        page = bob.get(ADDRESS, {"sort": sort, "q": "status:ok"}).content.decode()
        return unescape(match(r'id="sort-took"[^>]*?href="([^"]+)"', page))

    assert head("-started") == "?q=status%3Aok&sort=-took"
    assert head("-took") == "?q=status%3Aok&sort=took"
    assert head("took") == "?q=status%3Aok&sort=-took"
    assert 'aria-sort="descending"' in bob.get(ADDRESS, {"sort": "-took"}).content.decode()


def test_an_unknown_order_is_refused(shop, bob):
    response = bob.get(ADDRESS, {"sort": "cost"})

    assert response.status_code == 400
    assert "sort is one of -started" in response.content.decode()


@pytest.mark.parametrize("sort", list(ORDERS))
def test_every_order_costs_the_same_for_one_three_and_many_rows(shop, bob, sort):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            bob.get(ADDRESS, {"sort": sort, "range": "24h"})
        return len(queries)

    costs = []
    for rows in (1, 3, 60):
        for number in range(Session.objects.count(), rows):
            make_session(shop, f"s{number}")
        costs.append(cost())

    assert len(set(costs)) == 1
    assert costs[0] <= 11


# --- time


def test_ranges_end_now(shop, bob):
    for name, minutes in (("new", 5), ("old", 90), ("older", 3000)):
        make_session(shop, name, minutes_ago=minutes)

    def listed(name: str) -> list[str]:
        page = bob.get(ADDRESS, {"range": name}).content.decode()
        return [session for session in ("new", "old", "older") if f'data-peek="{session}"' in page]

    assert listed("15m") == ["new"]
    assert listed("24h") == ["new", "old"]
    assert listed("7d") == ["new", "old", "older"]
    assert listed("all") == ["new", "old", "older"]


def test_absolute_times_include_their_beginning_and_not_their_end(shop):
    make_session(shop, "a", minutes_ago=10)
    at = Session.objects.get().last_at

    assert names(shop, span=Span(since=at)) == ["a"]
    assert names(shop, span=Span(until=at)) == []
    assert names(shop, span=Span(since=at, until=at + timedelta(microseconds=1))) == ["a"]


@pytest.mark.parametrize(
    ("text", "hour"), [("2026-11-21T08:30Z", 8), ("2026-11-21T08:30", 8), ("2026-11-21T08:30:00+02:00", 6)]
)
def test_times_without_an_offset_are_utc(text, hour):
    span = ListAddress(since=text).span(timezone.now())

    assert span.since == datetime(2026, 11, 21, hour, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"from": "tomorrow"}, "from is a time as"),
        ({"to": "2026-13-01"}, "to is a time as"),
        ({"from": "0001-01-01T00:00+14:00"}, "from is a time as"),
        ({"from": "2026-11-21", "to": "2026-11-20"}, "ends before it begins"),
        ({"range": "3w"}, "range is one of 15m, 1h, 24h, 7d, 30d, all."),
    ],
)
def test_times_that_cannot_be_understood_are_refused(shop, bob, asked, words):
    make_session(shop, "a")

    response = bob.get(ADDRESS, asked)

    assert response.status_code == 400
    assert words in response.content.decode()
    assert "data-row" not in response.content.decode()


def test_the_link_to_copy_holds_absolute_times(shop, bob):
    make_session(shop, "a")

    page = bob.get(ADDRESS, {"range": "1h", "q": "status:ok"}).content.decode()
    shared = urlsplit(unescape(match(r'data-copy="(http[^"]+)"', page)))
    asked = {name: value for name, (value,) in parse_qs(shared.query).items()}

    assert shared.path == ADDRESS
    assert set(asked) == {"q", "from", "to"}
    assert datetime.fromisoformat(asked["to"]) - datetime.fromisoformat(asked["from"]) == timedelta(seconds=3601)
    assert 'data-peek="a"' in bob.get(f"{ADDRESS}?{shared.query}").content.decode()


def test_nothing_new_is_looked_for_where_it_could_not_stand_first(shop, bob):
    make_session(shop, "a")

    def polls(**asked: str) -> bool:
        return 'id="newer"' in bob.get(ADDRESS, asked).content.decode()

    assert polls()
    assert polls(range="1h")
    assert not polls(sort="-took")
    assert not polls(to="2999-01-01")


def test_an_empty_range_offers_all_times(shop, bob):
    make_session(shop, "a", minutes_ago=90)

    page = bob.get(ADDRESS, {"range": "15m", "sort": "-took"}).content.decode()

    assert "No session matches in this period." in page
    assert '<a href="?sort=-took">show</a>' in page


def test_filters_keep_the_time_and_the_order(shop, bob):
    page = bob.get(ADDRESS, {"range": "7d", "sort": "steps"}).content.decode()

    assert 'href="?q=has%3Aerror&amp;range=7d&amp;sort=steps"' in page
    assert '<input type="hidden" name="range" value="7d">' in page


# --- suggestions


def test_suggestions_are_values_seen_with_their_counts(shop, bob):
    make_session(shop, "a", user_id="u 1", tool_names=["lookup_order"], model="m-1", model_names=["m-1", "m-2"])
    make_session(shop, "b", user_id=HOSTILE, tool_names=["lookup_order", "lookup_order"])
    make_session(make_project("other"), "c", user_id="secret")

    page = bob.get(f"{ADDRESS}/suggestions").content.decode()

    assert '<option value="tool:lookup_order">in 2 of the newest 1000 runs</option>' in page
    assert '<option value="user:&quot;u 1&quot;">' in page
    assert "model:m-2" in page
    assert "secret" not in page
    assert "script" not in page


def test_suggestions_are_parts_that_a_query_understands(shop, bob):
    make_session(shop, "a", user_id='a"b\\c', tool_names=["x y"], model="(m)")

    page = bob.get(f"{ADDRESS}/suggestions").content.decode()

    for part in page.split('<option value="')[1:]:
        parse_query(unescape(part.split('">')[0]))


def test_suggestions_cost_the_same_for_any_number_of_runs(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            bob.get(f"{ADDRESS}/suggestions")
        return len(queries)

    make_session(shop, "a", user_id="u")
    one = cost()
    for number in range(60):
        make_session(shop, f"s{number}", user_id=f"u{number}", tool_names=[f"t{number}"])

    assert cost() == one
    assert bob.get(f"{ADDRESS}/suggestions").content.decode().count('"user:') == 21


def test_suggestions_of_others_are_not_found(shop):
    assert client_of(make_user("charlie")).get(f"{ADDRESS}/suggestions").status_code == 404


# --- asked lately


def test_the_last_eight_queries_are_kept_newest_first(shop, bob):
    for number in range(10):
        bob.get(ADDRESS, {"q": f"user:u{number}"})
    bob.get(ADDRESS, {"q": "user:u5"})
    bob.get(ADDRESS, {"q": "status:nonsense"})

    menu = match(r"menu-recent(.*?)</details>", bob.get(ADDRESS).content.decode())

    order = [5, 9, 8, 7, 6, 4, 3, 2]
    assert [menu.index(f"user:u{number}") for number in order] == sorted(menu.index(f"user:u{n}") for n in order)
    assert "user:u1" not in menu
    assert "nonsense" not in menu


def test_what_one_person_or_project_asked_is_not_shown_to_another(shop, bob):
    make_project("other").members.add(shop.members.get())
    bob.get(ADDRESS, {"q": "user:u1"})

    assert "user:u1" not in bob.get("/p/other/sessions").content.decode().replace("user:u_7710", "")
    assert '<code class="cut">user:u1' not in client_of(make_user("ann", shop)).get(ADDRESS).content.decode()
