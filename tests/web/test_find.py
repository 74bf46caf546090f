"""From any id to its page, for one's own projects alone."""

import html
import json
import re
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from sessions_app.core.search.id_words import id_candidates
from sessions_app.models import Membership, Replay, SavedQuery, Session
from sessions_app.services.ingest import ingest_document
from tests.builders import make_record, make_tool_step
from tests.web.making import HOSTILE, another_run, client_of, make_project, make_session, make_user, match
from tests.web.records import load_record

pytestmark = pytest.mark.django_db


def test_candidates_are_picked_out_of_a_log_line():
    line = 'ERROR 2026-11-21T08:13:31Z agent failed run_id="r_8821" (trace=4bf92f3577b34da6a3ce929d0e0e4736), retry'

    assert {"r_8821", "4bf92f3577b34da6a3ce929d0e0e4736"} <= set(id_candidates(line))


def test_candidates_are_picked_out_of_an_address():
    assert "a/b" in id_candidates("id: a%252Fb")
    assert "chat_7710_1117" in id_candidates("see http://replay.internal/p/shop/s/chat_7710_1117?step=4")


@pytest.mark.parametrize("text", ["chat_7710", "  chat_7710 ", "run failed for session=chat_7710, see log", "chat_7"])
def test_one_hit_leads_straight_to_its_page(shop, bob, text):
    make_session(shop, "chat_7710")

    assert bob.get("/find", {"q": text})["Location"] == "/p/shop/s/chat_7710?run=chat_7710"


def test_replays_are_found(shop, bob):
    run = make_session(shop, "s")
    replay = Replay.objects.create(project=shop, run=run, content=run.content, number=1)

    assert bob.get("/find", {"q": replay.replay_id})["Location"] == f"/p/shop/replays/{replay.replay_id}"


def test_whole_ids_win_over_beginnings(shop, bob):
    make_session(shop, "order-1")
    make_session(shop, "order-12")

    assert bob.get("/find", {"q": "order-1"})["Location"] == "/p/shop/s/order-1?run=order-1"


def test_several_hits_are_listed(shop, bob):
    make_session(shop, "order-11")
    make_session(shop, "order-12")

    page = bob.get("/find", {"q": "order-"}).content.decode()

    assert "2 with an id that starts like this" in page
    assert "order-11" in page
    assert "order-12" in page


def test_each_session_is_listed_once_and_what_was_recorded_comes_first(shop, bob):
    make_session(shop, "order-11")
    recorded = make_session(shop, "order-12")
    another_run(recorded.session, recorded, "order-12-replay", origin="replay")

    page = bob.get("/find", {"q": "order-1"}).content.decode()

    rows = re.findall(r'data-row-link\s+href="([^"]+)"', page)
    assert [row.partition("run=")[2] for row in rows] == ["order-12", "order-11", "order-12-replay"]
    assert "Sessions with these words" not in page
    assert ">Started</th>" in page


def test_fewer_than_six_characters_find_whole_ids_alone(shop, bob):
    make_session(shop, "abcdef12")

    assert "No matches for" in bob.get("/find", {"q": "abcde"}).content.decode()
    assert bob.get("/find", {"q": "abcdef"})["Location"] == "/p/shop/s/abcdef12?run=abcdef12"


def test_plain_words_of_a_log_line_are_no_beginnings(shop, bob):
    make_session(shop, "failed-session-1")

    assert "No matches for" in bob.get("/find", {"q": "run failed again"}).content.decode()


def test_ids_of_other_projects_are_never_found(shop, bob):
    make_session(make_project("other"), "secret-1")

    page = bob.get("/find", {"q": "secret-1"}).content.decode()

    assert "No matches for" in page
    assert "/p/other" not in page


def test_no_hit_says_what_was_tried_and_when_something_last_arrived(shop, bob):
    make_session(shop, "here")

    page = bob.get("/find", {"q": f"{HOSTILE} r_404404"}).content.decode()

    assert "r_404404" in page
    assert "the last recording arrived" in page
    assert "<script>alert" not in page
    assert "RLO" in page


def test_a_pasted_address_of_this_server_is_opened(shop, bob):
    make_session(shop, "a/b")

    assert (
        bob.get("/find", {"q": "http://testserver/p/shop/s/a%252Fb?view=raw"})["Location"]
        == "/p/shop/s/a%252Fb?view=raw"
    )
    assert bob.get("/find", {"q": "http://evil.example/p/shop/s/none-such"}).status_code == 200


def test_home_of_a_member_of_one_project_is_that_project(shop, bob):
    assert bob.get("/")["Location"] == "/p/shop/"
    make_user("charlie")


def test_home_without_a_project_says_so():
    charlie = client_of(make_user("charlie"))

    assert charlie.get("/")["Location"] == "/find"
    assert "You are not a member of any project yet" in charlie.get("/find").content.decode()


def test_ids_come_first_and_then_the_sessions_with_the_words(shop, bob):
    """Beside the project's navigation."""
    for name in ("parcel11", "parcel12"):
        make_session(shop, name)
    load_record(shop, run_id="r", session_id="chat_1", input="where is parcel1 now")
    page = bob.get("/find", {"q": "parcel1", "in": "shop"}).content.decode()

    assert page.index("/p/shop/s/parcel12") < page.index("Sessions with these words") < page.index("/p/shop/s/chat_1")
    assert 'aria-label="Project"' in page


def test_without_a_match_the_project_and_its_box_stay_and_the_newest_are_shown(shop, bob):
    make_session(shop, "chat_1")

    for query in ({"q": "nothing1"}, {"q": "nothing1", "in": "shop"}):
        page = bob.get("/find", query).content.decode()
        assert 'aria-label="Project"' in page
        assert page.count('name="q"') == 1
        assert 'value="nothing1"' in page
        assert "/p/shop/s/chat_1" in page.partition("Newest arrivals")[2]


def member_of(*projects):
    carol = make_user("carol")
    for project in projects:
        Membership.objects.create(project=project, user=carol, role="member")
    return client_of(carol)


def offered_in(page):
    """Shorter searches: their words, the number of sessions, and where they lead."""
    table = page.partition("Shorter searches</caption>")[2].partition("</table>")[0]
    words = " ".join(re.sub(r"<[^>]+>", " ", table).split())
    return words, [html.unescape(each) for each in re.findall(r'href="([^"]*)"', table)]


def test_where_no_session_holds_all_words_the_query_without_each_is_offered_with_its_count(shop, bob):
    make_session(shop, "chat_1")

    page = bob.get("/find", {"q": "where order 4398", "in": "shop"}).content.decode()

    assert "No matches for" in page
    assert offered_in(page) == ("without 4398 1 session", ["/p/shop/sessions?q=where+order"])


def test_where_no_session_holds_all_words_but_one_each_is_offered_alone(shop, bob):
    make_session(shop, "chat_1")

    page = bob.get("/find", {"q": "order 4398 elephant", "in": "shop"}).content.decode()

    assert offered_in(page) == ("only order 1 session", ["/p/shop/sessions?q=order"])
    assert "Shorter searches" not in bob.get("/find", {"q": "elephant", "in": "shop"}).content.decode()


def test_a_shorter_search_names_its_project_where_several_were_searched(shop):
    other = make_project("other", name="Other shop")
    make_session(other, "chat_2")
    carol = member_of(shop, other)

    page = carol.get("/find", {"q": "order 4398"}).content.decode()

    assert offered_in(page) == ("without 4398 Other shop 1 session", ["/p/other/sessions?q=order"])


def test_sessions_of_several_projects_are_rows_of_one_table_with_their_answer_and_marked_words(shop):
    other = make_project("other", name="Other shop")
    for project in (shop, other):
        load_record(project, input="Is my kettle <b>lost</b>, or the order?", output="It is on its way.", steps=[])
    carol = member_of(shop, other)

    page = carol.get("/find", {"q": "order kettle"}).content.decode()

    assert page.count("<table") == 1
    assert page.count("<mark>kettle</mark>") == page.count("<mark>order</mark>") == 2
    assert page.count("It is on its way.") == 2
    assert re.findall(r'class="c-by">([^<]*)</td>', page) == ["Other shop", shop.name]
    assert "<b>lost" not in page


def test_words_that_are_no_id_open_the_sessions_that_hold_them(shop, bob):
    make_session(shop, "chat_1")
    make_session(make_project("other"), "chat_2")

    assert bob.get("/find", {"q": "order where", "in": "shop"})["Location"] == "/p/shop/sessions?q=order+where"
    assert bob.get("/find", {"q": "order", "in": "other"})["Location"] == "/p/shop/sessions?q=order"
    for asked in ({"q": "elephants", "in": "shop"}, {"q": "status:errr", "in": "shop"}):
        assert "No matches for" in bob.get("/find", asked).content.decode()


def test_the_top_box_offers_pages_saved_queries_and_help(shop, bob):
    """Names are escaped, and other projects have their own."""
    SavedQuery.objects.create(project=shop, name="<b>loops", address="?q=anomaly%3Amany_tool_calls")
    SavedQuery.objects.create(project=make_project("other"), name="secret", address="?q=x")

    page = bob.get("/p/shop/palette").content.decode()

    offered = re.findall(r'data-to="([^"]+)"><span class="cut" data-words>([^<]*)</span>', page)
    assert ("/p/shop/replays", "Replays") in offered
    assert len(offered) == len(set(offered))
    assert ("/p/shop/sessions?q=anomaly%3Amany_tool_calls", "&lt;b&gt;loops") in offered
    assert ("/me#keys-list", "Keyboard shortcuts") in offered
    assert "secret" not in page


def test_the_top_box_offers_recent_sessions(shop, bob):
    """Each once, by what it was asked and not by what its agent asked of another."""
    load_record(shop, run_id="run_1", session_id="chat", input="Where is <b>my</b> order?", steps=[make_tool_step()])
    load_record(shop, run_id="run_2", session_id="chat", parent={"run_id": "run_1"}, steps=[make_tool_step()])

    page = bob.get("/p/shop/palette").content.decode()

    (row,) = re.findall(r'data-to="/p/shop/s/chat\?run=run_1"(.*?)</li>', page, re.DOTALL)
    assert 'data-also="run_1"' in row
    assert re.findall(r"data-words>([^<]*)<", row) == ["chat", "Where is &lt;b&gt;my&lt;/b&gt; order?"]
    assert "<span>ok</span>" in row
    assert "run_2" not in page


def test_the_top_box_finds_sessions_beyond_the_newest_by_the_beginning_of_an_id_or_by_words(shop, bob):
    load_record(shop, run_id="old_run", session_id="old_chat", input="Where is the kettle?", steps=[make_tool_step()])
    load_record(make_project("other"), run_id="old_secret", input="a kettle", steps=[make_tool_step()])
    for number in range(22):
        load_record(shop, run_id=f"r{number}", session_id=f"s{number}", steps=[make_tool_step()])

    assert "old_chat" not in bob.get("/p/shop/palette").content.decode()
    for asked in ("old_c", "old_r", "kettle"):
        page = bob.get("/p/shop/palette", {"q": asked}).content.decode()
        assert re.findall(r'data-to="([^"]+)"', page) == ["/p/shop/s/old_chat?run=old_run"]
    assert bob.get("/p/shop/palette", {"q": "status:errr"}).content.decode().strip() == ""


def test_the_top_box_offers_the_sessions_with_each_tag(shop, bob):
    make_session(shop, "chat_1")
    Session.objects.update(tags=["seen by support"])

    page = bob.get("/p/shop/palette").content.decode()

    assert (
        'data-to="/p/shop/sessions?q=tag%3A%22seen+by+support%22"><span class="cut" data-words>Sessions with tag '
        "seen by support<" in page
    )


def test_a_mistyped_id_leads_to_the_one_that_was_meant(shop, bob):
    for name in ("run_wrong_55", "run_right_56"):
        load_record(shop, run_id=name, session_id=f"s_{name}", steps=[make_tool_step()])

    for address in ("/find", "/p/shop/sessions"):
        page = bob.get(address, {"q": "run_wrnog_55"}).content.decode()
        meant = re.search(r'Did you mean\s*<a[^>]*href="([^"]*)"', page)
        assert meant[1] == "/p/shop/s/s_run_wrong_55?run=run_wrong_55"
    assert "Did you mean" not in bob.get("/find", {"q": "something_else"}).content.decode()


def test_a_mistyped_key_is_a_link_to_the_query_that_was_meant(shop, bob):
    page = bob.get("/p/shop/sessions", {"q": "a -stauts:error b"}).content.decode()

    assert 'Did you mean <a href="?q=a+-status%3Aerror+b"><code>a -status:error b</code></a>?' in page


FAILED_STEPS: dict[str, dict[str, Any]] = {
    "gateway": {"error": {"type": "GatewayTimeout", "message": "no answer"}},
    "ShareLock": {"error": {"type": None, "message": "Process 812 waits for ShareLock"}},
    "deadlock": {"error": {"type": "E", "message": "x"}, "result": "deadlock detected"},
    "unreachable": {"result": {"ok": False, "reason": "host unreachable"}},
}


@pytest.mark.parametrize("word", FAILED_STEPS)
def test_words_of_a_failed_step_find_its_session(shop, bob, word):
    document = make_record("r1", make_tool_step(**FAILED_STEPS[word]), output="Done.", input="x " * 60_000)
    ingest_document(shop, json.dumps(document).encode())

    found = bob.get("/find", {"q": word})["Location"]
    assert found == f"/p/shop/sessions?q={word}"
    assert "/p/shop/s/r1" in bob.get(found).content.decode()


def test_what_tools_were_asked_and_answered_is_found_apart_and_marked(shop, bob):
    asked = {"input": "Where is the quiet room?"}
    for name, result, more in (("r1", "All quiet here", {}), ("r2", "nothing", asked), ("r3", "quiet", {})):
        document = make_record(name, make_tool_step(result=result), session_id=name, **more)
        ingest_document(shop, json.dumps(document).encode())

    page = bob.get("/find", {"q": "all here"}).content.decode()
    row = match(r'<h2 id="in-calls">(.*?)</table>', page)
    assert re.findall(r'href="([^"]*step=[^"]*)"', row) == ["/p/shop/s/r1?run=r1&amp;step=1"]
    assert "<mark>All</mark> quiet <mark>here</mark>" in row
    assert "No session has all these words" in page

    total = bob.get("/p/shop/sessions", {"q": "quiet", "total": 1}).content.decode()
    (address,) = re.findall(r'href="([^"]+)">2 runs with it in a tool call', total)
    both = bob.get(unescape(address)).content.decode()
    assert both.index('title="r2"') < both.index('id="in-calls"') < both.index('title="r3"')
    assert "in a tool call" not in bob.get("/p/shop/sessions", {"q": "status:ok quiet", "total": 1}).content.decode()


def test_a_search_of_calls_says_how_far_it_looked(shop, bob, monkeypatch):
    for name in ("r1", "r2", "r3"):
        load_record(shop, run_id=name, session_id=name, steps=[make_tool_step(result="All here")])
    monkeypatch.setattr("sessions_app.queries.find_in_calls.STEPS", 2)

    page = bob.get("/find", {"q": "all here"}).content.decode()

    assert "in the newest 2 runs;" in page
    assert page.count("<mark>All</mark>") == 2


def test_calls_of_tools_are_searched_by_few_queries(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert "in-calls" in bob.get("/find", {"q": "all here"}).content.decode()
        return len(queries)

    load_record(shop, run_id="r0", steps=[make_tool_step(result="All here")])
    cost()
    one = cost()
    for number in range(1, 6):
        load_record(shop, run_id=f"r{number}", session_id=f"s{number}", steps=[make_tool_step(result="All here")])

    assert cost() == one


def test_a_page_that_is_not_there_offers_near_ids_and_the_newest_runs_of_the_project(shop, bob):
    for number in range(5):
        load_record(shop, run_id=f"order_{number}", session_id=f"order_{number}")

    page = bob.get("/p/shop/s/ordre_1").content.decode()
    theirs = client_of(make_user("eve")).get("/p/shop/s/ordre_1").content.decode()

    assert "Did you mean" in page
    newest = page.partition("Newest:")[2]
    assert re.findall(r"run=(\w+)", newest) == ["order_4", "order_3", "order_2"]
    assert "order_" not in theirs


def test_what_was_made_here_has_the_state_that_its_report_tells(shop, bob):
    recorded = make_session(shop, "order-12", status="error")
    made = another_run(recorded.session, recorded, "order-12-replay", origin="replay", status="error")
    Replay.objects.create(
        replay_id="order-12-rp", project=shop, run=recorded, content=recorded.content, number=1, produced_run=made,
        state="done", verdict="reproduced",
    )  # fmt: skip

    page = bob.get("/find", {"q": "order-12-"}).content.decode()

    rows = re.findall(r"<tr role=\"row\" data-row>.*?</tr>", page, re.DOTALL)
    assert [re.findall(r'class="state[^>]*>.*?<span>([^<]*)<', row) for row in rows] == [["reproduced"], ["reproduced"]]
