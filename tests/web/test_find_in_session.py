"""Find in session: what is searched, what a hit is, how one walks from hit to hit."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from playwright.sync_api import expect

from sessions_app.core.search.find_terms import as_read, find_terms
from sessions_app.queries import find_in_run as walk
from tests.losing import lose_payloads
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, client_of, make_project, make_user, match
from tests.web.records import load_record, long_run, loop_of, model_step, tool_step
from tests.web.test_session import rows_of

pytestmark = pytest.mark.django_db


STEPS = [
    model_step(1),
    tool_step("lookup", arguments={"order": {"id": 4421}, "who": "Zoë"}, result={"status": "DELAYED, delayed"}),
    tool_step("refund", arguments={"order": {"id": "A-77"}, "tags": ["x", "Late"]}, result=None)
    | {"error": {"type": "Timeout", "message": "the carrier was delayed"}},
    {"kind": "retrieval", "name": "docs", "query": "policy", "chunks": [{"id": "c1", "content": "ten\nworking days"}]},
]


def found(run, text):
    return walk.find_in_run(run, find_terms(text)).counts


def page_of(client, run, /, **query):
    response = client.get(reverse("session", args=["shop", run.session.session_id]), query)
    assert response.status_code == 200
    return response.content.decode()


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("delayed", {2: 2, 3: 1}),
        ("ANSWER 1", {1: 1}),
        ("zoë", {2: 1}),
        ("lookup", {2: 1}),
        ("kind:tool", {2: 1, 3: 1}),
        ("kind:tool carrier", {3: 1}),
        ("error", {3: 1}),
        ("error kind:model", {}),
        ("args.order.id:4421", {2: 1}),
        ("args.order.id:a-*", {3: 1}),
        ("args.order.id:44", {}),
        ("args.tags:late", {3: 1}),
        ("args.tags.0:late", {}),
        ("args.who:Zo? delayed", {}),
        ("policy", {4: 1}),
        ("working", {4: 1}),
        ("nworking", {}),
        ("question 1", {}),
    ],
)
def test_what_a_search_finds(shop, text, counts):
    assert found(load_record(shop, steps=STEPS), text) == counts


def test_escapes_of_json_are_read():
    assert as_read(r'"Zo\u00eb \ud83d\ude00 \"x\" a\\b\/"') == '"Zoë 😀 "x" a\\b/"'


def test_a_kind_that_does_not_exist_searches_nothing_and_says_so(shop, bob):
    page = page_of(bob, load_record(shop, steps=STEPS), find="kind:tol delayed")

    assert "There is no kind &#x27;tol&#x27;" in page
    assert "Nothing was searched" in page
    assert "is-hit" not in page


def test_hits_are_marked_and_counted_and_the_first_is_shown(shop, bob):
    page = page_of(bob, load_record(shop, steps=STEPS), find="delayed")

    assert 'data-shown="2"' in page
    assert page.count("badge-hits") == 2
    assert "2 hits</span>" in page
    assert "<strong data-hit-at>1</strong> of <strong>2</strong> steps" in page
    assert 'href="?find=delayed&amp;step=3#s3"' in page


def test_the_search_stays_in_the_address(shop, bob):
    load_record(shop, run_id="a b", steps=STEPS)
    run = load_record(shop, run_id="second", steps=STEPS)

    page = page_of(bob, run, run="second", find="delayed", step=3)

    assert 'data-shown="3"' in page
    assert 'href="?run=second&amp;find=delayed&amp;step=2#s2"' in page
    assert 'href="?run=second&amp;find=delayed&amp;view=messages' in page
    assert 'href="?run=a%20b&amp;find=delayed&amp;"' in page
    assert '<input type="hidden" name="run" value="second">' in page


def test_n_walks_anomalies_again_when_nothing_is_found(shop, bob):
    run = load_record(shop, steps=loop_of(20))

    keys = r'data-step="\d+"\s+data-key="n">anomaly'
    assert re.search(keys, page_of(bob, run, find="none such", step=1))
    assert not re.search(keys, page_of(bob, run, find="docs", step=1))


def test_no_hits_says_what_was_searched(shop, bob):
    page = page_of(bob, load_record(shop, steps=STEPS), find="nothing like it")

    said = match(r'<p class="find-said"(.*?)</p>', page)
    assert "0 hits" in said
    assert "errors of 4 steps" in said


def test_a_fold_counts_the_hits_inside(shop, bob):
    page = page_of(bob, load_record(shop, steps=loop_of(20)), find="search_docs")

    assert "20 hits</span>" in page


def test_it_stops_at_its_limits_and_says_so(shop, bob, monkeypatch):
    run = load_record(shop, steps=[tool_step(arguments={"row": i}, result="x" * 1000 + str(i)) for i in range(30)])
    monkeypatch.setattr(walk, "BYTES", 10_300)

    page = page_of(bob, run, find="xxx")

    assert "Stopped before step 11:" in page
    assert page.count("333 hits</span>") == 10
    monkeypatch.setattr(walk, "BYTES", 10**9)
    monkeypatch.setattr(walk, "STEPS", 12)
    monkeypatch.setattr(walk, "CHUNK", 5)
    hits = walk.find_in_run(run, find_terms("xxx"))
    assert (len(hits.counts), hits.stopped_before) == (12, 13)


def test_bytes_that_are_gone_are_counted(shop, bob):
    run = load_record(shop, steps=STEPS)
    lose_payloads(shop)

    assert "could not be searched" in page_of(bob, run, find="carrier")


def test_each_part_takes_the_same_number_of_queries(shop, bob):
    counts = []
    for number in (3, 300):
        run = load_record(shop, run_id=f"r{number}", session_id=f"s{number}", steps=long_run(number))
        with CaptureQueriesContext(connection) as seen:
            page_of(bob, run, find="row", step=1)
        counts.append(len(seen))

    assert counts[0] == counts[1]


def test_hostile_searches_stay_text(shop, bob):
    run = load_record(shop, steps=[tool_step(result=HOSTILE)])

    for text in (HOSTILE, "\x00", '"', "args.:x", "args.a:[", "args.a..b:*", "kind:", "\\", "(" * 150, "x" * 5000):
        page = page_of(bob, run, find=text)
        assert "<script>alert" not in page
        assert "\u202e" not in match(r'<table class="steps">(.*?)</table>', page)


def test_others_cannot_search(shop, bob):
    run = load_record(shop, steps=STEPS)
    charlie = client_of(make_user("charlie", make_project("elsewhere")))

    address = reverse("session", args=["shop", run.session.session_id])
    assert charlie.get(address, {"find": "delayed"}).status_code == 404


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hits_are_walked_by_keys_and_the_page_is_accessible(page, live_server, shop, scheme):
    make_user("bob", shop)
    load_record(shop, steps=STEPS)
    page.emulate_media(color_scheme=scheme)
    arrive(page, f"{live_server.url}/p/shop/s/chat_1")

    press(page, "/")
    page.keyboard.type("delayed")
    press(page, "Enter")
    page.wait_for_url("**find=delayed**")
    page.locator("#main").evaluate("document.activeElement.blur()")
    press(page, "n")
    expect(page.locator("[data-hit-at]")).to_have_text("2")
    page.wait_for_url("**step=3**")
    press(page, "N")
    expect(page.locator("[data-hit-at]")).to_have_text("1")

    assert "find=delayed" in page.url
    for width, text in ((1280, "delayed"), (320, "delayed"), (320, "none"), (1280, "kind:x")):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto(f"{live_server.url}/p/shop/s/chat_1?find={text}")
        violations = Axe().run(page).response["violations"]
        assert (width, text, [(each["id"], each["nodes"][0]["html"]) for each in violations]) == (width, text, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_list_begins_a_little_before_the_first_hit(shop, bob):
    steps = [tool_step(f"tool_{number}", result={"n": number}) for number in range(1, 41)]
    run = load_record(shop, steps=steps)

    rows = rows_of(page_of(bob, run, find="tool_30"))

    assert (rows[0], "30" in rows) == ("26", True)
    assert rows_of(page_of(bob, run, find="tool_3 kind:tool"))[0] == "1"


def test_a_hit_that_the_row_does_not_show_is_shown_below_it(shop, bob):
    long = "x" * 300
    steps = [
        tool_step("lookup", arguments={"q": "a"}, result={"text": f"{long} the carrier was delayed {long}"}),
        tool_step("lookup", arguments={"q": "delayed"}, result={"n": 1}),
    ]
    page = page_of(bob, load_record(shop, steps=steps), find="carrier was delayed")
    near = page_of(bob, load_record(shop, run_id="near", session_id="near", steps=steps), find="delayed")

    line = match(r'<tr class="hit-line">(.*?)</tr>', page)
    assert "the <mark>carrier was delayed</mark> xx" in line
    assert len(line) < 600
    assert re.findall(r'<tr (?:id="(s\d)"|class="(hit-line)")', near) == [("s1", ""), ("", "hit-line"), ("s2", "")]
