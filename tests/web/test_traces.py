"""Runs that came as spans: how they arrive, what only their spans say, and how they are found."""

import json
import re
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from sessions_app.core.otlp.decode import decode_traces
from sessions_app.core.spans.span import Link, LogRecord, Scope, Span, SpanEvent
from sessions_app.mapping.content_keys import told_by
from sessions_app.models import Replay, Run, RunContent, Trace
from sessions_app.services import trace_runs
from sessions_app.services.ingest import ingest_document
from sessions_app.services.spans import receive
from sessions_app.services.trace_runs import make_run, make_waiting_runs
from tests.builders import make_record, make_tool_step
from tests.traces.captures import CHOICE, Capture
from tests.web.browsing import arrive, press
from tests.web.making import HOSTILE, make_project, make_user, match
from tests.web.records import load_record

pytestmark = pytest.mark.django_db
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
START = 1_763_800_000_000_000_000


def span(number: int, parent: int | None = None, **fields: Any) -> Span:
    """A span that lasts a second; ids are its numbers."""
    start = START + number * 1_000_000_000
    made: dict[str, Any] = {
        "trace_id": TRACE,
        "span_id": span_id(number),
        "parent_id": None if parent is None else span_id(parent),
        "name": f"span {number}",
        "start_ns": start,
        "end_ns": start + 1_000_000_000,
        "scope": Scope(name="shop.agents", version="1.2"),
        "resource": {"service.name": "shop", "deployment.environment.name": "staging"},
    }
    return Span(**made | fields)


def span_id(number: int) -> str:
    return f"{number:016x}"


def agent(number: int, parent: int | None = None, **attributes: Any) -> Span:
    said = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "helper"}
    return span(number, parent, name="invoke_agent helper", attributes=said | attributes)


def tool(number: int, parent: int | None, **attributes: Any) -> Span:
    said = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup", "gen_ai.tool.call.arguments": "{}"}
    return span(number, parent, name="execute_tool lookup", attributes=said | attributes)


def run_of(project, *spans: Span) -> Run:
    receive(project, spans)
    return Run.objects.get(project=project, run_id=spans[0].trace_id)


def page_of(client, run: Run, /, **query: Any) -> str:
    response = client.get(reverse("session", args=["shop", run.session.session_id]), query)
    assert response.status_code == 200
    return str(response.content.decode())


# --- raw ---------------------------------------------------------------------------------------


def test_raw_shows_the_spans_as_a_tree(shop, bob):
    run = run_of(shop, agent(1), tool(2, 1), span(3, 2, name="inside", status="error"))

    page = page_of(bob, run, view="raw")

    names = re.findall(r'<span class="recorded">((?:invoke|execute|inside)[^<]*)</span>', page)
    assert names == ["invoke_agent helper", "execute_tool lookup", "inside"]
    assert 'class="depth-2 failed"' in page
    assert page.count("<summary>Resource") == 1


def test_an_opened_span_shows_everything_in_it(shop, bob):
    opened = tool(2, 1, **{"shop.colour": "red"})
    event = SpanEvent(name="retried", time_ns=opened.start_ns, attributes={"after_ms": 20})
    link = Link(trace_id="ab" * 16, span_id="cd" * 8)
    run = run_of(shop, agent(1), span(2, 1, attributes=opened.attributes, events=(event,), links=(link,), kind=3))
    log = SpanEvent(name="shop.log", body={"said": "hello"}, severity="WARN")
    receive(shop, [], [LogRecord(trace_id=TRACE, span_id=span_id(2), event=log)])

    page = page_of(bob, run, view="raw", span=span_id(2))

    assert "shop.colour" in page
    assert page.count('<span class="badge badge-amber">not understood</span>') == 1
    for words in ("retried", "after_ms", "ab" * 16, "shop.log", "hello", "WARN", "client", "shop.agents 1.2"):
        assert words in page
    assert "shop.colour" not in page_of(bob, run, view="raw")


def test_a_long_value_is_folded_and_downloaded_to_the_letter(shop, bob):
    text = "[ 1,\n2 ]" + "x" * 5000
    run = run_of(shop, agent(1), tool(2, 1, **{"gen_ai.tool.call.result": text}))

    page = page_of(bob, run, view="raw", span=span_id(2))
    address = match(r'href="(/p/shop/traces/[^"]*/\d+)"', page)

    assert text not in page
    assert bob.get(address).content.decode() == text


def test_hostile_names_and_values_are_text(shop, bob):
    attributes = {HOSTILE: HOSTILE, "empty": {}, "nothing": None, "nan": {"double": "NaN"}, "deep": [[[["x"]]]]}
    run = run_of(shop, agent(1), span(2, 1, name=HOSTILE, status_message=HOSTILE, attributes=attributes))

    raw, step = page_of(bob, run, view="raw", span=span_id(2)), page_of(bob, run, step=1)

    assert "RLO" in raw
    assert "RLO" in step
    assert "<script>alert" not in raw + step


def test_two_spans_under_one_id_are_both_there(shop, bob):
    first, other = (tool(2, 1, **{"gen_ai.tool.call.result": weather}) for weather in ("sun", "rain"))
    receive(shop, [agent(1), first])
    receive(shop, [other])
    make_waiting_runs()
    run = Run.objects.get(project=shop, run_id=TRACE)

    raw = page_of(bob, run, view="raw", span=span_id(2))
    download = bob.get(reverse("spans_file", args=["shop", TRACE, "spans"])).content.decode()

    assert "Another span with this id" in raw
    for page in (raw, download):
        assert "sun" in page
        assert "rain" in page
    assert [each["code"] for each in run.anomalies if each["code"].startswith("spans")] == ["spans_under_one_id"]


def test_raw_of_a_long_trace_is_paged_and_has_a_fixed_number_of_queries(shop, bob):
    run = run_of(shop, agent(1), *(tool(number, 1) for number in range(2, 452)))
    few = Run.objects.get(pk=run.pk)
    address = reverse("session", args=["shop", run.session.session_id])

    with CaptureQueriesContext(connection) as many:
        page = bob.get(address, {"view": "raw"}).content.decode()
    last = bob.get(address, {"view": "raw", "span": span_id(451)}).content.decode()

    assert page.count('id="span-') == 200
    assert "view=raw&amp;at=201" in page
    assert f'id="span-{span_id(451)}"' in last
    assert last.count('id="span-') == 51
    few.trace.batches.all().delete()
    few.trace.delete()
    receive(shop, [agent(1), tool(2, 1)])
    with CaptureQueriesContext(connection) as short:
        bob.get(address, {"view": "raw"})
    assert len(short) == len(many)


def test_spans_in_circles_and_orphans_are_all_shown(shop, bob):
    run = run_of(shop, agent(1), span(2, 3), span(3, 2), span(4, 99))

    page = page_of(bob, run, view="raw")

    assert page.count('id="span-') == 4
    assert page.count("parent not received") == 1


def test_the_spans_are_downloaded_as_otlp_and_give_the_same_spans_again(shop, bob):
    attributes = {"a": [1, 2.5, True, None, {"b": "c"}], "raw": {"base64": "AAE="}, "nan": {"double": "NaN"}}
    sent = [agent(1), span(2, 1, attributes=attributes, status="error", status_message="no")]
    receive(shop, sent)
    other = make_project("other")

    document = bob.get(reverse("spans_file", args=["shop", TRACE, "spans"])).content
    receive(other, decode_traces(document, is_json=True).spans)

    assert trace_runs.spans_of(Trace.objects.get(project=other)) == trace_runs.spans_of(Trace.objects.get(project=shop))


# --- the step ----------------------------------------------------------------------------------


def test_a_step_says_what_only_its_span_says(shop, bob):
    run = run_of(shop, agent(1), tool(2, 1, **{"shop.colour": "red"}))

    page = page_of(bob, run, step=1)
    section = match(r'<details class="part-of-step section-span"(.*?)</details>', page)

    for words in ("1 attribute not understood", "shop.colour", "convention", "genai", span_id(2)):
        assert words in section
    assert f"view=raw&amp;span={span_id(2)}#span-{span_id(2)}" in section
    assert "Unknown fields" not in page


def test_unknown_fields_that_only_look_like_a_span_stay_unknown_fields(shop, bob):
    for number, told in enumerate([[1], "x", {"span_id": 7}, {"span_id": "s", "twins": [3], "events": "no"}]):
        record = make_record(f"r{number}", make_tool_step(span=told), session_id=f"r{number}")
        run = ingest_document(shop, json.dumps(record).encode()).run
        page = page_of(bob, run, step=1)
        assert ("Unknown fields" in page) == (number < 3)


# --- inner steps -------------------------------------------------------------------------------


def test_inner_steps_fold_and_are_shown_when_asked_for(shop, bob):
    run = run_of(shop, agent(1), span(2, 1, name="graph"), span(3, 2, name="node"), tool(4, 3))

    page, shown = page_of(bob, run), page_of(bob, run, inner="show")

    assert page.count("<tr id=") == 1
    assert 'class="k-tool is-picked"' in page
    assert "2 inner steps of the framework folded." in page
    assert re.search(r'<p class="story">(?:(?!</p>).)*\b1 step\b', page, re.DOTALL)
    assert 'class="ruler"' not in page + shown, "both lists are whole"
    assert 'Steps <span class="count">1</span>' in page
    assert "2 of 3 are inner steps of the framework." in shown
    rows = re.findall(r'<tr id="s\d"\s+class="([^"]*)"', shown)
    assert rows == ["k-other", "k-other depth-1", "k-tool depth-2 is-picked"]


def test_an_inner_step_that_failed_and_a_run_of_nothing_else_do_not_fold(shop, bob):
    failing = span(2, 1, name="graph", status="error", status_message="no such node")
    mixed = run_of(shop, agent(1), failing, tool(3, 1))
    page = page_of(bob, mixed)
    assert page.count("<tr id=") == 2

    alone = load_record(shop, run_id="plain", steps=[{"kind": "other", "name": "a"}, {"kind": "other", "name": "b"}])
    assert page_of(bob, alone).count("<tr id=") == 2


def test_hidden_steps_are_passed_over_and_an_asked_one_is_listed(shop, bob):
    run = run_of(shop, agent(1), tool(2, 1), span(3, 1, name="graph"), tool(4, 1))

    page, asked = page_of(bob, run, step=1), page_of(bob, run, step=2)
    address = reverse("step", args=["shop", run.session.session_id, 1])
    panel = bob.get(address, headers={"HX-Request": "true"}).content.decode()

    assert 'data-step="3"\n' in page
    assert "step=3" in panel
    assert asked.count("<tr id=") == 3


def test_a_long_list_without_inner_steps_is_paged_by_what_is_listed(shop, bob):
    made = [
        one for n in range(2, 602, 2) for one in (span(n, 1), tool(n + 1, n, **{"gen_ai.tool.name": f"lookup {n}"}))
    ]
    run = run_of(shop, agent(1), *made)
    many = 22

    first = page_of(bob, run, step=many)
    at = int(match(rf"[?;]at=(\d+)&amp;step={many}\"", first))
    second = page_of(bob, run, at=at, step=many)

    assert first.count("<tr id=") == 200
    assert second.count("<tr id=") == 100
    back = int(match(rf"[?;]at=(\d+)&amp;step={many}\"", second))
    assert page_of(bob, run, at=back, step=many).count("<tr id=") == 200


# --- arriving ----------------------------------------------------------------------------------


def arriving(client, run: Run, seen: int):
    address = reverse("arriving", args=["shop", run.session.session_id])
    return client.get(address, {"run": run.run_id, "seen": seen})


def test_a_run_whose_topmost_span_has_not_come_says_so_until_it_is_there(shop, bob):
    run = run_of(shop, tool(2, 1), tool(3, 1))

    page = page_of(bob, run)
    receive(shop, [tool(4, 1)])
    behind = arriving(bob, run, 2).content.decode()
    make_run(Trace.objects.get())
    grown = arriving(bob, run, 2).content.decode()
    receive(shop, [agent(1)])
    done = arriving(bob, run, 2).content.decode()

    assert "2 spans, the root span has not arrived" in page
    assert 'hx-trigger="every 2s, refresh"' in page
    assert "more spans have arrived and are being processed" in behind
    assert "being read" not in grown
    assert "1 new · show" in grown
    assert "hx-trigger" in grown
    assert "the root span has arrived" in done
    assert "hx-trigger" not in done
    assert 'id="arriving"' in page_of(bob, run)
    assert "Still arriving" not in page_of(bob, run)


def test_an_unchanged_arrival_is_answered_without_a_body(shop, bob):
    run = run_of(shop, tool(2, 1))
    etag = arriving(bob, run, 1)["ETag"]

    address = reverse("arriving", args=["shop", run.session.session_id])
    again = bob.get(address, {"run": run.run_id, "seen": 1}, headers={"If-None-Match": etag})

    assert again.status_code == 304


def test_a_topmost_span_that_has_not_ended_is_told_from_one_that_is_missing(shop, bob):
    run = run_of(shop, span(1, None, end_ns=None, attributes=agent(1).attributes), tool(2, 1))

    assert "the root span has not ended" in page_of(bob, run)


def test_a_run_that_was_given_up_says_what_to_do(shop, bob):
    run = run_of(shop, tool(2, 1))
    Trace.objects.update(changed_at=timezone.now() - timezone.timedelta(days=1))
    make_waiting_runs()

    page = page_of(bob, run)

    assert "Incomplete: the root span never arrived." in page
    assert "force_flush" in page
    assert "parentbased_always_on" in page
    assert "hx-trigger" not in match(r'<div id="arriving"(.*?)>', page)


def test_a_run_that_is_complete_or_no_trace_says_nothing_of_arriving(shop, bob):
    whole = run_of(shop, agent(1), tool(2, 1))
    posted = ingest_document(shop, json.dumps(make_record("r1", make_tool_step(), session_id="r1")).encode()).run

    for run in (whole, posted):
        page = page_of(bob, run)
        assert "Still arriving" not in page
        assert "Incomplete" not in page


# --- traces that could not be read -------------------------------------------------------------


def foot_of(client, address: str) -> str:
    return str(client.get(address, headers={"HX-Request": "true"}).content.decode())


def unreadable(shop) -> Trace:
    """A trace whose id another recording has already."""
    ingest_document(shop, json.dumps(make_record(TRACE, make_tool_step(), session_id="s")).encode())
    receive(shop, [agent(1), tool(2, 1)])
    return Trace.objects.get()


def test_a_trace_that_could_not_be_read_is_at_the_foot_of_the_list_and_has_its_page(shop, bob):
    trace = unreadable(shop)

    listed = bob.get(reverse("sessions", args=["shop"])).content.decode()
    page = foot_of(bob, match(r'class="unread-foot"\s+hx-get="([^"]*)"', listed))
    own = bob.get(reverse("trace", args=["shop", trace.trace_id])).content.decode()

    assert "1 trace could not be read" in page
    assert reverse("trace", args=["shop", trace.trace_id]) in page
    assert "No run could be made of this trace:" in own
    assert "another recording has this id" in own
    assert "execute_tool lookup" in own


def test_the_foot_says_nothing_where_every_trace_could_be_read(shop, bob):
    run_of(shop, agent(1), tool(2, 1))

    assert "could not be read" not in foot_of(bob, reverse("unread_traces", args=["shop"]))
    assert (
        "Every trace that arrived was read as a run."
        in bob.get(reverse("unread_traces", args=["shop"])).content.decode()
    )


def test_a_reader_that_fails_leaves_the_page_of_the_trace_standing(shop, bob, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise KeyError("no")

    monkeypatch.setattr(trace_runs, "assemble", fail)
    monkeypatch.setattr("sessions_app.web.traces.span_tree.read_span", fail)
    receive(shop, [agent(1), tool(2, 1)])

    found = bob.get("/find", {"q": TRACE.upper()})
    page = bob.get(found["Location"], {"span": span_id(2)}).content.decode()

    assert found["Location"] == f"/p/shop/traces/{TRACE}"
    assert "the product failed on it (KeyError)" in page
    assert "gen_ai.tool.name" in page


def test_traces_of_other_projects_are_not_there(shop, bob):
    other = make_project("other")
    receive(other, [agent(1), tool(2, 1)])

    assert bob.get(f"/p/shop/traces/{TRACE}").status_code == 404
    assert bob.get(f"/p/other/traces/{TRACE}").status_code == 404
    for name, args in (("spans_file", [TRACE, "spans"]), ("span_value", [TRACE, span_id(2), 0])):
        assert bob.get(reverse(name, args=["other", *args])).status_code == 404
    assert "No matches for" in bob.get("/find", {"q": span_id(2)}).content.decode()
    assert "No matches for" in bob.get("/find", {"q": TRACE}).content.decode()


# --- finding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [TRACE, TRACE.upper(), "4bf92f35-77b3-4da6-a3ce-929d0e0e4736", f"trace={TRACE};"])
def test_trace_ids_are_found_however_they_are_written(shop, bob, written):
    run_of(shop, agent(1), tool(2, 1))

    assert bob.get("/find", {"q": written})["Location"] == f"/p/shop/s/{TRACE}?run={TRACE}"


@pytest.mark.parametrize(
    "written", ["00000000000000ab", "00000000000000AB", "span_id=00000000000000ab", f"00-{TRACE}-00000000000000ab-01"]
)
def test_span_ids_open_the_run_with_their_step(shop, bob, written):
    run_of(shop, agent(1), tool(2, 1), tool(0xAB, 1))

    assert bob.get("/find", {"q": written})["Location"] == f"/p/shop/s/{TRACE}?run={TRACE}&step=2"


def test_the_span_of_the_run_itself_opens_the_run(shop, bob):
    run_of(shop, agent(1), tool(2, 1))

    assert bob.get("/find", {"q": span_id(1)})["Location"] == f"/p/shop/s/{TRACE}?run={TRACE}"


def test_spans_are_found_by_an_index(shop):
    run_of(shop, agent(1), *(tool(number, 1) for number in range(2, 60)))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = RunContent.objects.filter(keys__overlap=[told_by(bytes.fromhex(span_id(2)))]).explain()

    assert "contents_by_key" in plan


# --- facts -------------------------------------------------------------------------------------


def test_the_header_says_where_the_spans_came_from(shop, bob):
    run = run_of(shop, agent(1), tool(2, 1, **{"shop.colour": "red"}))

    facts = match(r'<dl class="facts facts-trace">(.*?)</dl>', page_of(bob, run))

    for words in ("shop.agents 1.2", "genai", "staging", "1 attribute not understood", "<dt>service</dt>"):
        assert words in facts
    assert "facts-trace" not in page_of(bob, ingest_document(shop, json.dumps(make_record("r")).encode()).run)


@pytest.mark.parametrize("folder", sorted(CHOICE.glob("*/*"))[::6], ids=lambda folder: f"{folder.parent.name}")
def test_every_view_of_what_real_exporters_send_opens(shop, bob, folder):
    capture = Capture(folder)
    if not capture.spans:
        pytest.skip("this exporter sends no spans")
    receive(shop, capture.spans)

    for trace in Trace.objects.select_related("run__session"):
        assert trace.run is not None
        for view in ("steps", "messages", "raw"):
            page_of(bob, trace.run, run=trace.run.run_id, view=view)
        for made in capture.spans:
            if made.trace_id == trace.trace_id:
                assert "span-open" in page_of(bob, trace.run, run=trace.run.run_id, view="raw", span=made.span_id)


# --- in a browser ------------------------------------------------------------------------------


@pytest.fixture
def signed_in(page: Page, live_server, shop) -> Page:
    make_user("bob", shop)
    arrive(page, f"{live_server.url}/p/shop/sessions")
    return page


def faults_of(page: Page) -> list[str]:
    found = Axe().run(page).response["violations"]
    return [fault["id"] for fault in found if fault["impact"] in ("serious", "critical")]


@pytest.mark.django_db(transaction=True)
def test_the_line_of_an_arriving_run_follows_by_itself(signed_in, live_server, shop):
    run = run_of(shop, tool(2, 1))
    signed_in.goto(f"{live_server.url}/p/shop/s/{run.session.session_id}")
    line = signed_in.locator("#arriving")

    expect(line).to_contain_text("1 span, the root span has not arrived")
    assert faults_of(signed_in) == []
    receive(shop, [tool(3, 1)])
    make_run(Trace.objects.get())
    expect(line).to_contain_text("1 new", timeout=10_000)
    receive(shop, [agent(1)])
    expect(line).to_contain_text("the root span has arrived", timeout=10_000)
    assert signed_in.locator(".steps tbody tr").count() == 1

    press(signed_in, ".")
    expect(line).to_have_text("")
    assert signed_in.locator(".steps tbody tr").count() == 2


@pytest.mark.django_db(transaction=True)
def test_a_span_is_opened_by_its_address_and_left_again(signed_in, live_server, shop):
    run_of(shop, agent(1), tool(2, 1, **{"shop.colour": "red" * 2000}), span(3, 2, status="error"))
    signed_in.goto(f"{live_server.url}/p/shop/s/{TRACE}?view=raw")

    signed_in.get_by_role("link", name="execute_tool lookup").click()
    signed_in.wait_for_url(f"**span={span_id(2)}*")
    expect(signed_in.locator(".span-open")).to_contain_text("shop.colour")
    assert faults_of(signed_in) == []
    signed_in.go_back()

    expect(signed_in.locator(".spans")).to_be_visible()
    expect(signed_in.locator(".span-open")).to_have_count(0)


# --- replays


def test_a_replay_of_a_run_that_grew_says_so(shop, bob):
    receive(shop, [span(1), span(2, 1)])
    run = Run.objects.get()
    replay = Replay.objects.create(
        project=shop,
        run=run,
        content=run.content,
        replay_id="p_1",
        number=1,
        mode="recording",
        state="done",
        verdict="reproduced",
    )
    address = reverse("replay", args=[shop.slug, replay.replay_id])
    before = bob.get(address).content.decode()

    receive(shop, [span(3, 1)])

    assert "More spans of this run" not in before
    assert "More spans of this run" in bob.get(address).content.decode()
