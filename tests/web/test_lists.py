"""The list of sessions: what it shows, what a query means, and what it costs."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from sessions_app.core.errors import QueryError
from sessions_app.core.search.query import EXAMPLES, parse_query
from sessions_app.models import Replay, Run
from sessions_app.queries.cold_cases import cold_board
from sessions_app.queries.session_overview import session_overview
from sessions_app.queries.sessions import PAGE, Span, count_newer, make_cursor, read_cursor, session_page
from sessions_app.services.cold_cases import mark_cold
from tests.web.making import HOSTILE, another_run, make_project, make_session, match
from tests.web.records import load_record, tool_step

pytestmark = pytest.mark.django_db
ADDRESS = "/p/shop/sessions"


def found_by(project, text: str) -> list[str]:
    return [row.session.session_id for row in session_page(project, parse_query(text)).items]


def test_list_shows_newest_first_with_input_answer_and_verdict(shop, bob):
    make_session(shop, "chat_1", minutes_ago=50)
    make_session(shop, "chat_2", minutes_ago=2)

    page = bob.get(ADDRESS).content.decode()

    assert page.index("chat_2") < page.index("chat_1")
    assert "Where is my order?" in page
    assert "It is on its way." in page
    assert "replayable" in page
    assert "not captured" in page


def test_of_many_runs_the_row_shows_the_first_that_went_wrong_and_the_sums_of_all(shop, bob):
    run = make_session(shop, "chat", step_count=3, duration_ms=1000.0)
    for at, group in enumerate((None, "aa", "bb", None), start=2):
        another_run(run.session, run, f"turn_{at}", failure_group=group, step_count=4, duration_ms=500.0)
    another_run(run.session, run, "asked", parent_run_id="turn_2", failure_group="cc", step_count=90)

    (row,) = session_page(shop, parse_query("")).items
    page = bob.get(ADDRESS).content.decode()

    assert (row.run.run_id, row.steps, row.duration_ms) == ("turn_3", 19, 3000.0)
    assert "/p/shop/s/chat?run=turn_3" in page
    assert '<span class="steps-count">19</span>' in page
    assert "3.00 s" in page


def test_notes_alone_are_no_anomalies_of_a_query(shop):
    make_session(shop, "s", anomalies=[{"code": "asked_again", "message": "m", "steps": [1], "level": "info"}])

    assert found_by(shop, "has:anomaly") == []
    assert found_by(shop, "anomaly:asked_again") == ["s"]


def test_list_of_an_empty_project_leads_to_setting_up(shop, bob):
    assert "No sessions yet" in bob.get(ADDRESS).content.decode()
    assert bob.get("/p/shop/")["Location"] == "/p/shop/setup"


def test_list_escapes_what_was_recorded_and_names_control_characters(shop, bob):
    make_session(shop, "s", input_preview=HOSTILE, output_preview=HOSTILE, user_id=HOSTILE, model=HOSTILE)

    page = bob.get(ADDRESS).content.decode()

    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page
    assert '<span class="ctl ctl-bidi" title="U+202E RIGHT-TO-LEFT OVERRIDE">RLO</span>' in page
    assert "\u202e" not in page
    assert "\x1b" not in page


@pytest.mark.parametrize(
    "session_id", ["a/b", "..", ".", "../x", "a?b#c", "a%2Fb", "ü ñ", "a...b", "<b>&", "back\\slash"]
)
def test_list_links_to_sessions_of_any_id(shop, bob, session_id):
    make_session(shop, session_id)

    address = match(r'data-row-link\s+href="([^"]+)"', bob.get(ADDRESS).content.decode())

    assert bob.get(address.replace("&amp;", "&")).status_code == 200


def test_list_blocks_a_query_that_it_does_not_understand(shop, bob):
    make_session(shop, "seen")

    response = bob.get(ADDRESS, {"q": "status:errr user:x"})

    page = response.content.decode()
    assert response.status_code == 400
    assert '<code class="query-part">status:errr</code> status is one of' in page
    told = page.partition('id="query-error"')[2].partition("</div>")[0]
    assert told.count("status:errr") == 1
    assert "data-row" not in page


def test_all_parts_of_a_query_that_are_not_understood_are_told(shop, bob):
    page = bob.get(ADDRESS, {"q": "status:purple late foo:bar"}).content.decode()

    assert '<code class="query-part">foo:bar</code> There is no key' in page
    assert "<code>status:error late</code></a>?" in page


def test_every_part_that_is_not_understood_has_its_reason_and_the_rest_is_offered(shop, bob):
    page = bob.get(ADDRESS, {"q": "foo:bar late status:"}).content.decode()

    assert re.findall(r'<code class="query-part">(.*?)</code>', page) == ["foo:bar", "status:"]
    assert "There is no key foo. Put it in &quot;quotes&quot; to search for these words." in page
    assert re.search(r'<a href="\?q=late[^"]*">Search for the rest: <code>late</code></a>', page)
    assert "<code>took:</code>" in page


def test_list_without_matches_offers_each_part_left_out(shop, bob):
    make_session(shop, "one", status="error")

    page = bob.get(ADDRESS, {"q": "status:error user:nobody"}).content.decode()

    assert "No session matches" in page
    assert re.search(r"without <code>user:nobody</code>.*?1 session\s*<", page, re.DOTALL)
    assert re.search(r"without <code>status:error</code>.*?0 sessions\s*<", page, re.DOTALL)


def test_list_says_how_many_sessions_there_are_without_a_part(shop, bob):
    for number in range(23):
        make_session(shop, f"s{number}")

    page = bob.get(ADDRESS, {"q": "tag:none"}).content.decode()

    assert re.search(r"without <code>tag:none</code>.*?23 sessions\s*<", page, re.DOTALL)
    assert "more than" not in page


def test_a_row_says_what_the_worst_anomaly_is(shop, bob):
    load_record(shop, output="Done.", steps=[tool_step("cancel", error={"message": "refused"})])

    page = bob.get(ADDRESS).content.decode()

    assert re.search(
        r'what-odd" title="[^"]*cancel failed[^"]*"><svg.*?#triangle-alert"/></svg> [^<]*cancel failed', page
    )


def test_a_row_tells_notes_from_warnings(shop, bob):
    note = {"code": "many_tool_calls", "message": "67 tool calls", "steps": [], "level": "info"}
    doubt = {"code": "no_source", "message": "search found nothing", "steps": [2], "level": "info"}
    warning = {"code": "call_failed", "message": "cancel failed", "steps": [4], "level": "warning"}
    for name, anomalies in {"a": [note], "b": [doubt, note], "c": [warning, doubt, note]}.items():
        make_session(shop, name, anomalies=anomalies)

    page = bob.get(ADDRESS).content.decode()

    marks = re.findall(r'c-odd num"><span class="(\w+)".*?icons[^"]*#([\w-]+)"/></svg> (\d+)<', page)
    assert marks == [("odd", "triangle-alert", "1"), ("soft", "info", "2"), ("soft", "info", "1")]
    assert re.findall(r'what-odd" title="([^"]*)"', page) == ["cancel failed", "search found nothing"]


def test_list_hides_replays_unless_asked(shop):
    run = make_session(shop, "s")
    another_run(run.session, run, "made-here", origin="replay")

    assert [row.run.run_id for row in session_page(shop, parse_query("")).items] == ["s"]
    assert [row.run.run_id for row in session_page(shop, parse_query("origin:replay")).items] == ["made-here"]


def test_a_row_shows_the_newest_attempt_at_reproducing_its_run_and_no_fork_of_it(shop, bob):
    run = make_session(shop, "s")
    ends = {"recording": "reproduced", "fork": "diverged", "sampling": "could_not_run"}
    for number, (mode, verdict) in enumerate(ends.items(), start=1):
        Replay.objects.create(
            project=shop,
            run=run,
            content=run.content,
            number=number,
            mode=mode,
            state="done",
            verdict=verdict,
            fork_id=mode,
        )
    golden = {"number": 9, "is_golden": True, "state": "done", "verdict": "diverged"}
    Replay.objects.create(project=shop, run=run, content=run.content, **golden)

    assert [row.replay.verdict for row in session_page(shop, parse_query("")).items] == ["reproduced"]
    assert found_by(shop, "verdict:diverged") == []
    panel = bob.get(ADDRESS, {"peek": "s"}).content.decode()
    assert re.search(r"diverged</span></span><span class=\"soft\">fork #2<", panel)


@pytest.mark.parametrize("state", ["paused", "cancelled"])
def test_an_attempt_that_says_nothing_does_not_hide_what_was_reproduced(shop, state):
    run = make_session(shop, "s")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="done", verdict="reproduced")
    Replay.objects.create(project=shop, run=run, content=run.content, number=2, state=state)

    assert [row.replay.number for row in session_page(shop, parse_query("")).items] == [1]


def test_a_cancelled_replay_leaves_the_run_as_replayable_as_it_was(shop, bob):
    run = make_session(shop, "s", verdict="replayable")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="cancelled", verdict="cancelled")

    cell = match(r'<td role="cell" class="c-replay">(.*?)</td>', bob.get(ADDRESS).content.decode())

    assert match(r"<span>([^<]*)</span>", cell) == "replayable"


def test_list_never_shows_other_projects(shop, bob):
    make_session(make_project("other"), "secret")

    assert "secret" not in bob.get(ADDRESS).content.decode()


def test_a_session_matches_when_one_run_matches_all_terms(shop):
    run = make_session(shop, "s", status="ok", user_id="u_1")
    another_run(run.session, run, "second", status="error", user_id="u_2")

    assert found_by(shop, "status:error user:u_2") == ["s"]
    assert found_by(shop, "status:error user:u_1") == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("status:error", True), ("status:ok", False), ("-status:ok", True), ("status:(ok OR error)", True),
        ("tool:lookup_order", True), ("tool:lookup_*", True), ("tool:*_order", True), ("tool:lookup", False),
        ("tool:cancel*order", False), ("tool:lookup.order", False), ("-tool:search_docs", True),
        ("model:gpt-4o", True), ("model:gpt*", True), ("model:sonnet", True), ("-model:gpt*", False),
        ("user:u_1", True), ("user:u_*", True), ("user:u%", False), ("-user:u_1", False), ("-tenant:t", True),
        ("steps:>2", True), ("steps:>3", False), ("steps:3", True), ("took:>1s", True), ("took:>=2m", False),
        ("tokens:>100", True), ("tokens:>1000", False), ("commit:9f2c", True), ("commit:9F2C41D", True),
        ("commit:41", False), ("version:v1", True), ("has:commit", True), ("-has:commit", False), ("has:tenant", False),
        ("-has:tenant", True), ("has:anomaly", True), ("anomaly:duplicate_call", True), ("anomaly:dup*", True),
        ("anomaly:slow_step", False), ("anomalies:>0", True), ("has:replay", True), ("has:cold", True),
        ("cold:yes", True), ("cold:no", False),
        ("reason:GONE", True), ("reason:g*e", True), ("reason:lost", False),
        ("replay:cold", True), ("replay:partial", False), ("replay:ready", False), ("-replay:partial", True),
        ("verdict:replayable_to_step", True), ("verdict:diverged", True), ("verdict:reproduced", False),
        ("missing:commit", True), ("-missing:commit", False), ("session:s", True), ("run:s", True), ("run:x", False),
        ("kind:model", True), ("kind:retrieval", False), ("agent:desk", True), ("provider:openai", True),
        ("Where is my order", True), ('"my order"', True), ("order my", True),
        ('"order my"', False), ("on its way", True), ("u_1", False),
    ],
)  # fmt: skip
def test_queries_mean_what_they_say(shop, query, expected):
    run = make_session(
        shop, "s", status="error", tool_names=["lookup_order"], model="gpt-4o", model_names=["gpt-4o", "sonnet"],
        user_id="u_1", tenant_id=None, step_count=3, duration_ms=2500.0, input_tokens=80, output_tokens=40,
        commit="9f2c41d07be6", agent_version="v1", agent_name="desk", provider="openai", verdict="replayable_to_step",
        verdict_step=2, anomalies=[{"code": "duplicate_call", "message": "m", "steps": [1], "level": "warning"}],
    )  # fmt: skip
    mark_cold(run=run, reason="gone")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="done", verdict="diverged")

    assert found_by(shop, query) == (["s"] if expected else [])


def test_the_example_of_a_verdict_finds_a_run_that_was_reproduced(shop):
    run = make_session(shop, "s")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1, state="done", verdict="reproduced")

    assert found_by(shop, EXAMPLES["verdict"]) == ["s"]


def test_every_example_of_the_query_language_runs(shop):
    for example in EXAMPLES.values():
        found_by(shop, example)
        found_by(shop, f"-{example}")


def test_pages_continue_without_gaps_or_repeats(shop, bob):
    for number in range(PAGE + 5):
        make_session(shop, f"s{number:03}", minutes_ago=number // 3)

    first = session_page(shop, parse_query(""))
    second = session_page(shop, parse_query(""), first.next_cursor)

    names = [row.session.session_id for row in first.items + second.items]
    assert len(first.items) == PAGE
    assert second.next_cursor is None
    assert sorted(names) == [f"s{number:03}" for number in range(PAGE + 5)]


def test_load_more_answers_with_rows_alone(shop, bob):
    for number in range(PAGE + 1):
        make_session(shop, f"s{number:03}")
    more = match(r'href="\?([^"]+)"\s+data-key="l"', bob.get(ADDRESS).content.decode()).replace("&amp;", "&")

    part = bob.get(f"{ADDRESS}?{more}", headers={"HX-Request": "true", "HX-Target": "more"}).content.decode()
    whole = bob.get(f"{ADDRESS}?{more}").content.decode()

    assert part.count("data-row-link") == 1
    assert "<html" not in part
    assert whole.count("data-row-link") == 1
    assert "<html" in whole


def test_a_row_that_matched_says_where_the_words_stand(shop, bob):
    steps = [
        tool_step("lookup", result={"note": "the kettle is lost"}),
        tool_step("cancel", error={"message": "refused"}),
    ]
    load_record(shop, input="where is my order?", output=f"Sorry, {'it ' * 40} went to Oslo <b>today</b>.", steps=steps)

    def snippet(words):
        found = match(r'<span class="snippet cut small">(.*?)</td>', bob.get(ADDRESS, {"q": words}).content.decode())
        return " ".join(re.sub("<(?!/?mark)[^>]+>", "", found).split())

    assert 'what-in">where is my <mark>order</mark>?</span>' in bob.get(ADDRESS, {"q": "order"}).content.decode()
    assert snippet('"went to oslo"').endswith("<mark>went to Oslo</mark> &lt;b&gt;today&lt;/b&gt;.")
    assert snippet('"went to oslo"').startswith("answered: …")
    assert snippet("REFUSED") == "step 2: <mark>refused</mark>"
    assert 'class="snippet' not in bob.get(ADDRESS).content.decode()


def test_searched_words_are_marked_in_question_and_answer(shop, bob):
    load_record(shop, input="Can I check out late?", output="Yes, late checkout until 14:00.")

    what = match(r'<td role="cell" class="c-what">(.*?)</td>', bob.get(ADDRESS, {"q": "late"}).content.decode())

    assert "check out <mark>late</mark>?" in what
    assert "Yes, <mark>late</mark> checkout until 14:00." in what


def test_a_run_that_goes_on_has_taken_the_time_since_its_start_whatever_was_recorded(shop, bob):
    run = make_session(shop, "goes_on", status="running", duration_ms=2090.0)
    Run.objects.filter(pk=run.pk).update(started_at=timezone.now() - timedelta(minutes=23, seconds=5))

    took = match(r'<td role="cell" class="c-took num">(.*?)</td>', bob.get(ADDRESS).content.decode())

    assert re.sub(r"<[^>]+>", "", took) == "for 23 min"


def test_of_many_runs_the_start_is_that_of_the_newest_and_says_so(shop, bob):
    run = make_session(shop, "one")
    assert "newest run" not in bob.get(ADDRESS).content.decode()

    another_run(run.session, run, "two")

    page = bob.get(ADDRESS).content.decode()
    assert "steps in all runs that match; the marks are those of the run shown" in page
    assert "newest run" in match(r'<td role="cell" class="c-when">(.*?)</td>', bob.get(ADDRESS).content.decode())


def test_snippets_of_many_rows_cost_the_same_as_one(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert "<mark>order</mark>" in bob.get(ADDRESS, {"q": "order"}).content.decode()
        return len(queries)

    load_record(shop, input="an order")
    cost()
    one = cost()
    for number in range(5):
        load_record(shop, run_id=f"r{number}", session_id=f"s{number}", input="an order", steps=[tool_step()])

    assert cost() == one


def test_words_that_stand_further_on_are_said_to(shop, bob):
    load_record(shop, output=f"{'far ' * 400} away")

    assert "further on in a long value" in bob.get(ADDRESS, {"q": "away"}).content.decode()


@pytest.mark.parametrize("cursor", ["x", "====", "bm90IGEgdGltZS8x", "MjAyNi0xMS0yMVQwODowMDowMC85", "\u00e9"])
def test_cursors_of_others_are_refused(shop, cursor):
    with pytest.raises(QueryError, match="not one that this server gave"):
        read_cursor(cursor)


def test_list_costs_the_same_for_one_row_and_for_many(shop, bob):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            bob.get(ADDRESS)
        return len(queries)

    run = make_session(shop, "s0")
    Replay.objects.create(project=shop, run=run, content=run.content, number=1)
    one = cost()
    for number in range(1, 60):
        run = make_session(shop, f"s{number}")
        Replay.objects.create(project=shop, run=run, content=run.content, number=1)
        another_run(run.session, run, f"again{number}")

    assert cost() == one
    assert one <= 11


def test_new_sessions_wait_behind_a_count(shop, bob):
    first = make_session(shop, "s1", minutes_ago=9)
    cursor = make_cursor(first.session)
    address = f"{ADDRESS}?newer={cursor}"
    before = bob.get(address)
    make_session(shop, "s2", minutes_ago=1)

    after = bob.get(address)

    assert "new · show" not in before.content.decode()
    assert "1 new · show" in after.content.decode()
    assert bob.get(address, headers={"If-None-Match": after["ETag"]}).status_code == 304
    assert count_newer(shop, parse_query("status:error"), cursor) == 0


def test_row_shows_the_newest_matching_run_and_how_many_there_are(shop, bob):
    run = make_session(shop, "s", input_preview="first words")
    another_run(run.session, run, "second", input_preview="second words")

    page = bob.get(ADDRESS).content.decode()

    assert "second words" in page
    assert "first words" not in page
    assert "2 runs" in page
    assert Run.objects.count() == 2


def test_a_run_dated_in_the_future_does_not_top_the_list_and_says_so(shop, bob):
    """Control: a run of now has no such mark."""
    ahead = (timezone.now() + timedelta(days=3)).isoformat()
    load_record(shop, run_id="ahead", session_id="ahead", started_at=ahead)
    load_record(shop, run_id="right", session_id="right", started_at=timezone.now().isoformat())

    page = bob.get(ADDRESS).content.decode()
    own = [bob.get(f"/p/shop/s/{name}").content.decode() for name in ("ahead", "right")]

    assert found_by(shop, "") == ["right", "ahead"]
    assert page.count("clock ahead by 3 d") == 1
    assert ["clock ahead by 3 d" in each for each in own] == [True, False]


def test_cold_means_the_same_in_the_tab_the_facet_queries_and_cold_cases(shop):
    """A run that goes on is not cold, one that a person marked is, whatever the judge said of it."""
    for name, status in (("goes_on", "running"), ("ended", "ok"), ("marked", "ok")):
        load_record(shop, run_id=name, session_id=name, status=status, output=None)
    Run.objects.filter(run_id="marked").update(verdict="replayable")
    mark_cold(run=Run.objects.get(run_id="marked"), reason="no tool answers")

    found = [found_by(shop, query) for query in ("cold:yes", "replay:cold", "has:cold")]
    facets = session_overview(shop, parse_query(""), Span(), timezone.now()).facets

    assert [sorted(each) for each in found] == [["ended", "marked"]] * 3
    assert found_by(shop, "replay:ready") == []
    assert next(facet.counts for facet in facets if facet.key == "replay") == (("cold", 2),)
    assert cold_board(shop).total == 2


def test_a_session_is_told_by_the_run_that_no_other_run_called(shop, bob):
    """Also where that of a sub-agent arrives later, unless it alone matches."""
    run = make_session(shop, "brief", input_preview="write the brief")
    another_run(run.session, run, "helper", input_preview="find numbers", parent_run_id=run.run_id, status="error")

    page, failed = (bob.get(ADDRESS, {"q": q}).content.decode() for q in ("", "status:error"))

    assert ("write the brief" in page, "find numbers" in page) == (True, False)
    assert ("write the brief" in failed, "find numbers" in failed) == (False, True)


def test_the_address_of_a_run_leads_to_its_session(shop, bob):
    make_session(shop, "chat", run_id="run_9")

    response = bob.get("/p/shop/s/run_9", {"view": "timeline"})

    assert response["Location"] == "/p/shop/s/chat?run=run_9&view=timeline"
    assert bob.get("/p/shop/s/run_10").status_code == 404


def test_a_search_that_finds_nothing_leads_to_the_one_through_tool_values(shop, bob):
    load_record(shop, run_id="r", session_id="r", steps=[tool_step(arguments={"order_id": "ORD-5512"})])

    page = bob.get(ADDRESS, {"q": "ORD-5512"}).content.decode()

    assert "does not search tool arguments and answers" in page
    (address,) = re.findall(r'href="(/find[^"]*tools=yes)"', page)
    assert "<mark>ORD-5512</mark>" in bob.get(address.replace("&amp;", "&")).content.decode()
    assert "answers of tools" not in bob.get(ADDRESS, {"q": "status:error"}).content.decode().partition("<main")[2]


def test_a_running_run_is_not_cold(shop, bob):
    """Control: one that has ended with as little is."""
    for name, status in (("goes_on", "running"), ("ended", "ok")):
        load_record(shop, run_id=name, session_id=name, status=status, output=None)

    page = bob.get(ADDRESS).content.decode()
    own = bob.get("/p/shop/s/goes_on").content.decode()

    assert found_by(shop, "cold:yes") == ["ended"]
    assert page.count(">not yet<") == 1
    assert "not finished yet" in own
    assert "not answered yet" in page
    panel = match(r'<aside id="peek"(.*?)</aside>', bob.get(ADDRESS, {"peek": "goes_on"}).content.decode())
    assert "not finished yet" in panel
    assert "not answered yet" in panel
    assert "cold" not in panel
    assert "Replay <kbd>" not in panel
    assert "snowflake" in bob.get("/p/shop/s/ended").content.decode().partition("<main")[2]


def test_a_running_run_says_what_it_waits_for_and_nothing_of_cold_cases(shop, bob):
    began = timezone.now() - timedelta(minutes=3, seconds=5)
    asked = {"started_at": began.isoformat(), "ended_at": None, "duration_ms": None}
    load_record(shop, run_id="goes_on", session_id="goes_on", status="running", output=None, **asked)

    page = bob.get("/p/shop/s/goes_on").content.decode()

    head = " ".join(re.sub(r"<[^>]+>", " ", page).split())
    assert "Running for 3 min · 0 steps" in head
    assert [head.count(words) for words in ("still running", "not answered yet", "not replayed yet")] == [0, 0, 0]
    assert "Replay once it has ended" in head
    assert "took" not in head.partition("replay kit")[0]
    assert "snowflake" not in page.partition("<main")[2]


def test_the_list_counts_what_matches_after_its_rows(shop, bob, monkeypatch):
    for n in range(3):
        make_session(shop, f"s{n}", status="ok" if n else "error")

    def total(**query):
        return bob.get(ADDRESS, query | {"total": 1}).content.decode().strip()

    assert (total(), total(q="status:error")) == ("3 sessions", "1 session")
    assert "total=1" in bob.get(ADDRESS).content.decode()
    monkeypatch.setattr("sessions_app.web.session_list.views.COUNTED", 2)
    assert total() == "more than 2 sessions"


def test_a_row_says_why_its_run_was_marked_cold(shop, bob):
    run = load_record(shop, run_id="r", session_id="s", status="ok", output="Done.")
    mark_cold(run=run, reason="the index was rebuilt")

    assert 'cold-reason">the index was rebuilt</span>' in bob.get(ADDRESS).content.decode()
    assert found_by(shop, 'reason:"index WAS"') == ["s"]


# --- words -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("refund policy", ["english"]),
        ("policy refund", ["english"]),
        ('"refund policy"', ["english"]),
        ('"policy refund"', []),
        ("キャンセル", ["japanese"]),
        ("4421 キャンセル", ["japanese"]),
        ("キャンセル済み", []),
        ("退款", ["chinese"]),
        ("政策 退款", ["chinese"]),
        ('"退款政策"', ["chinese"]),
        ('"政策退款"', []),
        ("款", ["chinese"]),
        ("refund — policy", ["english"]),
    ],
)
def test_words_are_found_in_any_order_and_inside_sentences(shop, text, found):
    asked = {
        "english": "Which refund policy holds for 4421?",
        "japanese": "注文4421をキャンセルしたいのですが。",
        "chinese": "请告诉我你们的退款政策是什么。",
    }
    for name, words in asked.items():
        load_record(shop, run_id=name, session_id=name, input=words, steps=[])

    assert found_by(shop, text) == found
